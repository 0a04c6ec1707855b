//! From input shapes to something that can run: symbols, guards, variant, sizes, places, launches. What must not be here:
//! dereferencing pointers or calling kernels (exec.rs), and what outlives a binding (session.rs).

use crate::abi::KernelFn;
use crate::error::{Code, Error, Fault};
use crate::expr::{Expr, ExprError};
use crate::format::*;
use crate::load::Model;
use crate::plan::{Plan, Request, plan};
use crate::tensor::byte_len;
use crate::validate::state_len;
use crate::write::weight_len;

/// Grains that a worker takes at a time at least: taking them, and calling the kernel anew, cost nothing beside them.
const PIECE: u64 = 2;

/// Faults told at once, and values told with each: a message is read by a person.
const SHOWN: usize = 20;

/// Where a buffer's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loc {
    Arena(u64),
    Input(u32),
    Output(u32),
    State(u32),
    Weight(u32),
}

/// What the input shapes say.
#[derive(Clone, Debug)]
pub(crate) struct Solved {
    pub(crate) syms: Vec<Option<i64>>,
    /// Bytes of each input.
    pub(crate) bytes: Vec<usize>,
}

/// Sizes and places of buffers, as far as the segments bound so far determine them.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) locs: Vec<Option<Loc>>,
    sizes: Vec<Option<u64>>,
    pub(crate) arena: u64,
}

/// A segment ready to run, its pointers apart.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    pub(crate) steps: Vec<ReadyStep>,
    /// What the slots of the pointer table point to.
    pub(crate) slots: Vec<Loc>,
    pub(crate) dims: Vec<i64>,
    /// What each step does, as far as it is known.
    pub(crate) costs: Vec<Cost>,
    /// Bytes of scratch over all workers of the launch that needs most.
    pub(crate) scratch: u64,
}

/// Work of one step; `None` where a formula has no value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    pub(crate) flops: Option<u64>,
    pub(crate) bytes: Option<u64>,
}

#[derive(Debug)]
pub(crate) enum ReadyStep {
    Launch {
        func: KernelFn,
        slot: usize,
        dims: usize,
        tiles: i64,
        workers: usize,
        /// Tiles a worker takes at a time at least.
        least: i64,
        stride: usize,
        step: usize,
    },
    Copy {
        src: usize,
        dst: usize,
        bytes: usize,
        step: usize,
    },
}

pub(crate) fn names(e: &Entry) -> Vec<&str> {
    e.symbols.iter().map(|s| s.name.as_str()).collect()
}

/// Puts what was given by name into the order of the entry's inputs.
pub(crate) fn by_input<'a, T>(e: &Entry, given: &'a [(&str, T)]) -> Result<Vec<Option<&'a T>>, Error> {
    let mut found: Vec<Option<&T>> = e.inputs.iter().map(|_| None).collect();
    let mut faults = Vec::new();
    let valid = || {
        let all: Vec<String> = e.inputs.iter().map(|p| format!("`{}`", p.name)).collect();
        if all.is_empty() {
            "the entry has no inputs".into()
        } else {
            format!("the inputs are {}", all.join(", "))
        }
    };
    let mut fault = |message: String, help: String| {
        faults.push(Fault { code: Code::InputName, message, help });
    };
    for (name, value) in given {
        match e.inputs.iter().position(|p| p.name == *name) {
            None => fault(format!("there is no input `{name}`"), valid()),
            Some(i) if found[i].is_some() => {
                fault(format!("input `{name}` is given twice"), "give it once".into());
            }
            Some(i) => found[i] = Some(value),
        }
    }
    for (p, f) in e.inputs.iter().zip(&found) {
        if f.is_none() && p.default.is_none() {
            fault(format!("input `{}` is missing", p.name), valid());
        }
    }
    Error::collect(faults)?;
    Ok(found)
}

/// Gives the symbols their values from input shapes (`None`: the input's default) and checks every size.
pub(crate) fn solve(m: &Manifest, e: &Entry, shapes: &[Option<&[usize]>]) -> Result<Solved, Error> {
    let shapes: Vec<Vec<usize>> = e
        .inputs
        .iter()
        .zip(shapes)
        .map(|(p, s)| match (s, p.default) {
            (Some(s), _) => s.to_vec(),
            (None, Some(w)) => m.weights[w as usize].dims.iter().map(|&d| d as usize).collect(),
            (None, None) => Vec::new(),
        })
        .collect();
    check_ranks(e, &shapes)?;
    let mut syms: Vec<Option<i64>> = vec![None; e.symbols.len()];
    let mut origin: Vec<Option<(&str, usize)>> = vec![None; e.symbols.len()];
    let mut faults = Vec::new();
    let axes = || {
        let ports = e.inputs.iter().zip(&shapes);
        ports.flat_map(|(p, s)| p.dims.iter().zip(s).enumerate().map(move |(axis, (d, &v))| (p, axis, d, v)))
    };
    for (p, axis, dim, found) in axes() {
        let Expr::Sym(slot) = dim else { continue };
        let slot = *slot as usize;
        let s = &e.symbols[slot];
        let value = i64::try_from(found).unwrap_or(i64::MAX);
        let what = if s.named { "dim" } else { "size" };
        let fault = match (syms[slot], origin[slot]) {
            (Some(other), Some((input, at))) if other != value => {
                let whence = format!("{what} `{}`, which axis {at} of input `{input}` gives", s.name);
                Some((
                    format!("allowed {other} ({whence})"),
                    format!("make both sizes of `{}` equal", s.name),
                ))
            }
            _ if value < s.lo || value > s.hi => {
                let help =
                    "use a size in this range; it is what the model allows, or --dim where that is less";
                Some((format!("allowed {}..={} ({what} `{}`)", s.lo, s.hi, s.name), help.to_string()))
            }
            _ => None,
        };
        if let Some((allowed, help)) = fault {
            let message = format!("input `{}`: axis {axis} is {found}, {allowed}", p.name);
            faults.push(Fault { code: Code::InputDim, message, help });
        } else if syms[slot].is_none() {
            syms[slot] = Some(value);
            origin[slot] = Some((&p.name, axis));
        }
    }
    Error::collect(faults)?;
    let wrong = axes().filter_map(|(p, axis, dim, found)| check_axis(e, p, axis, dim, found, &syms));
    Error::collect(wrong.take(SHOWN).collect())?;
    let bytes: Option<Vec<usize>> = e.inputs.iter().zip(&shapes).map(|(p, s)| byte_len(p.dtype, s)).collect();
    let too_large =
        || Error::new(Code::Size, "an input has more bytes than can be addressed", "use smaller sizes");
    Ok(Solved { syms, bytes: bytes.ok_or_else(too_large)? })
}

fn check_ranks(e: &Entry, shapes: &[Vec<usize>]) -> Result<(), Error> {
    let names = names(e);
    let wrong = e.inputs.iter().zip(shapes).filter(|(p, s)| p.dims.len() != s.len());
    Error::collect(
        wrong
            .map(|(p, s)| {
                let dims: Vec<String> = p.dims.iter().map(|d| d.show(&names)).collect();
                Fault {
                    code: Code::InputRank,
                    message: format!(
                        "input `{}`: shape {s:?} has rank {}, allowed {}",
                        p.name,
                        s.len(),
                        dims.len()
                    ),
                    help: format!("give a tensor of shape [{}]", dims.join(", ")),
                }
            })
            .collect(),
    )
}

fn check_axis(
    e: &Entry,
    p: &Port,
    axis: usize,
    dim: &Expr,
    found: usize,
    syms: &[Option<i64>],
) -> Option<Fault> {
    let value = dim.eval(syms);
    if value.is_ok_and(|v| usize::try_from(v) == Ok(found)) {
        return None;
    }
    let names = names(e);
    let text = dim.show(&names);
    let allowed = match value {
        Ok(v) if matches!(dim, Expr::Const(_)) => v.to_string(),
        Ok(v) => format!("{v} (= {text}{})", values(&names, syms)),
        Err(why) => format!("{text}{}, but {why}", values(&names, syms)),
    };
    Some(Fault {
        code: Code::InputDim,
        message: format!("input `{}`: axis {axis} is {found}, allowed {allowed}", p.name),
        help: "give a tensor of the model's shape".into(),
    })
}

/// ` with batch = 3, seq = 5`, for messages.
fn values(names: &[&str], syms: &[Option<i64>]) -> String {
    let mut known = names.iter().zip(syms).filter_map(|(n, v)| v.map(|v| format!("{n} = {v}")));
    let shown: Vec<String> = known.by_ref().take(SHOWN).collect();
    let more = if known.next().is_some() { ", and more" } else { "" };
    if shown.is_empty() { String::new() } else { format!(" with {}{more}", shown.join(", ")) }
}

/// Checks the guards that have become decidable and were not checked before.
pub(crate) fn check_guards(e: &Entry, syms: &[Option<i64>], done: &mut [bool]) -> Result<(), Error> {
    let names = names(e);
    let mut faults = Vec::new();
    for (g, done) in e.guards.iter().zip(done) {
        if *done {
            continue;
        }
        if faults.len() == SHOWN {
            break;
        }
        let why = match g.pred.eval(syms) {
            Err(ExprError::Unknown(_)) => continue,
            Ok(true) => {
                *done = true;
                continue;
            }
            Ok(false) => "does not hold".to_string(),
            Err(why) => format!("cannot be checked: {why}"),
        };
        faults.push(Fault {
            code: Code::Guard,
            message: format!(
                "the model's condition {} {why}{}: {}",
                g.pred.show(&names),
                values(&names, syms),
                g.message
            ),
            help: "give inputs whose sizes meet the condition".into(),
        });
    }
    Error::collect(faults)
}

/// The program for these sizes, by the variant's number.
pub(crate) fn choose_variant(e: &Entry, syms: &[Option<i64>]) -> Result<usize, Error> {
    let names = names(e);
    for (i, v) in e.variants.iter().enumerate() {
        let holds = match &v.when {
            None => true,
            Some(p) => {
                p.eval(syms).map_err(|why| size_error("a variant's condition", &p.show(&names), why))?
            }
        };
        if !holds {
            continue;
        }
        return match &v.body {
            Ok(_) => Ok(i),
            Err(text) => Err(Error::new(
                Code::Variant,
                format!("the model cannot be run at these sizes{}: {text}", values(&names, syms)),
                "use other sizes",
            )),
        };
    }
    let conditions: Vec<String> =
        e.variants.iter().map(|v| v.when.as_ref().map_or("true".into(), |p| p.show(&names))).collect();
    Err(Error::new(
        Code::Variant,
        format!(
            "no variant of entry `{}` fits these sizes{}; each needs one of: {}",
            e.name,
            values(&names, syms),
            conditions.join("; ")
        ),
        "use other sizes",
    ))
}

fn size_error(what: &str, formula: &str, why: ExprError) -> Error {
    Error::new(Code::Size, format!("{what}, {formula}, has no value: {why}"), "use other sizes")
}

/// A formula's value as a count of things.
fn count(what: &str, formula: &Expr, e: &Entry, syms: &[Option<i64>]) -> Result<u64, Error> {
    let text = || formula.show(&names(e));
    let v = formula.eval(syms).map_err(|why| size_error(what, &text(), why))?;
    u64::try_from(v).map_err(|_| {
        let message = format!("{what}, {}, is {v}{}", text(), values(&names(e), syms));
        Error::new(Code::Size, message, "use other sizes")
    })
}

/// An output's shape, if all symbols in it are known.
pub(crate) fn output_shape(e: &Entry, p: &Port, syms: &[Option<i64>]) -> Result<Option<Vec<usize>>, Error> {
    let mut shape = Vec::new();
    for d in &p.dims {
        if matches!(d.eval(syms), Err(ExprError::Unknown(_))) {
            return Ok(None);
        }
        shape.push(count(&format!("a size of output `{}`", p.name), d, e, syms)? as usize);
    }
    match byte_len(p.dtype, &shape) {
        Some(_) => Ok(Some(shape)),
        None => {
            Err(Error::new(Code::Size, format!("output `{}` of shape {shape:?} is too large", p.name), ""))
        }
    }
}

fn request(b: &Buffer, size: u64, fixed: Option<u64>) -> Request {
    Request { size, align: b.align.into(), first: b.first, last: b.last, class: b.alias, fixed }
}

fn too_large() -> Error {
    Error::new(Code::Memory, "the temporaries need more than 2^63 bytes", "use smaller sizes")
}

/// Where a program's temporaries go when all symbols of its entry are known from the start: what a session does, without
/// one. Temporaries that live in the caller's or the artifact's bytes take no part.
pub fn plan_program(entry: &Entry, program: &Program, syms: &[Option<i64>]) -> Result<Plan, Error> {
    let anchored: Vec<u32> =
        program.buffers.iter().filter(|b| b.kind != BufferKind::Temp).filter_map(|b| b.alias).collect();
    let mut requests = Vec::new();
    for b in program.buffers.iter().filter(|b| b.kind == BufferKind::Temp) {
        let size = count(&format!("the size of buffer `{}`", b.name), &b.size, entry, syms)?;
        if b.alias.is_none_or(|c| !anchored.contains(&c)) {
            requests.push(request(b, size, None));
        }
    }
    plan(&requests).ok_or_else(too_large)
}

/// What sizes and places are computed from.
pub(crate) struct Binder<'a> {
    pub(crate) model: &'a Model,
    pub(crate) entry: &'a Entry,
    pub(crate) program: &'a Program,
    pub(crate) inputs: &'a [usize],
    pub(crate) threads: usize,
}

impl Binder<'_> {
    /// The places of everything that is not temporary.
    pub(crate) fn start(&self) -> Layout {
        let locs = self.program.buffers.iter().map(|b| match b.kind {
            BufferKind::Input(i) => Some(Loc::Input(i)),
            BufferKind::Output(i) => Some(Loc::Output(i)),
            BufferKind::State(i) => Some(Loc::State(i)),
            BufferKind::Weight(i) => Some(Loc::Weight(i)),
            BufferKind::Temp => None,
        });
        Layout { locs: locs.collect(), sizes: vec![None; self.program.buffers.len()], arena: 0 }
    }

    /// The number of the first step of a segment and of the first behind it.
    fn steps(&self, segment: usize) -> (u32, u32) {
        let begin: usize = self.program.segments[..segment].iter().map(|s| s.steps.len()).sum();
        (begin as u32, (begin + self.program.segments[segment].steps.len()) as u32)
    }

    /// Computes the sizes that are known now.
    pub(crate) fn sizes(&self, syms: &[Option<i64>], layout: &mut Layout) -> Result<(), Error> {
        for (b, size) in self.program.buffers.iter().zip(&mut layout.sizes) {
            if size.is_none() && !matches!(b.size.eval(syms), Err(ExprError::Unknown(_))) {
                let v = count(&format!("the size of buffer `{}`", b.name), &b.size, self.entry, syms)?;
                self.check_size(b, v, syms)?;
                *size = Some(v);
            }
        }
        Ok(())
    }

    /// Places the buffers that begin in this segment.
    pub(crate) fn extend(
        &self,
        segment: usize,
        syms: &[Option<i64>],
        layout: &mut Layout,
    ) -> Result<(), Error> {
        self.sizes(syms, layout)?;
        let buffers = &self.program.buffers;
        let (begin, end) = self.steps(segment);
        let begins = |b: &Buffer| b.kind == BufferKind::Temp && (begin..end).contains(&b.first);
        // A class is placed as a whole when its first member begins.
        let mut classes: Vec<u32> = buffers.iter().filter(|b| begins(b)).filter_map(|b| b.alias).collect();
        classes.sort_unstable();
        classes.dedup();
        let joins = |b: &Buffer| b.alias.is_some_and(|c| classes.binary_search(&c).is_ok());
        self.place_in_anchors(layout)?;
        let (mut requests, mut members) = (Vec::new(), Vec::new());
        for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.kind == BufferKind::Temp) {
            let fixed = match layout.locs[i] {
                Some(Loc::Arena(offset)) => Some(offset),
                Some(_) => continue,
                None if begins(b) || joins(b) => None,
                None => continue,
            };
            let unknown = || size_error("the size of a shared buffer", &b.name, ExprError::Unknown(0));
            requests.push(request(b, layout.sizes[i].ok_or_else(unknown)?, fixed));
            members.push(i);
        }
        let placed = plan(&requests).ok_or_else(too_large)?;
        for (i, offset) in members.into_iter().zip(placed.offsets) {
            layout.locs[i] = Some(Loc::Arena(offset));
        }
        layout.arena = layout.arena.max(placed.size);
        Ok(())
    }

    /// Temporaries in a class with a buffer of the caller or the artifact live in its bytes.
    fn place_in_anchors(&self, layout: &mut Layout) -> Result<(), Error> {
        let buffers = &self.program.buffers;
        let mut anchors: Vec<(u32, usize)> = Vec::new();
        for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.kind != BufferKind::Temp) {
            anchors.extend(b.alias.map(|c| (c, i)));
        }
        anchors.sort_unstable();
        for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.kind == BufferKind::Temp) {
            let Some(class) = b.alias else { continue };
            let Ok(found) = anchors.binary_search_by_key(&class, |a| a.0) else { continue };
            let anchor = anchors[found].1;
            layout.locs[i] = layout.locs[anchor];
            if let (Some(size), Some(room)) = (layout.sizes[i], layout.sizes[anchor])
                && size > room
            {
                let (name, of) = (&b.name, &buffers[anchor].name);
                return Err(Error::damaged(format_args!(
                    "buffer `{name}` needs {size} bytes, `{of}` has {room}"
                )));
            }
        }
        Ok(())
    }

    /// What is not temporary must have exactly the size of what it stands for: kernels rely on it.
    fn check_size(&self, b: &Buffer, size: u64, syms: &[Option<i64>]) -> Result<(), Error> {
        let m = self.model.manifest();
        let real = match b.kind {
            BufferKind::Temp => return Ok(()),
            BufferKind::Input(i) => Some(self.inputs[i as usize] as u64),
            BufferKind::Output(i) => {
                let p = &self.entry.outputs[i as usize];
                let shape = output_shape(self.entry, p, syms)?;
                shape.and_then(|s| byte_len(p.dtype, &s)).map(|n| n as u64)
            }
            BufferKind::State(i) => state_len(&m.states[i as usize]),
            BufferKind::Weight(i) => weight_len(&m.weights[i as usize]),
        };
        if real == Some(size) {
            return Ok(());
        }
        Err(Error::damaged(format_args!("buffer `{}` is said to have {size} bytes, it has {real:?}", b.name)))
    }

    /// Evaluates a segment's launches and copies.
    pub(crate) fn ready(
        &self,
        segment: usize,
        syms: &[Option<i64>],
        layout: &Layout,
    ) -> Result<Ready, Error> {
        let mut r = Ready::default();
        for (i, step) in self.program.segments[segment].steps.iter().enumerate() {
            match step {
                Step::Launch { kernel, args, dims, .. } => {
                    self.launch(i, *kernel, args, dims, syms, layout, &mut r)?;
                }
                Step::Copy { src, dst, bytes } => {
                    let n = count("the size of a copy", bytes, self.entry, syms)?;
                    let room = [src, dst].map(|b| layout.sizes[*b as usize].unwrap_or(0));
                    if n > room[0] || n > room[1] {
                        return Err(Error::damaged(format_args!(
                            "a copy of {n} bytes between buffers of {room:?}"
                        )));
                    }
                    let slot = r.slots.len();
                    r.slots.extend([src, dst].map(|b| layout.locs[*b as usize].unwrap_or(Loc::Arena(0))));
                    if n > 0 {
                        r.steps.push(ReadyStep::Copy {
                            src: slot,
                            dst: slot + 1,
                            bytes: n as usize,
                            step: i,
                        });
                        r.costs.push(Cost { flops: Some(0), bytes: n.checked_mul(2) });
                    }
                }
                Step::Opaque { .. } | Step::If { .. } | Step::Loop { .. } => {
                    return Err(Error::new(Code::NotBuilt, "this step is not built yet", ""));
                }
            }
        }
        Ok(r)
    }

    #[allow(clippy::too_many_arguments)]
    fn launch(
        &self,
        step: usize,
        kernel: u32,
        args: &[u32],
        dims: &[Expr],
        syms: &[Option<i64>],
        layout: &Layout,
        r: &mut Ready,
    ) -> Result<(), Error> {
        let Some((func, k)) = self.model.kernel(kernel) else {
            return Err(Error::new(
                Code::Usage,
                "the model was opened for inspection only",
                "open it to run it",
            ));
        };
        let decl = &self.model.manifest().kernels[kernel as usize];
        let name = &decl.name;
        let mut values = Vec::with_capacity(dims.len());
        for d in dims {
            let what = format!("a dim of kernel `{name}`");
            let v = d.eval(syms).map_err(|why| size_error(&what, &d.show(&names(self.entry)), why))?;
            values.push(Some(v));
        }
        let formula = |what: &str, e: &Expr| {
            let v = e
                .eval(&values)
                .map_err(|why| size_error(&format!("{what} of kernel `{name}`"), &e.show(&[]), why))?;
            let negative = || Error::damaged(format_args!("{what} of kernel `{name}` is {v}"));
            u64::try_from(v).map_err(|_| negative())
        };
        let tiles = formula("the tile count", &k.tiles)?;
        // A grain beyond all numbers belongs to work beyond all numbers: any tile is worth a worker.
        let grain = match k.grain.eval(&values) {
            Err(ExprError::Overflow) => 1,
            _ => formula("the grain", &k.grain)?.max(1),
        };
        if tiles == 0 {
            return Ok(());
        }
        let workers = tiles.div_ceil(grain).min(self.threads as u64);
        // Two cache lines apart, so that neighbours' scratch is not fetched along.
        let stride = formula("the scratch", &k.scratch)?.checked_next_multiple_of(128);
        let scratch = stride.and_then(|s| s.checked_mul(workers)).filter(|s| *s <= i64::MAX as u64);
        let Some((stride, scratch)) = stride.zip(scratch) else {
            return Err(Error::new(Code::Memory, format!("the scratch of kernel `{name}` is too large"), ""));
        };
        r.scratch = r.scratch.max(scratch);
        r.steps.push(ReadyStep::Launch {
            func,
            slot: r.slots.len(),
            dims: r.dims.len(),
            tiles: tiles as i64,
            workers: workers as usize,
            least: grain.saturating_mul(PIECE).min(tiles) as i64,
            stride: stride as usize,
            step,
        });
        let known = |e: &Expr| e.eval(&values).ok().and_then(|v| u64::try_from(v).ok());
        r.costs.push(Cost { flops: known(&decl.flops), bytes: known(&decl.bytes) });
        r.slots.extend(args.iter().map(|b| layout.locs[*b as usize].unwrap_or(Loc::Arena(0))));
        r.dims.extend(values.iter().flatten());
        Ok(())
    }

    /// The place of the i64 a segment's symbol comes from.
    pub(crate) fn bind_loc(&self, bind: &Bind, layout: &Layout) -> Result<Loc, Error> {
        let b = bind.buffer as usize;
        match (layout.locs[b], layout.sizes[b]) {
            (Some(loc), Some(8..)) => Ok(loc),
            _ => {
                let name = &self.program.buffers[b].name;
                Err(Error::damaged(format_args!("buffer `{name}` has no room for the i64 it should hold")))
            }
        }
    }
}
