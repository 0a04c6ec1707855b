//! The frame of a kernel's function: arguments, parameters, the loop over tiles, locals in scratch, stages and sequential
//! loops in order. What a stage does is in stage.rs, reduce.rs and contract.rs.

use super::build::{Build, Emitter, Op, R, V, known};
use super::internal;
use super::target::Target;
use crate::kernel::{Buf, Item, Kernel, Role, reuse};
use crate::schedule::{ChunkSums, Schedule, StageSchedule};
use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::basic_block::BasicBlock;
use inkwell::context::Context;
use inkwell::values::{MetadataValue, PointerValue};
use std::collections::BTreeMap;
use tgc_ir::types::{DType, Dim};

/// Name of the symbol that stands for a tile's first position on a grid axis.
pub(super) fn tile_sym(grid: u32) -> String {
    format!("%tile{grid}")
}

type Scope<'c> = (MetadataValue<'c>, Option<MetadataValue<'c>>);

/// Name of the symbol that stands for the position of a vector's first lane.
pub(super) const LANE: &str = "%lane";

/// A label whose positions are lanes of vectors.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'c> {
    pub(super) label: u32,
    pub(super) width: u32,
    /// Position of the first lane.
    pub(super) base: V<'c>,
    /// Loop depth at which the base is known.
    pub(super) depth: u32,
    /// The base is a multiple of the width.
    pub(super) aligned: bool,
    /// Lanes that stand for positions that exist; None: all.
    pub(super) active: Option<V<'c>>,
}

/// A chunk of a contraction that is summed over the whole tile before the next one.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'c> {
    pub(super) plan: ChunkSums,
    /// First position of the outermost reduction label, and how many.
    pub(super) from: V<'c>,
    pub(super) len: V<'c>,
    /// Nothing is summed yet; nothing follows.
    pub(super) first: V<'c>,
    pub(super) last: V<'c>,
}

/// Emission of one kernel.
pub(super) struct Emit<'c, 'k> {
    pub(super) ir: Build<'c>,
    pub(super) kernel: &'k Kernel,
    pub(super) target: &'k Target,
    pub(super) schedule: &'k Schedule,
    /// First element of each argument and local.
    pub(super) args: Vec<PointerValue<'c>>,
    pub(super) locals: Vec<PointerValue<'c>>,
    pub(super) local_extents: Vec<Vec<Dim>>,
    /// Parameters.
    pub(super) syms: BTreeMap<String, V<'c>>,
    /// Names that stand for values of the place at hand, with the loop depth they are known at: first positions of the
    /// tile (by [`tile_sym`]) and of a vector's first lane ([`LANE`]).
    pub(super) named: BTreeMap<String, (V<'c>, u32)>,
    /// First position and length of the tile on each grid axis.
    pub(super) tile: Vec<(V<'c>, V<'c>)>,
    /// Labels in scope: value and loop depth.
    pub(super) labels: BTreeMap<u32, (V<'c>, u32)>,
    pub(super) depth: u32,
    /// The label run in vectors.
    pub(super) vector: Option<Lanes<'c>>,
    /// The chunk being summed over the tile.
    pub(super) chunk: Option<Chunk<'c>>,
    /// Where sums of chunks are kept.
    pub(super) sums: Option<PointerValue<'c>>,
    /// Number of the register block being built among the rows of its columns, and how many there may be: given for whole
    /// blocks, which are worth more code.
    pub(super) row_block: Option<(V<'c>, i64)>,
    /// Where code is being built that no padding reaches: dims that are at least 0 there, those of the conditions of reads.
    pub(super) inside: Option<Vec<Dim>>,
    /// The innermost reduction label of the contraction being built, if its extent is known, with that extent.
    pub(super) innermost: Option<(u32, i64)>,
    /// Values of the stage's expression, for `$n`.
    pub(super) nodes: Vec<Option<(V<'c>, DType)>>,
    /// Constants in memory that stand in for elements outside.
    pub(super) fills: BTreeMap<(DType, u64, u32), PointerValue<'c>>,
    /// Alias scopes: own, and those it is known not to overlap.
    pub(super) scopes: BTreeMap<Buf, Scope<'c>>,
    traps: BTreeMap<u32, BasicBlock<'c>>,
    next_stage: usize,
}

/// Builds the function of `kernel` in a new module.
pub(super) fn emit<'c, 'k>(
    ctx: &'c Context,
    kernel: &'k Kernel,
    schedule: &'k Schedule,
    target: &'k Target,
) -> R<Build<'c>> {
    let module = ctx.create_module("kernel");
    let (ptr, i64t) = (ctx.ptr_type(AddressSpace::default()), ctx.i64_type());
    let ty = ctx.i32_type().fn_type(&[ptr.into(), ptr.into(), ptr.into(), i64t.into(), i64t.into()], false);
    let func = module.add_function(&kernel.name, ty, None);
    let mut strings = vec![
        ("target-cpu", target.cpu.clone()),
        ("target-features", target.llvm_features.clone()),
        ("prefer-vector-width", (target.isa.vector_bytes * 8).to_string()),
        ("no-builtins", String::new()),
        ("no-jump-tables", "true".to_string()),
        ("frame-pointer", "none".to_string()),
    ];
    if let Some(tune) = &target.tune {
        strings.push(("tune-cpu", tune.clone()));
    }
    for (k, v) in strings {
        func.add_attribute(AttributeLoc::Function, ctx.create_string_attribute(k, &v));
    }
    let nounwind = Attribute::get_named_enum_kind_id("nounwind");
    func.add_attribute(AttributeLoc::Function, ctx.create_enum_attribute(nounwind, 0));
    let slots = ctx.append_basic_block(func, "entry");
    let start = ctx.append_basic_block(func, "");
    let ir = Build { ctx, module, b: ctx.create_builder(), func, slots };
    ir.b.position_at_end(start);
    let mut e = Emit {
        ir,
        kernel,
        target,
        schedule,
        args: Vec::new(),
        locals: Vec::new(),
        local_extents: Vec::new(),
        syms: BTreeMap::new(),
        named: BTreeMap::new(),
        tile: Vec::new(),
        labels: BTreeMap::new(),
        depth: 0,
        vector: None,
        innermost: None,
        chunk: None,
        sums: None,
        row_block: None,
        inside: None,
        nodes: Vec::new(),
        fills: BTreeMap::new(),
        scopes: BTreeMap::new(),
        traps: BTreeMap::new(),
        next_stage: 0,
    };
    e.function()?;
    e.ir.b.position_at_end(slots);
    e.ir.b.build_unconditional_branch(start)?;
    Ok(e.ir)
}

impl<'c> Emit<'c, '_> {
    fn function(&mut self) -> R<()> {
        let params = self.ir.func.get_params();
        let [V::PointerValue(args), V::PointerValue(dims), V::PointerValue(scratch), begin, end] = params[..]
        else {
            return Err(internal(self.kernel, "a function of another type"));
        };
        let k = self.kernel;
        for (i, name) in k.params.iter().enumerate() {
            let i64t = self.ir.i64t().into();
            let p = self.ir.at(i64t, dims, self.ir.i64(i as i64))?;
            let v = self.ir.load(i64t, p, 8)?;
            self.syms.insert(name.to_string(), v);
        }
        for i in 0..k.args.len() {
            let ptr = self.ir.ctx.ptr_type(AddressSpace::default()).into();
            let p = self.ir.at(ptr, args, self.ir.i64(i as i64))?;
            let V::PointerValue(p) = self.ir.load(ptr, p, 8)? else {
                return Err(internal(k, "an argument that is no address"));
            };
            self.args.push(p);
        }
        self.place_locals(scratch)?;
        self.alias_scopes();
        let counts = self.tile_counts()?;
        self.each(begin, end, 1, &mut |e, t| e.one_tile(t, &counts))?;
        let zero = self.ir.ctx.i32_type().const_zero();
        self.ir.b.build_return(Some(&zero))?;
        Ok(())
    }

    fn place_locals(&mut self, scratch: PointerValue<'c>) -> R<()> {
        let offsets = crate::schedule::local_offsets(self.kernel, self.schedule);
        for (i, offset) in offsets.into_iter().enumerate() {
            self.local_extents.push(crate::schedule::local_extents(self.kernel, self.schedule, i));
            let at = self.dim(&offset)?;
            let p = self.ir.at(self.ir.ctx.i8_type().into(), scratch, at)?;
            self.locals.push(p);
        }
        let at = self.dim(&crate::schedule::sums_offset(self.kernel, self.schedule))?;
        self.sums = Some(self.ir.at(self.ir.ctx.i8_type().into(), scratch, at)?);
        Ok(())
    }

    /// Outputs overlap no argument but those they may lie on, locals nothing.
    fn alias_scopes(&mut self) {
        let ctx = self.ir.ctx;
        let shared = reuse::in_place(self.kernel);
        let may_be_one = |a: Buf, b: Buf| match (a, b) {
            (Buf::Arg(a), Buf::Arg(b)) => shared.contains(&(a, b)) || shared.contains(&(b, a)),
            _ => false,
        };
        let domain = ctx.metadata_node(&[ctx.metadata_string(&self.kernel.name).into()]);
        let args =
            self.kernel.args.iter().enumerate().map(|(i, a)| {
                (Buf::Arg(i as u32), matches!(a.role, Role::Out | Role::InOut), format!("a{i}"))
            });
        let locals = (0..self.kernel.locals.len()).map(|i| (Buf::Local(i as u32), true, format!("l{i}")));
        let all: Vec<_> = args
            .chain(locals)
            .map(|(b, own, name)| {
                (b, own, ctx.metadata_node(&[ctx.metadata_string(&name).into(), domain.into()]))
            })
            .collect();
        for (buf, own, scope) in &all {
            let apart = |o: Buf, alone: bool| o != *buf && (*own || alone) && !may_be_one(o, *buf);
            let others: Vec<_> = all.iter().filter(|o| apart(o.0, o.1)).map(|o| o.2.into()).collect();
            let others = (!others.is_empty()).then(|| ctx.metadata_node(&others));
            self.scopes.insert(*buf, (ctx.metadata_node(&[(*scope).into()]), others));
        }
    }

    fn tile_counts(&mut self) -> R<Vec<(V<'c>, V<'c>)>> {
        let mut out = Vec::new();
        for (g, extent) in self.kernel.grid.iter().enumerate() {
            let t = self.tile_size(g);
            let extent = self.extent(extent)?;
            let count = match known(extent) {
                Some(n) => self.ir.i64((n + t - 1) / t),
                None => {
                    let up = self.ir.op(Op::Add, extent, self.ir.i64(t - 1))?;
                    let q = self.ir.op(Op::UDiv, up, self.ir.i64(t))?;
                    self.ir.smax(q, self.ir.i64(1))?
                }
            };
            out.push((extent, count));
        }
        Ok(out)
    }

    /// True if tiles begin at multiples of `width` on a grid axis; other labels begin at 0.
    pub(super) fn tile_multiple(&self, label: u32, width: u32) -> bool {
        (label as usize) >= self.kernel.grid.len() || self.tile_size(label as usize) % i64::from(width) == 0
    }

    fn tile_size(&self, grid: usize) -> i64 {
        i64::from(self.schedule.tiles.get(grid).copied().unwrap_or(1).max(1))
    }

    /// Finds the tile's box (tiles are counted row-major in the schedule's order) and runs the body in it.
    fn one_tile(&mut self, t: V<'c>, counts: &[(V<'c>, V<'c>)]) -> R<()> {
        let mut rest = t;
        let zero = self.ir.i64(0);
        let mut tile = vec![(zero, zero); counts.len()];
        for (i, &g) in self.schedule.order.iter().enumerate().rev() {
            let Some((extent, count)) = counts.get(g as usize) else { continue };
            let size = self.tile_size(g as usize);
            let at = match (known(*count), i) {
                (Some(0 | 1), _) => zero,
                (_, 0) => rest,
                _ => {
                    let at = self.ir.op(Op::URem, rest, *count)?;
                    rest = self.ir.op(Op::UDiv, rest, *count)?;
                    at
                }
            };
            let lo = self.ir.op(Op::Mul, at, self.ir.i64(size))?;
            let len = match (known(*extent), known(at)) {
                (Some(n), Some(0)) => self.ir.i64(n),
                (Some(n), _) if n % size == 0 => self.ir.i64(size),
                _ => {
                    let left = self.ir.op(Op::Sub, *extent, lo)?;
                    self.ir.smin(left, self.ir.i64(size))?
                }
            };
            tile[g as usize] = (lo, len);
            self.named.insert(tile_sym(g), (lo, 1));
        }
        self.tile = tile;
        self.next_stage = 0;
        self.depth = 1;
        self.items(&self.kernel.body)
    }

    fn items(&mut self, items: &[Item]) -> R<()> {
        for item in items {
            match item {
                Item::Stage(s) => {
                    let plan = self.schedule.stages.get(self.next_stage).copied();
                    let plan = plan.unwrap_or(StageSchedule::SCALAR);
                    self.next_stage += 1;
                    self.stage(s, plan)?;
                }
                Item::Loop { var, lo, hi, body } => {
                    let (lo, hi) = (self.dim(lo)?, self.dim(hi)?);
                    let first = self.next_stage;
                    self.each(lo, hi, 1, &mut |e, i| {
                        e.next_stage = first;
                        e.scoped(*var, i, &mut |e| e.items(body))
                    })?;
                    self.next_stage = first + count_stages(body);
                }
            }
        }
        Ok(())
    }

    /// Runs `body` one loop deeper with a label's value.
    pub(super) fn scoped(&mut self, label: u32, v: V<'c>, body: &mut dyn FnMut(&mut Self) -> R<()>) -> R<()> {
        self.depth += 1;
        let r = self.scoped_at(label, (v, self.depth), body);
        self.depth -= 1;
        r
    }

    /// Runs `body` with a label's value, which is known at a loop depth.
    pub(super) fn scoped_at(
        &mut self,
        label: u32,
        v: (V<'c>, u32),
        body: &mut dyn FnMut(&mut Self) -> R<()>,
    ) -> R<()> {
        let before = self.labels.insert(label, v);
        let r = body(self);
        match before {
            Some(b) => self.labels.insert(label, b),
            None => self.labels.remove(&label),
        };
        r
    }

    /// The block that ends the kernel with a site.
    pub(super) fn trap_block(&mut self, site: u32) -> R<BasicBlock<'c>> {
        if let Some(&b) = self.traps.get(&site) {
            return Ok(b);
        }
        let here = self.ir.here()?;
        let block = self.ir.block();
        self.ir.b.position_at_end(block);
        let code = self.ir.ctx.i32_type().const_int(u64::from(site.max(1)), false);
        self.ir.b.build_return(Some(&code))?;
        self.ir.b.position_at_end(here);
        self.traps.insert(site, block);
        Ok(block)
    }
}

fn count_stages(items: &[Item]) -> usize {
    items
        .iter()
        .map(|i| match i {
            Item::Stage(_) => 1,
            Item::Loop { body, .. } => count_stages(body),
        })
        .sum()
}
