//! A whole program: entry points that share states and weights.

use crate::graph::Graph;
use crate::tensor::Tensor;
use crate::types::{Pred, Type};
use indexmap::IndexMap;

/// A persistent value read and written by entries.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    /// Its type. Symbols in it belong to the module and are fixed when the program is loaded.
    pub ty: Type,
}

/// An alternative body of an entry.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Condition over the entry's symbols.
    pub when: Pred,
    /// The body (same inputs and outputs as the entry's), or why this case cannot run.
    pub body: Result<Graph, String>,
}

/// An entry point: the first variant whose condition holds runs, else `body`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Special cases in order of trial.
    pub variants: Vec<Variant>,
    /// The general case; its inputs and outputs are the signature.
    pub body: Graph,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Entry points by name, in order.
    pub entries: IndexMap<String, Entry>,
    /// States by name.
    pub states: IndexMap<String, State>,
    /// Weights by name; graphs refer to them and never copy them.
    pub weights: IndexMap<String, Tensor>,
}

impl Module {
    /// A module with one entry named after the graph.
    pub fn single(body: Graph) -> Module {
        let mut m = Module::default();
        m.entries.insert(body.name.clone(), Entry { variants: Vec::new(), body });
        m
    }

    /// Every graph: bodies and variants of all entries.
    pub fn graphs(&self) -> impl Iterator<Item = &Graph> {
        self.entries
            .values()
            .flat_map(|e| e.variants.iter().filter_map(|v| v.body.as_ref().ok()).chain([&e.body]))
    }

    /// Every graph, mutably.
    pub fn graphs_mut(&mut self) -> impl Iterator<Item = &mut Graph> {
        self.entries
            .values_mut()
            .flat_map(|e| e.variants.iter_mut().filter_map(|v| v.body.as_mut().ok()).chain([&mut e.body]))
    }
}
