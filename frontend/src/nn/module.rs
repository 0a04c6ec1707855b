//! Modules: structs that hold parameters, buffers, states and other modules. Names come from the fields and are those of
//! PyTorch's `state_dict`.

use super::error::Errors;
use super::tensor::{Repr, Tensor};
use super::trace;
use indexmap::IndexMap;
use std::ops::Deref;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use tgc_ir::diag::Diag;
use tgc_ir::tensor::Tensor as Data;

/// Storage of a parameter, buffer or state.
pub(crate) struct Cell(RwLock<Data>);

impl Cell {
    pub(crate) fn value(&self) -> Data {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn put(&self, to: Data) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = to;
    }
}

/// What a cell is to its module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Trained; in the state dict.
    Param,
    /// Not trained; in the state dict unless `persistent` is false; may be missing in a file if `optional`.
    Buffer { persistent: bool, optional: bool },
    /// Kept between runs of the compiled program; not in the state dict.
    State,
}

macro_rules! cells {
    ($($(#[$doc:meta])* $name:ident, $kind:expr;)*) => { $(
        $(#[$doc])*
        pub struct $name {
            tensor: Tensor,
            kind: Kind,
        }

        impl $name {
            /// Holds a copy of the tensor's value, which must be known (not one of a trace).
            #[track_caller]
            pub fn new(t: impl Into<Tensor>) -> $name {
                let data = t.into().data(Location::caller());
                $name { tensor: Tensor(Repr::Cell(Arc::new(Cell(RwLock::new(data))))), kind: $kind }
            }

            /// The same storage under another name, as tied weights have.
            pub fn tie(&self) -> $name {
                $name { tensor: self.tensor.clone(), kind: self.kind }
            }

            /// Gives it another value. In a trace this is the value from here on in the graph, and the one outside stays.
            #[track_caller]
            pub fn set(&self, to: &Tensor) {
                self.tensor.store(to, Location::caller());
            }
        }

        impl Clone for $name {
            /// An independent copy; see `tie` for shared storage.
            fn clone(&self) -> $name {
                match &self.tensor.0 {
                    Repr::Cell(c) => {
                        let copy = Arc::new(Cell(RwLock::new(c.value())));
                        $name { tensor: Tensor(Repr::Cell(copy)), kind: self.kind }
                    }
                    _ => self.tie(),
                }
            }
        }

        impl Deref for $name {
            type Target = Tensor;
            fn deref(&self) -> &Tensor {
                &self.tensor
            }
        }

        impl Module for $name {
            fn visit(&self, v: &mut Visitor<'_>) {
                if let Repr::Cell(c) = &self.tensor.0 {
                    let path = v.path.clone();
                    (v.found)(Found::Cell { path: &path, cell: c, kind: self.kind });
                }
            }
        }
    )* };
}
cells! {
    /// A trained tensor of a module.
    Param, Kind::Param;
    /// A tensor of a module that is not trained, such as running statistics.
    Buffer, Kind::Buffer { persistent: true, optional: false };
    /// A tensor that a compiled program keeps between its runs, such as a cache.
    State, Kind::State;
}

impl Buffer {
    /// Left out of the state dict.
    pub fn non_persistent(self) -> Buffer {
        Buffer { kind: Kind::Buffer { persistent: false, optional: true }, ..self }
    }

    /// May be missing in a file.
    pub fn optional(self) -> Buffer {
        Buffer { kind: Kind::Buffer { persistent: true, optional: true }, ..self }
    }
}

/// A field for a key that files hold and the module does not need: it is not unexpected when loading.
#[derive(Clone, Debug, Default)]
pub struct IgnoredKey;

impl Module for IgnoredKey {
    fn visit(&self, v: &mut Visitor<'_>) {
        let path = v.path.clone();
        (v.found)(Found::Ignored { path: &path });
    }
}

/// The mode of layers that act differently while training: a field of theirs. New modules are in training mode, as in
/// PyTorch.
#[derive(Debug)]
pub struct Training(AtomicBool);

impl Default for Training {
    fn default() -> Training {
        Training(AtomicBool::new(true))
    }
}

impl Clone for Training {
    fn clone(&self) -> Training {
        Training(AtomicBool::new(self.0.load(Ordering::Relaxed)))
    }
}

impl Training {
    /// True in training mode. A trace of inference refuses that, since forgetting `eval` changes results silently.
    #[track_caller]
    pub fn on(&self) -> bool {
        let at = Location::caller();
        let on = self.0.load(Ordering::Relaxed);
        if on && !trace::allows_training() {
            let d = Diag::error("E-NN-040", "a layer in training mode is traced");
            let help =
                "call model.eval() before trace, or use Program::of(&model).training() if that is meant";
            super::error::report(d.help(help), at);
            return false;
        }
        on
    }

    fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }
}

impl Module for Training {
    fn visit(&self, v: &mut Visitor<'_>) {
        (v.found)(Found::Training(self));
    }
}

pub(crate) enum Found<'a> {
    Module { path: &'a str, address: usize, kind: &'static str },
    Cell { path: &'a str, cell: &'a Arc<Cell>, kind: Kind },
    Training(&'a Training),
    Ignored { path: &'a str },
}

/// Walks a tree of modules; `derive(Module)` calls [`Visitor::child`] for each field.
pub struct Visitor<'a> {
    path: String,
    found: &'a mut dyn FnMut(Found<'_>),
}

impl Visitor<'_> {
    /// Visits a field under its name.
    pub fn child<M: Module + ?Sized>(&mut self, name: &str, m: &M) {
        let len = self.path.len();
        if len > 0 && !name.is_empty() {
            self.path.push('.');
        }
        self.path += name;
        self.here(m);
        self.path.truncate(len);
    }

    fn here<M: Module + ?Sized>(&mut self, m: &M) {
        let address = std::ptr::from_ref(m).cast::<()>() as usize;
        let path = std::mem::take(&mut self.path);
        (self.found)(Found::Module { path: &path, address, kind: m.module_type() });
        self.path = path;
        m.visit(self);
    }
}

pub(crate) fn walk<M: Module + ?Sized>(m: &M, found: &mut dyn FnMut(Found<'_>)) {
    Visitor { path: String::new(), found }.here(m);
}

/// A part of a model. `#[derive(Module)]` writes `visit`; the rest is given.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a module",
    note = "wrap tensors in Param, Buffer or State, derive Module for structs, and mark other fields #[module(skip)]"
)]
pub trait Module {
    /// Visits every field that is a module.
    fn visit(&self, v: &mut Visitor<'_>);

    /// The name of the type.
    fn module_type(&self) -> &'static str {
        std::any::type_name::<Self>()
    }

    /// Parameters by name, tied ones once.
    fn named_parameters(&self) -> IndexMap<String, Param> {
        let mut seen = Vec::new();
        let mut all = IndexMap::new();
        walk(self, &mut |f| {
            if let Found::Cell { path, cell, kind: Kind::Param } = f
                && !seen.contains(&Arc::as_ptr(cell))
            {
                seen.push(Arc::as_ptr(cell));
                let tensor = Tensor(Repr::Cell(cell.clone()));
                all.insert(path.to_string(), Param { tensor, kind: Kind::Param });
            }
        });
        all
    }

    /// Parameters in the order of the fields, tied ones once.
    fn parameters(&self) -> Vec<Param> {
        self.named_parameters().into_values().collect()
    }

    /// Number of elements of all parameters.
    fn num_parameters(&self) -> usize {
        self.parameters().iter().map(|p| p.numel().as_known().unwrap_or(0) as usize).sum()
    }

    /// Values of parameters and persistent buffers under PyTorch's names.
    fn state_dict(&self) -> IndexMap<String, Tensor> {
        let mut all = IndexMap::new();
        walk(self, &mut |f| {
            if let Found::Cell { path, cell, kind: Kind::Param | Kind::Buffer { persistent: true, .. } } = f {
                all.insert(path.to_string(), Tensor(Repr::Held(cell.value())));
            }
        });
        all
    }

    /// Takes values by name: all of them, or none and an error that lists every missing, unexpected and unfit key. Not
    /// `strict`, missing and unexpected ones are passed over. A prefix `module.` that every key has is dropped.
    fn load_state_dict(&self, dict: &IndexMap<String, Tensor>, strict: bool) -> Result<(), Errors> {
        super::state_dict::load(self, dict, strict)
    }

    /// Loads a safetensors file, strictly.
    fn load(&self, path: impl AsRef<std::path::Path>) -> Result<(), Errors>
    where
        Self: Sized,
    {
        self.load_state_dict(&super::state_dict::read(path.as_ref())?, true)
    }

    /// Writes the state dict to a safetensors file.
    fn save(&self, path: impl AsRef<std::path::Path>) -> Result<(), Errors>
    where
        Self: Sized,
    {
        super::state_dict::write(&self.state_dict(), path.as_ref())
    }

    /// Sets training mode, here and below.
    fn train(&self) {
        walk(self, &mut |f| {
            if let Found::Training(t) = f {
                t.set(true);
            }
        });
    }

    /// Sets inference mode, here and below.
    fn eval(&self) {
        walk(self, &mut |f| {
            if let Found::Training(t) = f {
                t.set(false);
            }
        });
    }
}

/// A module that maps one tensor to one: what [`Sequential`](super::layers::Sequential) holds.
pub trait Forward: Module {
    /// The result.
    fn forward(&self, x: &Tensor) -> Tensor;
}

macro_rules! transparent {
    ($($ty:ty),*) => { $(
        impl<M: Module + ?Sized> Module for $ty {
            fn visit(&self, v: &mut Visitor<'_>) {
                v.child("", &**self);
            }
        }
        impl<M: Forward + ?Sized> Forward for $ty {
            #[track_caller]
            fn forward(&self, x: &Tensor) -> Tensor {
                (**self).forward(x)
            }
        }
    )* };
}
transparent!(Box<M>, Arc<M>);

impl<M: Module> Module for Option<M> {
    fn visit(&self, v: &mut Visitor<'_>) {
        if let Some(m) = self {
            v.child("", m);
        }
    }
}

impl<M: Module> Module for [M] {
    fn visit(&self, v: &mut Visitor<'_>) {
        for (i, m) in self.iter().enumerate() {
            v.child(&i.to_string(), m);
        }
    }
}

impl<M: Module> Module for Vec<M> {
    fn visit(&self, v: &mut Visitor<'_>) {
        self.as_slice().visit(v);
    }
}

impl<M: Module, const N: usize> Module for [M; N] {
    fn visit(&self, v: &mut Visitor<'_>) {
        self.as_slice().visit(v);
    }
}

impl<M: Module> Module for IndexMap<String, M> {
    fn visit(&self, v: &mut Visitor<'_>) {
        for (name, m) in self {
            v.child(name, m);
        }
    }
}

/// Children by index: the keys are `0`, `1` and so on.
pub type ModuleList<M> = Vec<M>;

/// Children by name.
pub type ModuleDict<M> = IndexMap<String, M>;

macro_rules! leaves {
    ($($t:ty),*) => { $(
        impl Module for $t {
            fn visit(&self, _: &mut Visitor<'_>) {}
        }
    )* };
}
leaves!(bool, i32, i64, u32, u64, usize, f32, f64, String, &'static str, ());

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => { $(
        impl<$($t: Module),*> Module for ($($t,)*) {
            fn visit(&self, v: &mut Visitor<'_>) {
                $(v.child(stringify!($i), &self.$i);)*
            }
        }
    )* };
}
tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
