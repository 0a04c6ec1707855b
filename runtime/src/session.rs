//! One user of a model's entry: its bindings, memory and states, and the calls that run it. What must not be here: how sizes
//! are computed (bind.rs) or kernels called (exec.rs).

use std::sync::Arc;

use crate::abi::Ptr;
use crate::bind::{self, Binder, Layout, Loc, Ready};
use crate::claims::Claims;
use crate::error::{Code, Error, Fault};
use crate::exec::{self, Pointers, Progress, StepTime, Timed, Unwatched, Watch};
use crate::format::{Entry, Port, Program};
use crate::load::Model;
use crate::tensor::{AlignedBytes, Tensor, byte_len};
use crate::threads::Pool;
use crate::validate::state_len;

/// How many bindings a session keeps.
const CACHED: usize = 8;
const ONE_EACH: &str = "give one buffer for each, in the entry's order";

/// Choices for a session.
#[derive(Clone, Default)]
pub struct SessionOptions {
    /// Threads in a pool of its own; the process's pool without.
    pub threads: Option<usize>,
    /// A pool to share; it takes precedence over `threads`.
    pub pool: Option<Arc<Pool>>,
    /// The greatest number of bytes for temporaries, scratch and states together.
    pub mem_limit: Option<u64>,
}

/// A model's entry ready to be called again and again. States live here, from their initial values on.
pub struct Session {
    model: Arc<Model>,
    entry: usize,
    pool: Arc<Pool>,
    /// Most recently used last; the last one is current if `bound`.
    cache: Vec<Binding>,
    bound: bool,
    memory: Memory,
    inputs: Vec<Ptr>,
    outputs: Vec<Ptr>,
}

/// What the session owns and kernels work in.
pub(crate) struct Memory {
    pub(crate) arena: AlignedBytes,
    pub(crate) scratch: AlignedBytes,
    pub(crate) states: Vec<AlignedBytes>,
    pub(crate) claims: Claims,
    /// Counts moves of the arena: pointer tables of an older count are stale.
    moves: u64,
    limit: Option<u64>,
}

/// Everything computed from one tuple of input shapes.
struct Binding {
    shapes: Vec<Option<Vec<usize>>>,
    bytes: Vec<usize>,
    syms: Vec<Option<i64>>,
    guards: Vec<bool>,
    variant: usize,
    layout: Layout,
    /// The first segment, unless it waits for data.
    first: Option<Ready>,
    table: Vec<Ptr>,
    moves: u64,
    outputs: Vec<Option<Vec<usize>>>,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session(entry {}, {} bindings)", self.entry().name, self.cache.len())
    }
}

impl Session {
    /// A session for the entry of this name.
    pub fn new(model: &Arc<Model>, entry: &str, options: &SessionOptions) -> Result<Session, Error> {
        let found = model.entry(entry)?;
        if model.image().is_none() {
            return Err(Error::new(
                Code::Usage,
                "the model was opened for inspection only",
                "open it to run it",
            ));
        }
        let m = model.manifest();
        let pool = match (&options.pool, options.threads) {
            (Some(pool), _) => pool.clone(),
            (None, Some(n)) => Arc::new(Pool::new(n)?),
            (None, None) => Pool::global()?,
        };
        let total = m.states.iter().try_fold(0u64, |n, s| n.checked_add(state_len(s)?));
        let mut memory = Memory {
            arena: AlignedBytes::zeroed(0)?,
            scratch: AlignedBytes::zeroed(0)?,
            states: Vec::new(),
            claims: Claims::new(pool.threads()),
            moves: 0,
            limit: options.mem_limit,
        };
        memory.allow(total.unwrap_or(u64::MAX))?;
        for s in &m.states {
            let mut bytes = AlignedBytes::zeroed(state_len(s).unwrap_or(0) as usize)?;
            if let Some(w) = s.init {
                bytes.as_mut_slice().copy_from_slice(model.weight(w as usize));
            }
            memory.states.push(bytes);
        }
        Ok(Session {
            model: model.clone(),
            entry: m.entries.iter().position(|e| e.name == entry).unwrap_or(0),
            pool,
            cache: Vec::new(),
            bound: false,
            memory,
            inputs: vec![Ptr::NONE; found.inputs.len()],
            outputs: vec![Ptr::NONE; found.outputs.len()],
        })
    }

    /// The entry it runs.
    pub fn entry(&self) -> &Entry {
        &self.model.manifest().entries[self.entry]
    }

    /// Computes everything for these input shapes, unless it is known already. Inputs with a default may be left out.
    pub fn bind(&mut self, shapes: &[(&str, &[usize])]) -> Result<(), Error> {
        let found = bind::by_input(self.entry(), shapes)?;
        let shapes: Vec<Option<&[usize]>> = found.into_iter().map(|s| s.copied()).collect();
        self.bind_ordered(&shapes)
    }

    fn bind_ordered(&mut self, shapes: &[Option<&[usize]>]) -> Result<(), Error> {
        self.bound = false;
        let same = |b: &Binding| b.shapes.iter().map(Option::as_deref).eq(shapes.iter().copied());
        if let Some(i) = self.cache.iter().position(same) {
            self.cache[i..].rotate_left(1);
            self.bound = true;
            return Ok(());
        }
        let entry = &self.model.manifest().entries[self.entry];
        let solved = bind::solve(self.model.manifest(), entry, shapes)?;
        let mut guards = vec![false; entry.guards.len()];
        bind::check_guards(entry, &solved.syms, &mut guards)?;
        let variant = bind::choose_variant(entry, &solved.syms)?;
        let program = program(entry, variant)?;
        let binder = Binder {
            model: &self.model,
            entry,
            program,
            inputs: &solved.bytes,
            threads: self.pool.threads(),
        };
        let mut layout = binder.start();
        let mut first = None;
        if program.segments.first().is_some_and(|s| s.binds.is_empty()) {
            binder.extend(0, &solved.syms, &mut layout)?;
            let ready = binder.ready(0, &solved.syms, &layout)?;
            self.memory.ensure(layout.arena, ready.scratch)?;
            first = Some(ready);
        }
        let outputs = entry.outputs.iter().map(|p| bind::output_shape(entry, p, &solved.syms));
        let outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        if self.cache.len() == CACHED {
            self.cache.remove(0);
        }
        self.cache.push(Binding {
            shapes: shapes.iter().map(|s| s.map(<[usize]>::to_vec)).collect(),
            bytes: solved.bytes,
            syms: solved.syms,
            guards,
            variant,
            layout,
            table: vec![Ptr::NONE; first.as_ref().map_or(0, |r| r.slots.len())],
            first,
            moves: u64::MAX,
            outputs,
        });
        self.bound = true;
        Ok(())
    }

    fn current(&self) -> Result<&Binding, Error> {
        let unbound =
            || Error::new(Code::Usage, "the session is not bound to input shapes", "call `bind` first");
        self.cache.last().filter(|_| self.bound).ok_or_else(unbound)
    }

    /// The shape of output `i` for the bound input shapes; `None` if it depends on data.
    pub fn output_shape(&self, i: usize) -> Option<&[usize]> {
        self.current().ok()?.outputs.get(i)?.as_deref()
    }

    /// The program that the bound input shapes chose.
    pub fn program(&self) -> Option<&Program> {
        program(self.entry(), self.current().ok()?.variant).ok()
    }

    /// Bytes the session holds for temporaries, scratch and states.
    pub fn memory(&self) -> u64 {
        self.memory.held(self.memory.arena.len() as u64, self.memory.scratch.len() as u64)
    }

    /// Runs the entry on the bound shapes, buffers in the entry's order: dense row-major, aligned to their elements. An input
    /// bound to its default is `None`. The borrows see to it that outputs overlap neither inputs nor each other. What is in
    /// the outputs after an error is unspecified. Sizes that depend on data need
    /// `run_bound` or `run_owned`.
    pub fn run(&mut self, inputs: &[Option<&[u8]>], outputs: &mut [&mut [u8]]) -> Result<(), Error> {
        self.set_buffers(inputs, outputs)?;
        self.execute(None, &mut Unwatched)
    }

    /// As `run`, and tells of every step when it is done. Taking the times makes a run slower.
    pub fn profile(
        &mut self,
        inputs: &[Option<&[u8]>],
        outputs: &mut [&mut [u8]],
        each: &mut dyn FnMut(&StepTime),
    ) -> Result<(), Error> {
        self.set_buffers(inputs, outputs)?;
        self.execute(None, &mut Timed(each))
    }

    /// As `run`, and makes the outputs, also those whose shapes depend on data; they come in the entry's order, with their
    /// names.
    pub fn run_bound(&mut self, inputs: &[Option<&[u8]>]) -> Result<Vec<(String, Tensor)>, Error> {
        self.check_inputs(inputs)?;
        self.set_inputs(inputs.iter().copied());
        self.make()
    }

    /// Binds to the shapes of these tensors and runs; outputs come in the entry's order, with their names.
    pub fn run_owned(&mut self, inputs: &[(&str, &Tensor)]) -> Result<Vec<(String, Tensor)>, Error> {
        let found = bind::by_input(self.entry(), inputs)?;
        let wrong = self.entry().inputs.iter().zip(&found).filter_map(|(p, t)| {
            let found = t.filter(|t| t.dtype() != p.dtype)?.dtype();
            Some(Fault {
                code: Code::InputDtype,
                message: format!("input `{}` is {found}, allowed {}", p.name, p.dtype),
                help: format!("convert it to {}", p.dtype),
            })
        });
        Error::collect(wrong.collect())?;
        let shapes: Vec<Option<&[usize]>> = found.iter().map(|t| t.map(|t| t.shape())).collect();
        self.bind_ordered(&shapes)?;
        self.set_inputs(found.iter().map(|t| t.map(|t| t.bytes())));
        self.make()
    }

    /// Runs on the inputs that are set, into outputs made for them.
    fn make(&mut self) -> Result<Vec<(String, Tensor)>, Error> {
        self.outputs.fill(Ptr::NONE);
        let mut made: Vec<Option<Tensor>> = self.outputs.iter().map(|_| None).collect();
        self.execute(Some(&mut made), &mut Unwatched)?;
        let entry = self.entry();
        let named = entry.outputs.iter().zip(made).filter_map(|(p, t)| Some((p.name.clone(), t?)));
        Ok(named.collect())
    }

    fn set_buffers(&mut self, inputs: &[Option<&[u8]>], outputs: &mut [&mut [u8]]) -> Result<(), Error> {
        let entry = self.entry();
        if inputs.len() != entry.inputs.len() || outputs.len() != entry.outputs.len() {
            let (i, o) = (entry.inputs.len(), entry.outputs.len());
            let text =
                format!("{} inputs and {} outputs given, allowed {i} and {o}", inputs.len(), outputs.len());
            return Err(Error::new(Code::CallerBuffer, text, ONE_EACH));
        }
        self.check_inputs(inputs)?;
        self.check_outputs(outputs)?;
        self.set_inputs(inputs.iter().copied());
        for (p, b) in self.outputs.iter_mut().zip(outputs) {
            *p = Ptr(b.as_mut_ptr());
        }
        Ok(())
    }

    fn set_inputs<'a>(&mut self, inputs: impl Iterator<Item = Option<&'a [u8]>>) {
        for (p, b) in self.inputs.iter_mut().zip(inputs) {
            *p = b.map_or(Ptr::NONE, |b| Ptr(b.as_ptr().cast_mut()));
        }
    }

    fn check_inputs(&self, inputs: &[Option<&[u8]>]) -> Result<(), Error> {
        let (binding, entry) = (self.current()?, self.entry());
        let refuse = |text: String, help: &str| Err(Error::new(Code::CallerBuffer, text, help));
        if inputs.len() != entry.inputs.len() {
            let text = format!("{} inputs given, allowed {}", inputs.len(), entry.inputs.len());
            return refuse(text, ONE_EACH);
        }
        for (i, (p, b)) in entry.inputs.iter().zip(inputs).enumerate() {
            if b.is_some() != binding.shapes[i].is_some() {
                return refuse(
                    format!("input `{}` is given in one of `bind` and `run` only", p.name),
                    "bind again",
                );
            }
            let Some(b) = b else { continue };
            if b.len() != binding.bytes[i] {
                let text = format!("input `{}` has {} bytes, allowed {}", p.name, b.len(), binding.bytes[i]);
                return refuse(text, "give the dense elements of the bound shape");
            }
            if !aligned(b, p) {
                return refuse(format!("input `{}` is not aligned to its elements", p.name), "copy it");
            }
        }
        Ok(())
    }

    fn check_outputs(&self, outputs: &[&mut [u8]]) -> Result<(), Error> {
        let (binding, entry) = (self.current()?, self.entry());
        let refuse = |text: String, help: &str| Err(Error::new(Code::CallerBuffer, text, help));
        for (i, (p, b)) in entry.outputs.iter().zip(outputs).enumerate() {
            let Some(shape) = &binding.outputs[i] else {
                return refuse(
                    format!("the shape of output `{}` depends on data", p.name),
                    "use `run_owned` or `run_bound`",
                );
            };
            let len = byte_len(p.dtype, shape);
            if len != Some(b.len()) {
                let text = format!("output `{}` has {} bytes, its shape is {shape:?}", p.name, b.len());
                return refuse(text, "give room for exactly the elements");
            }
            if !aligned(b, p) {
                return refuse(format!("output `{}` is not aligned to its elements", p.name), "copy it");
            }
        }
        Ok(())
    }

    /// Runs the current binding; `self.inputs` and `self.outputs` are set, or outputs are made into `made`.
    fn execute<W: Watch>(
        &mut self,
        mut made: Option<&mut Vec<Option<Tensor>>>,
        watch: &mut W,
    ) -> Result<(), Error> {
        self.current()?;
        let entry = &self.model.manifest().entries[self.entry];
        let Some(binding) = self.cache.last_mut() else { return Ok(()) };
        for (i, p) in entry.inputs.iter().enumerate() {
            if let (None, Some(w)) = (&binding.shapes[i], p.default) {
                self.inputs[i] = self.model.weight_ptr(w as usize);
            }
        }
        if let Some(made) = made.as_deref_mut() {
            make_outputs(entry, &binding.outputs, made, &mut self.outputs)?;
        }
        let program = program(entry, binding.variant)?;
        let mut at = Pointers {
            model: &self.model,
            memory: &mut self.memory,
            inputs: &self.inputs,
            outputs: &mut self.outputs,
        };
        let mut next = 0;
        if let Some(ready) = &binding.first {
            at.memory.ensure(binding.layout.arena, ready.scratch)?;
            let stale = binding.moves != at.memory.moves;
            for (p, loc) in binding.table.iter_mut().zip(&ready.slots) {
                if stale || matches!(loc, Loc::Input(_) | Loc::Output(_)) {
                    *p = at.find(*loc);
                }
            }
            binding.moves = at.memory.moves;
            exec::run_segment(program, 0, ready, &binding.table, &mut at, &self.pool, watch)?;
            next = 1;
        }
        if next == program.segments.len() {
            return Ok(());
        }
        let threads = self.pool.threads();
        let binder = Binder { model: &self.model, entry, program, inputs: &binding.bytes, threads };
        let (syms, guards, layout) = (binding.syms.clone(), binding.guards.clone(), binding.layout.clone());
        exec::run_rest(&binder, next, Progress { syms, guards, layout }, &mut at, made, &self.pool, watch)
    }
}

fn aligned(bytes: &[u8], port: &Port) -> bool {
    bytes.is_empty() || bytes.as_ptr().addr().is_multiple_of(port.dtype.size())
}

fn program(entry: &Entry, variant: usize) -> Result<&Program, Error> {
    let body = entry.variants.get(variant).map(|v| &v.body);
    let Some(Ok(program)) = body else {
        return Err(Error::new(Code::Variant, "the variant has no program", ""));
    };
    Ok(program)
}

/// Makes the outputs whose shapes are known and that are not there yet.
pub(crate) fn make_outputs(
    entry: &Entry,
    shapes: &[Option<Vec<usize>>],
    made: &mut [Option<Tensor>],
    pointers: &mut [Ptr],
) -> Result<(), Error> {
    for (i, p) in entry.outputs.iter().enumerate() {
        if let (Some(shape), None) = (&shapes[i], &made[i]) {
            let mut t = Tensor::zeros(p.dtype, shape)?;
            pointers[i] = Ptr(t.bytes_mut().as_mut_ptr());
            made[i] = Some(t);
        }
    }
    Ok(())
}

impl Memory {
    fn held(&self, arena: u64, scratch: u64) -> u64 {
        let states: u64 = self.states.iter().map(|s| s.len() as u64).sum();
        arena.saturating_add(scratch).saturating_add(states)
    }

    fn allow(&self, needed: u64) -> Result<(), Error> {
        match self.limit {
            Some(limit) if needed > limit => Err(Error::new(
                Code::Memory,
                format!("{needed} bytes of memory are needed at these sizes, allowed {limit}"),
                "raise the limit, or use smaller sizes",
            )),
            _ => Ok(()),
        }
    }

    /// Makes room for this much, keeping what is in the arena.
    pub(crate) fn ensure(&mut self, arena: u64, scratch: u64) -> Result<(), Error> {
        self.allow(self.held(arena, scratch))?;
        if arena > self.arena.len() as u64 {
            let mut larger = AlignedBytes::zeroed(arena as usize)?;
            larger.as_mut_slice()[..self.arena.len()].copy_from_slice(self.arena.as_slice());
            self.arena = larger;
            self.moves += 1;
        }
        if scratch > self.scratch.len() as u64 {
            self.scratch = AlignedBytes::zeroed(0)?;
            self.scratch = AlignedBytes::zeroed(scratch as usize)?;
        }
        Ok(())
    }
}
