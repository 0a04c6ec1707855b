//! What must hold in a manifest before anything of it is used: indices in range, formulas over known symbols, buffers used
//! within their lifetimes, nothing written that is read-only. What must not be here: decoding, or checks that need sizes.

use std::collections::{BTreeMap, BTreeSet};

use crate::dtype::DType;
use crate::error::Error;
use crate::expr::{Expr, Pred};
use crate::format::*;
use crate::write::{BLOCK, MAX_SECTIONS, WEIGHT_ALIGN, weight_len};

/// More buffers than any model needs; placing them takes time that grows with the square.
const MAX_BUFFERS: usize = 1 << 14;
/// More variants than any entry has; each is checked against all that the entry has.
const MAX_VARIANTS: usize = 256;
const MAX_RANK: usize = 64;

type Checked = Result<(), Error>;

macro_rules! ensure {
    ($cond:expr, $($text:tt)*) => {
        if !$cond {
            return Err(Error::damaged(format_args!($($text)*)));
        }
    };
}

/// Checks a manifest against the lengths of its code and weights sections.
pub(crate) fn manifest(m: &Manifest, code: &[u64], weights: u64) -> Checked {
    ensure!(m.images.len() == code.len(), "{} images, {} code sections", m.images.len(), code.len());
    ensure!(m.images.len() + 2 <= MAX_SECTIONS, "{} images", m.images.len());
    check_weights(m, weights)?;
    for s in &m.states {
        check_init(m, s)?;
    }
    for k in &m.kernels {
        let inside = [&k.flops, &k.bytes].iter().all(|e| all_syms(e, |s| s < k.dims));
        ensure!(inside, "kernel `{}` uses a dim it does not have", k.name);
    }
    for (image, &len) in m.images.iter().zip(code) {
        check_image(m, image, len)?;
    }
    unique("entry", m.entries.iter().map(|e| e.name.as_str()))?;
    m.entries.iter().try_for_each(|e| check_entry(m, e))
}

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a str>) -> Checked {
    let mut seen = BTreeSet::new();
    for name in names {
        ensure!(seen.insert(name), "two of kind {what} have the name `{name}`");
    }
    Ok(())
}

fn check_weights(m: &Manifest, section: u64) -> Checked {
    let mut at = 0u64;
    for w in &m.weights {
        let name = &w.name;
        let len = weight_len(w);
        ensure!(len.is_some(), "weight `{name}` is too large");
        let len = len.unwrap_or(0);
        ensure!(w.dims.len() <= MAX_RANK, "weight `{name}` has rank {}", w.dims.len());
        ensure!(w.offset.is_multiple_of(WEIGHT_ALIGN) && w.offset >= at, "weight `{name}` is misplaced");
        let end = w.offset.checked_add(len).filter(|e| *e <= section);
        ensure!(end.is_some(), "weight `{name}` exceeds the weights section");
        at = end.unwrap_or(0);
        let blocks = len.div_ceil(BLOCK as u64);
        ensure!(w.blocks.len() as u64 == blocks, "weight `{name}` has {} sums", w.blocks.len());
    }
    ensure!(at == section, "the weights section has {section} bytes, its weights {at}");
    Ok(())
}

fn check_init(m: &Manifest, s: &StateDecl) -> Checked {
    ensure!(s.dims.len() <= MAX_RANK, "state `{}` has rank {}", s.name, s.dims.len());
    let size = state_len(s);
    ensure!(size.is_some(), "state `{}` is too large", s.name);
    if let Some(i) = s.init {
        let w = m.weights.get(i as usize);
        let fits = w.is_some_and(|w| w.dtype == s.dtype && weight_len(w) == size);
        ensure!(fits, "state `{}` starts from a weight that does not fit it", s.name);
    }
    Ok(())
}

/// The bytes of a state.
pub(crate) fn state_len(s: &StateDecl) -> Option<u64> {
    let count = s.dims.iter().try_fold(1u64, |n, &d| n.checked_mul(d))?;
    count.checked_mul(s.dtype.size() as u64).filter(|n| *n <= i64::MAX as u64)
}

fn check_image(m: &Manifest, image: &Image, code: u64) -> Checked {
    let target = &image.target;
    let mut found = vec![false; m.kernels.len()];
    for k in &image.kernels {
        let decl = m.kernels.get(k.kernel as usize);
        ensure!(decl.is_some(), "image `{target}` names kernel {}", k.kernel);
        let dims = decl.map_or(0, |d| d.dims);
        ensure!(!std::mem::replace(&mut found[k.kernel as usize], true), "image `{target}` repeats a kernel");
        ensure!(k.offset < code, "kernel {} of image `{target}` is outside its code", k.kernel);
        for e in [&k.tiles, &k.grain, &k.scratch] {
            let inside = all_syms(e, |s| s < dims);
            ensure!(inside, "kernel {} of image `{target}` uses a dim it does not have", k.kernel);
        }
    }
    ensure!(found.iter().all(|f| *f), "image `{target}` lacks a kernel");
    Ok(())
}

fn all_syms(e: &Expr, ok: impl Fn(u32) -> bool) -> bool {
    let mut good = true;
    e.each_sym(&mut |s| good &= ok(s));
    good
}

fn all_pred_syms(p: &Pred, ok: impl Fn(u32) -> bool) -> bool {
    let mut good = true;
    p.each_sym(&mut |s| good &= ok(s));
    good
}

fn check_entry(m: &Manifest, e: &Entry) -> Checked {
    let name = &e.name;
    for s in &e.symbols {
        ensure!(s.lo <= s.hi, "entry `{name}`: symbol `{}` has the range {}..={}", s.name, s.lo, s.hi);
    }
    unique("input", e.inputs.iter().map(|p| p.name.as_str()))?;
    unique("output", e.outputs.iter().map(|p| p.name.as_str()))?;
    for &s in e.reads.iter().chain(&e.writes) {
        ensure!((s as usize) < m.states.len(), "entry `{name}` names state {s}");
    }
    ensure!(e.variants.len() <= MAX_VARIANTS, "entry `{name}` has {} variants", e.variants.len());
    let known = input_symbols(e)?;
    for p in &e.inputs {
        check_input(m, e, p, &known)?;
    }
    for p in &e.outputs {
        ensure!(p.default.is_none(), "output `{}` has a default", p.name);
        ensure!(p.dims.len() <= MAX_RANK, "output `{}` has rank {}", p.name, p.dims.len());
    }
    for v in &e.variants {
        if let Some(p) = &v.when {
            let fine = all_pred_syms(p, |s| known.contains(&s));
            ensure!(fine, "entry `{name}`: a variant's condition uses a symbol that inputs do not give");
        }
        if let Ok(program) = &v.body {
            let states = e.reads.iter().chain(&e.writes).copied().collect();
            ProgramCheck { m, e, program, known: known.clone(), states, steps: 0, writable: vec![] }.run()?;
        } else {
            let all = e.symbols.len() as u32;
            let inside = e.guards.iter().all(|g| all_pred_syms(&g.pred, |s| s < all))
                && e.outputs.iter().flat_map(|p| &p.dims).all(|d| all_syms(d, |s| s < all));
            ensure!(inside, "entry `{name}` uses a symbol it does not have");
        }
    }
    Ok(())
}

/// The symbols that input shapes give a value.
fn input_symbols(e: &Entry) -> Result<BTreeSet<u32>, Error> {
    let mut known = BTreeSet::new();
    for d in e.inputs.iter().flat_map(|p| &p.dims) {
        if let Expr::Sym(s) = d {
            ensure!((*s as usize) < e.symbols.len(), "entry `{}` names symbol {s}", e.name);
            known.insert(*s);
        }
    }
    Ok(known)
}

fn check_input(m: &Manifest, e: &Entry, p: &Port, known: &BTreeSet<u32>) -> Checked {
    let name = &p.name;
    ensure!(p.dims.len() <= MAX_RANK, "input `{name}` has rank {}", p.dims.len());
    for d in &p.dims {
        let fine = all_syms(d, |s| known.contains(&s));
        ensure!(fine, "entry `{}`: input `{name}` uses a symbol that inputs do not give", e.name);
    }
    if let Some(i) = p.default {
        let w = m.weights.get(i as usize);
        let fits = w.is_some_and(|w| w.dtype == p.dtype && w.dims.len() == p.dims.len());
        ensure!(fits, "the default of input `{name}` does not fit it");
    }
    Ok(())
}

/// The checks of one program, segment by segment.
struct ProgramCheck<'a> {
    m: &'a Manifest,
    e: &'a Entry,
    program: &'a Program,
    known: BTreeSet<u32>,
    /// The states that the entry declares.
    states: BTreeSet<u32>,
    steps: u32,
    writable: Vec<bool>,
}

impl ProgramCheck<'_> {
    fn run(mut self) -> Checked {
        let name = &self.e.name;
        let total: usize = self.program.segments.iter().map(|s| s.steps.len()).sum();
        ensure!(total < u32::MAX as usize, "entry `{name}` has too many steps");
        self.buffers(total as u32)?;
        let program = self.program;
        let mut temps: Vec<&Buffer> = program.buffers.iter().filter(|b| b.kind == BufferKind::Temp).collect();
        temps.sort_by_key(|b| std::cmp::Reverse(b.first));
        for (i, segment) in program.segments.iter().enumerate() {
            self.binds(segment)?;
            let end = self.steps + segment.steps.len() as u32;
            while let Some(b) = temps.pop_if(|b| b.first < end) {
                ensure!(self.expr(&b.size), "buffer `{}`: size not known in segment {i}", b.name);
            }
            for step in &segment.steps {
                self.step(step)?;
                self.steps += 1;
            }
        }
        for b in &program.buffers {
            ensure!(self.expr(&b.size), "the size of buffer `{}` is never known", b.name);
        }
        for p in &self.e.outputs {
            let fine = p.dims.iter().all(|d| self.expr(d));
            ensure!(fine, "a size of output `{}` is never known", p.name);
        }
        for g in &self.e.guards {
            let fine = all_pred_syms(&g.pred, |s| self.known.contains(&s));
            ensure!(fine, "entry `{name}`: a guard uses a symbol that is never known");
        }
        Ok(())
    }

    fn expr(&self, e: &Expr) -> bool {
        all_syms(e, |s| self.known.contains(&s))
    }

    fn buffers(&mut self, steps: u32) -> Checked {
        let buffers = &self.program.buffers;
        ensure!(buffers.len() <= MAX_BUFFERS, "{} buffers, more than {MAX_BUFFERS}", buffers.len());
        let mut used = BTreeSet::new();
        let mut anchors: BTreeMap<u32, usize> = BTreeMap::new();
        for (i, b) in buffers.iter().enumerate() {
            let name = &b.name;
            ensure!(
                b.align.is_power_of_two() && b.align <= 4096,
                "buffer `{name}` has alignment {}",
                b.align
            );
            let (tag, index, dtype) = match b.kind {
                BufferKind::Input(i) => (0, i, self.e.inputs.get(i as usize).map(|p| p.dtype)),
                BufferKind::Output(i) => (1, i, self.e.outputs.get(i as usize).map(|p| p.dtype)),
                BufferKind::State(i) => (2, i, self.state(i)),
                BufferKind::Weight(i) => (3, i, self.m.weights.get(i as usize).map(|w| w.dtype)),
                BufferKind::Temp => {
                    let alive = b.first <= b.last && b.last < steps;
                    ensure!(alive, "buffer `{name}` lives from step {} to {}", b.first, b.last);
                    continue;
                }
            };
            ensure!(dtype == Some(b.dtype), "buffer `{name}` stands for nothing of its type");
            let written = matches!(b.kind, BufferKind::Output(_) | BufferKind::State(_));
            ensure!(used.insert((tag, index)) || !written, "buffer `{name}` repeats another");
            if let Some(class) = b.alias {
                let first = anchors.insert(class, i).is_none();
                ensure!(first, "buffer `{name}` shares a class with another that is not temporary");
            }
        }
        for o in 0..self.e.outputs.len() as u32 {
            let name = &self.e.outputs[o as usize].name;
            ensure!(used.contains(&(1, o)), "no buffer stands for output `{name}`");
        }
        let writes: BTreeSet<u32> = self.e.writes.iter().copied().collect();
        self.writable = buffers
            .iter()
            .map(|b| {
                let anchor = b.alias.and_then(|c| anchors.get(&c)).map_or(b, |&a| &buffers[a]);
                match anchor.kind {
                    BufferKind::Output(_) | BufferKind::Temp => true,
                    BufferKind::State(s) => writes.contains(&s),
                    BufferKind::Input(_) | BufferKind::Weight(_) => false,
                }
            })
            .collect();
        Ok(())
    }

    fn state(&self, i: u32) -> Option<DType> {
        self.m.states.get(i as usize).filter(|_| self.states.contains(&i)).map(|s| s.dtype)
    }

    fn binds(&mut self, segment: &Segment) -> Checked {
        for bind in &segment.binds {
            ensure!((bind.symbol as usize) < self.e.symbols.len(), "a segment binds symbol {}", bind.symbol);
            ensure!(self.known.insert(bind.symbol), "a segment binds a symbol that already has a value");
            let b = self.program.buffers.get(bind.buffer as usize);
            let Some(b) = b.filter(|b| b.dtype == DType::I64) else {
                return Err(Error::damaged(format_args!("a segment reads buffer {}", bind.buffer)));
            };
            let alive = b.kind != BufferKind::Temp || (b.first < self.steps && self.steps <= b.last + 1);
            ensure!(alive, "a segment reads buffer `{}` outside its lifetime", b.name);
            ensure!(!matches!(b.kind, BufferKind::Output(_)), "a segment reads output buffer `{}`", b.name);
        }
        Ok(())
    }

    fn step(&self, step: &Step) -> Checked {
        let at = self.steps;
        match step {
            Step::Launch { kernel, args, dims, .. } => self.launch(*kernel, args, dims),
            Step::Copy { src, dst, bytes } => {
                self.touch(*src, None, false)?;
                self.touch(*dst, None, true)?;
                ensure!(self.expr(bytes), "step {at} copies a size that is not known then");
                Ok(())
            }
            Step::Opaque { args, .. } => args.iter().try_for_each(|a| self.touch(*a, None, false)),
            Step::If { cond, then, otherwise } => {
                self.touch(*cond, Some(DType::Bool), false)?;
                then.iter().chain(otherwise).try_for_each(|s| self.step(s))
            }
            Step::Loop { trip, cond, index, body } => {
                trip.iter().try_for_each(|b| self.touch(*b, Some(DType::I64), false))?;
                cond.iter().try_for_each(|b| self.touch(*b, Some(DType::Bool), false))?;
                index.iter().try_for_each(|b| self.touch(*b, Some(DType::I64), true))?;
                body.iter().try_for_each(|s| self.step(s))
            }
        }
    }

    fn launch(&self, kernel: u32, args: &[u32], dims: &[Expr]) -> Checked {
        let at = self.steps;
        let Some(decl) = self.m.kernels.get(kernel as usize) else {
            return Err(Error::damaged(format_args!("step {at} launches kernel {kernel}")));
        };
        let name = &decl.name;
        ensure!(args.len() == decl.args.len(), "step {at} gives kernel `{name}` {} arguments", args.len());
        ensure!(dims.len() == decl.dims as usize, "step {at} gives kernel `{name}` {} dims", dims.len());
        for (&b, a) in args.iter().zip(&decl.args) {
            self.touch(b, Some(a.dtype), matches!(a.role, Role::Out | Role::InOut))?;
        }
        let fine = dims.iter().all(|d| self.expr(d));
        ensure!(fine, "step {at} launches kernel `{name}` over a size that is not known then");
        Ok(())
    }

    fn touch(&self, buffer: u32, dtype: Option<DType>, writes: bool) -> Checked {
        let at = self.steps;
        let Some(b) = self.program.buffers.get(buffer as usize) else {
            return Err(Error::damaged(format_args!("step {at} uses buffer {buffer}")));
        };
        let name = &b.name;
        let alive = b.kind != BufferKind::Temp || (b.first..=b.last).contains(&at);
        ensure!(alive, "step {at} uses buffer `{name}` outside its lifetime");
        ensure!(dtype.is_none_or(|d| d == b.dtype), "step {at} uses buffer `{name}` with another type");
        ensure!(
            !writes || self.writable[buffer as usize],
            "step {at} writes buffer `{name}`, which is read-only"
        );
        ensure!(
            matches!(b.kind, BufferKind::Input(_) | BufferKind::State(_) | BufferKind::Weight(_))
                || self.expr(&b.size),
            "step {at} uses buffer `{name}` before its size is known"
        );
        Ok(())
    }
}
