//! Programs: entries captured from a model, with the weights and states they share.

use super::error::Errors;
use super::module::Module;
use super::tensor::Tensor;
use super::trace::{Captured, Spec, capture};
use indexmap::IndexMap;
use std::path::Path;
use tgc_ir::diag::Diag;
use tgc_ir::module::{Entry, Module as Ir, State};
use tgc_ir::tensor::Tensor as Data;
use tgc_ir::{interp, verify, weights};

/// What an entry gives: a tensor, or several in tuples, arrays, vectors or maps. A single one is called `output`, others
/// by their position or key.
pub trait Tree {
    /// Adds the tensors with their names.
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>);
    /// The same structure of other tensors, taken in order.
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> Self;
}

fn join(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_string() } else { format!("{name}_{part}") }
}

impl Tree for Tensor {
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
        out.push((if name.is_empty() { "output".to_string() } else { name.to_string() }, self.clone()));
    }
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> Tensor {
        from.next().unwrap_or(Tensor::FAILED)
    }
}

impl<T: Tree> Tree for Vec<T> {
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
        let name = if name.is_empty() { "output" } else { name };
        self.iter().enumerate().for_each(|(i, t)| t.collect(&join(name, &i.to_string()), out));
    }
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> Vec<T> {
        self.iter().map(|t| t.rebuild(from)).collect()
    }
}

impl<T: Tree, const N: usize> Tree for [T; N] {
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
        let name = if name.is_empty() { "output" } else { name };
        self.iter().enumerate().for_each(|(i, t)| t.collect(&join(name, &i.to_string()), out));
    }
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> [T; N] {
        std::array::from_fn(|i| self[i].rebuild(from))
    }
}

impl<T: Tree> Tree for Option<T> {
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
        if let Some(t) = self {
            t.collect(name, out);
        }
    }
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> Option<T> {
        self.as_ref().map(|t| t.rebuild(from))
    }
}

impl<K: AsRef<str> + Clone + std::hash::Hash + Eq, T: Tree> Tree for IndexMap<K, T> {
    fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
        self.iter().for_each(|(k, t)| t.collect(&join(name, k.as_ref()), out));
    }
    fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> IndexMap<K, T> {
        self.iter().map(|(k, t)| (k.clone(), t.rebuild(from))).collect()
    }
}

macro_rules! tuples {
    ($(($($t:ident $i:tt),*))*) => { $(
        impl<$($t: Tree),*> Tree for ($($t,)*) {
            fn collect(&self, name: &str, out: &mut Vec<(String, Tensor)>) {
                let name = if name.is_empty() { "output" } else { name };
                $(self.$i.collect(&join(name, stringify!($i)), out);)*
            }
            fn rebuild(&self, from: &mut dyn Iterator<Item = Tensor>) -> Self {
                ($(self.$i.rebuild(from),)*)
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

/// Nothing.
impl Tree for () {
    fn collect(&self, _: &str, _: &mut Vec<(String, Tensor)>) {}
    fn rebuild(&self, _: &mut dyn Iterator<Item = Tensor>) {}
}

/// Results under names of their own, in this order.
pub fn named<const N: usize>(results: [(&str, Tensor); N]) -> IndexMap<String, Tensor> {
    results.into_iter().map(|(name, t)| (name.to_string(), t)).collect()
}

/// A captured program: what `tgc build` and `tgc export` read, once saved.
pub struct Program {
    module: Ir,
}

/// Captures the model's result of inputs as the specs say, as the entry `forward`.
///
/// ```
/// use tgc_frontend::nn::*;
/// let m = layers::Linear::new(4, 2);
/// m.eval();
/// let program = trace(&m, [spec("x", F32, ("batch", 4))], |m, [x]| m.forward(&x)).unwrap();
/// let y = program.run("forward", &[Tensor::ones((3, 4), F32)]).unwrap();
/// assert_eq!(y[0].shape(), vec![3, 2]);
/// ```
pub fn trace<M: Module + ?Sized, const N: usize, R: Tree>(
    model: &M,
    inputs: [Spec; N],
    f: impl FnOnce(&M, [Tensor; N]) -> R,
) -> Result<Program, Errors> {
    Program::of(model).entry("forward", inputs, f).build()
}

/// Entries under way; see [`Program::of`].
pub struct Builder<'m, M: ?Sized> {
    model: &'m M,
    training: bool,
    module: Ir,
    errors: Vec<Diag>,
}

impl Program {
    /// Begins a program of a model: entries are added, then it is built.
    pub fn of<M: Module + ?Sized>(model: &M) -> Builder<'_, M> {
        Builder { model, training: false, module: Ir::default(), errors: Vec::new() }
    }

    /// The program as the IR has it.
    pub fn module(&self) -> &Ir {
        &self.module
    }

    /// As [`Program::module`], to keep.
    pub fn into_module(self) -> Ir {
        self.module
    }

    /// Writes `.tgir` text, and the weights beside it as safetensors.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Errors> {
        weights::save_module(&self.module, path.as_ref()).map_err(Errors::from)
    }

    /// Runs an entry in the reference interpreter, with the inputs in the order of their specs. States keep their first
    /// values.
    #[track_caller]
    pub fn run(&self, entry: &str, inputs: &[Tensor]) -> Result<Vec<Tensor>, Errors> {
        let at = std::panic::Location::caller();
        let data: Vec<Data> = super::error::catch(|| inputs.iter().map(|t| t.data(at)).collect())?;
        let out = interp::run(&self.module, entry, &data).map_err(Errors::from)?;
        Ok(out.into_iter().map(Tensor::from).collect())
    }
}

impl<M: Module + ?Sized> Builder<'_, M> {
    /// Allows layers in training mode.
    pub fn training(self) -> Self {
        Builder { training: true, ..self }
    }

    /// Captures an entry: `f` gets the model and one tensor an input.
    pub fn entry<const N: usize, R: Tree>(
        mut self,
        name: &str,
        inputs: [Spec; N],
        f: impl FnOnce(&M, [Tensor; N]) -> R,
    ) -> Self {
        if self.module.entries.contains_key(name) {
            let d = Diag::error("E-NN-035", format!("two entries are called `{name}`"));
            self.errors.push(d.help("rename one of them"));
            return self;
        }
        let model = self.model;
        let captured = capture(model, name, &inputs, self.training, |tensors| {
            let mut out = Vec::new();
            let mut tensors = tensors.into_iter();
            f(model, std::array::from_fn(|_| tensors.next().unwrap_or(Tensor::FAILED))).collect("", &mut out);
            out
        });
        match captured {
            Ok(c) => self.take(name, c),
            Err(e) => self.errors.extend(e.diags().iter().cloned()),
        }
        self
    }

    fn take(&mut self, name: &str, c: Captured) {
        for (weight, data) in c.weights {
            match self.module.weights.get(&weight) {
                Some(old) if *old != data => {
                    let m = format!("`{weight}` changed between the entries of one program");
                    self.errors
                        .push(Diag::error("E-NN-036", m).help("set parameters before the first entry"));
                }
                _ => drop(self.module.weights.insert(weight, data)),
            }
        }
        for (state, ty) in c.states {
            self.module.states.insert(state, State { ty });
        }
        self.module.entries.insert(name.to_string(), Entry { variants: Vec::new(), body: c.graph });
    }

    /// The program, or everything that was wrong with its entries.
    pub fn build(self) -> Result<Program, Errors> {
        if !self.errors.is_empty() {
            return Err(Errors::new(self.errors));
        }
        let faults = verify::verify(&self.module);
        match faults.is_empty() {
            true => Ok(Program { module: self.module }),
            false => Err(Errors::new(faults)),
        }
    }
}
