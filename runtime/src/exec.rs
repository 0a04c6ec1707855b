//! Walks a ready segment: calls kernels over their tiles, copies. The one place where buffers' pointers are followed.
//! What must not be here: how sizes
//! and places are found (bind.rs), checks of what a caller gives (session.rs).
#![allow(unsafe_code)]

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::abi::Ptr;
use crate::bind::{self, Binder, Layout, Loc, Ready, ReadyStep};
use crate::claims::{Claims, part};
use crate::error::{Code, Error};
use crate::format::{Program, Step};
use crate::load::Model;
use crate::session::{Memory, make_outputs};
use crate::tensor::Tensor;
use crate::threads::Pool;

/// Why a segment stopped.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// The step of this number in its segment failed at this site.
    Site { step: usize, site: u32 },
    /// A worker thread panicked.
    Panic,
}

/// One step of a run as it went, see `Session::profile`.
#[derive(Clone, Copy, Debug)]
pub struct StepTime {
    /// The segment in the program, and the step in the segment.
    pub segment: usize,
    /// See `segment`.
    pub step: usize,
    /// When it began.
    pub began: Instant,
    /// How long it took.
    pub time: Duration,
    /// Operations on elements, if known.
    pub flops: Option<u64>,
    /// Bytes of the buffers it touches, each counted once, if known.
    pub bytes: Option<u64>,
    /// Threads it was given to.
    pub workers: usize,
}

/// Looks on while steps run. What does not look costs nothing: the walk is compiled for each kind of watch.
pub(crate) trait Watch {
    /// What is remembered while a step runs.
    type Mark;

    fn before(&self) -> Self::Mark;

    /// The step at this place in `ready`, of this segment, is done.
    fn after(&mut self, mark: Self::Mark, segment: usize, ready: &Ready, at: usize);
}

/// Nobody looks.
pub(crate) struct Unwatched;

impl Watch for Unwatched {
    type Mark = ();

    fn before(&self) {}

    fn after(&mut self, (): (), _: usize, _: &Ready, _: usize) {}
}

/// Takes the time of every step.
pub(crate) struct Timed<'a>(pub(crate) &'a mut dyn FnMut(&StepTime));

impl Watch for Timed<'_> {
    type Mark = Instant;

    fn before(&self) -> Instant {
        Instant::now()
    }

    fn after(&mut self, began: Instant, segment: usize, ready: &Ready, at: usize) {
        let time = began.elapsed();
        let (step, workers) = match ready.steps[at] {
            ReadyStep::Launch { step, workers, .. } => (step, workers),
            ReadyStep::Copy { step, .. } => (step, 1),
        };
        let cost = ready.costs[at];
        (self.0)(&StepTime { segment, step, began, time, flops: cost.flops, bytes: cost.bytes, workers });
    }
}

/// Runs the steps in order.
///
/// # Safety
/// `table` holds for every slot of `ready` a pointer to as many bytes as binding computed for its buffer, valid for the
/// whole call and for writes where validation allows writes, used by nobody else meanwhile; `scratch` points to
/// `ready.scratch` bytes, likewise.
unsafe fn run<W: Watch>(
    segment: usize,
    ready: &Ready,
    table: &[Ptr],
    scratch: Ptr,
    (pool, claims): (&Pool, &Claims),
    watch: &mut W,
) -> Result<(), Stop> {
    for (at, step) in ready.steps.iter().enumerate() {
        let mark = watch.before();
        match *step {
            ReadyStep::Copy { src, dst, bytes, .. } => {
                // SAFETY: both have at least `bytes` bytes (checked when bound); they may overlap.
                unsafe { std::ptr::copy(table[src].0, table[dst].0, bytes) };
            }
            ReadyStep::Launch { func, slot, dims, tiles, workers, least, stride, step } => {
                let (args, dims) = (&table[slot..], &ready.dims[dims..]);
                // The least (first tile, site): a call stops at its first failing tile, so this is the lowest failing tile's
                // site, whatever the timing.
                let failed = Mutex::new(None::<(i64, u32)>);
                let call = |w: usize, begin: i64, end: i64| {
                    let scratch = scratch.offset(w * stride).0;
                    // SAFETY: the pointers are good by this function's contract, in the order and number the kernel declares;
                    // workers get disjoint tiles and scratch, and a kernel's stores are disjoint between tiles.
                    let code = unsafe { func(args.as_ptr().cast(), dims.as_ptr(), scratch, begin, end) };
                    if code != 0 {
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        let this = (begin, code as u32);
                        *failed = Some(failed.map_or(this, |f| f.min(this)));
                    }
                };
                let done = if workers == 1 {
                    call(0, 0, tiles);
                    true
                } else if tiles / workers as i64 <= least {
                    // Too little to cut: one piece each.
                    pool.run(workers, &|w| {
                        let (begin, end) = part(tiles, workers, w);
                        call(w, begin, end);
                    })
                } else {
                    claims.share(tiles, workers);
                    pool.run(workers, &|w| claims.work(w, workers, least, |begin, end| call(w, begin, end)))
                };
                if !done {
                    return Err(Stop::Panic);
                }
                if let Some((_, site)) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
                    return Err(Stop::Site { step, site });
                }
            }
        }
        watch.after(mark, segment, ready, at);
    }
    Ok(())
}

/// Reads the i64 a segment's symbol gets.
///
/// # Safety
/// `at` points to at least 8 readable bytes that nobody writes meanwhile.
unsafe fn read_i64(at: Ptr) -> i64 {
    // SAFETY: by this function's contract; a caller's input may be aligned to anything.
    i64::from_le(unsafe { at.0.cast::<i64>().read_unaligned() })
}

/// What is known when a segment is reached.
pub(crate) struct Progress {
    pub(crate) syms: Vec<Option<i64>>,
    pub(crate) guards: Vec<bool>,
    pub(crate) layout: Layout,
}

/// Binds and runs the segments from `next` on, whose sizes come from data.
pub(crate) fn run_rest<W: Watch>(
    binder: &Binder<'_>,
    next: usize,
    progress: Progress,
    at: &mut Pointers<'_>,
    mut made: Option<&mut Vec<Option<Tensor>>>,
    pool: &Pool,
    watch: &mut W,
) -> Result<(), Error> {
    let (entry, program) = (binder.entry, binder.program);
    let Progress { mut syms, mut guards, mut layout } = progress;
    for i in next..program.segments.len() {
        binder.sizes(&syms, &mut layout)?;
        for b in &program.segments[i].binds {
            let from = at.find(binder.bind_loc(b, &layout)?);
            // SAFETY: the buffer has at least 8 bytes (`bind_loc`) and no kernel is running.
            let value = unsafe { read_i64(from) };
            let s = &entry.symbols[b.symbol as usize];
            if value < s.lo || value > s.hi {
                let name = &program.buffers[b.buffer as usize].name;
                let text =
                    format!("size `{}` is {value} (from `{name}`), allowed {}..={}", s.name, s.lo, s.hi);
                return Err(Error::new(
                    Code::Data,
                    text,
                    "the data given leads to a size the model does not allow",
                ));
            }
            syms[b.symbol as usize] = Some(value);
        }
        bind::check_guards(entry, &syms, &mut guards)?;
        binder.extend(i, &syms, &mut layout)?;
        let ready = binder.ready(i, &syms, &layout)?;
        if let Some(made) = made.as_deref_mut() {
            let shapes = entry.outputs.iter().map(|p| bind::output_shape(entry, p, &syms));
            let shapes = shapes.collect::<Result<Vec<_>, _>>()?;
            make_outputs(entry, &shapes, made, at.outputs)?;
        }
        at.memory.ensure(layout.arena, ready.scratch)?;
        let table: Vec<Ptr> = ready.slots.iter().map(|loc| at.find(*loc)).collect();
        run_segment(program, i, &ready, &table, at, pool, watch)?;
    }
    Ok(())
}

/// Runs a segment whose table is filled, and explains a failure.
pub(crate) fn run_segment<W: Watch>(
    program: &Program,
    segment: usize,
    ready: &Ready,
    table: &[Ptr],
    at: &mut Pointers<'_>,
    pool: &Pool,
    watch: &mut W,
) -> Result<(), Error> {
    let scratch = Ptr(at.memory.scratch.as_mut_ptr());
    let threads = (pool, &at.memory.claims);
    // SAFETY: `table` was made from `ready.slots` by `Pointers::find` after the last move of the arena: arena places lie
    // inside it (`ensure`), inputs and outputs were checked for length and are borrowed for this call, outputs mutably, so
    // none overlaps another; weights and states belong to the model and the session, which is borrowed mutably.
    let stop = match unsafe { run(segment, ready, table, scratch, threads, watch) } {
        Ok(()) => return Ok(()),
        Err(stop) => stop,
    };
    let Stop::Site { step, site } = stop else {
        return Err(Error::new(Code::Threads, "a worker thread panicked", ""));
    };
    let sites = match &program.segments[segment].steps[step] {
        Step::Launch { sites, .. } => &sites[..],
        _ => &[],
    };
    let Some(s) = (site as usize).checked_sub(1).and_then(|i| sites.get(i)) else {
        return Err(Error::damaged(format_args!(
            "a kernel failed with code {site}, which means nothing here"
        )));
    };
    let place = if s.source.is_empty() { String::new() } else { format!(" at {}", s.source) };
    Err(Error::new(
        Code::Data,
        format!("node `{}` ({}){place}: {}", s.node, s.op, s.message),
        "check the input data that reaches this node",
    ))
}

/// Turns places into pointers.
pub(crate) struct Pointers<'a> {
    pub(crate) model: &'a Model,
    pub(crate) memory: &'a mut Memory,
    pub(crate) inputs: &'a [Ptr],
    pub(crate) outputs: &'a mut [Ptr],
}

impl Pointers<'_> {
    pub(crate) fn find(&mut self, loc: Loc) -> Ptr {
        match loc {
            Loc::Arena(offset) => Ptr(self.memory.arena.as_mut_ptr()).offset(offset as usize),
            Loc::Input(i) => self.inputs[i as usize],
            Loc::Output(i) => self.outputs[i as usize],
            Loc::State(i) => Ptr(self.memory.states[i as usize].as_mut_ptr()),
            Loc::Weight(i) => self.model.weight_ptr(i as usize),
        }
    }
}
