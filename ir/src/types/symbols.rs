//! The symbol table of an entry: what each symbolic dim is called, its range and where it came from.

use super::dim::{Atom, Dim};
use indexmap::IndexMap;
use std::sync::Arc;

/// Upper end of a symbol's range when nobody says otherwise (exporters' "to the end" sentinels start here).
pub const DEFAULT_MAX: i64 = 1_000_000_000;

/// What is known of one symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SymInfo {
    /// Smallest value.
    pub lo: i64,
    /// Greatest value, inclusive.
    pub hi: i64,
    /// A named dim is a contract: pinning it to a number is an error. Anonymous ones may be pinned by a guard.
    pub named: bool,
}

impl Default for SymInfo {
    fn default() -> Self {
        SymInfo { lo: 0, hi: DEFAULT_MAX, named: true }
    }
}

/// Symbols of one entry in order of declaration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SymTable {
    map: IndexMap<Arc<str>, SymInfo>,
}

impl SymTable {
    /// Declares or redeclares `name`.
    pub fn insert(&mut self, name: &str, info: SymInfo) {
        self.map.insert(Arc::from(name), info);
    }

    /// What is known of `name`.
    pub fn get(&self, name: &str) -> Option<&SymInfo> {
        self.map.get(name)
    }

    /// Mutable access, to narrow or widen a range.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut SymInfo> {
        self.map.get_mut(name)
    }

    /// Symbols in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &SymInfo)> {
        self.map.iter()
    }

    /// Number of symbols.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// True without symbols.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Position of `name`, the runtime's slot number.
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.map.get_index_of(name)
    }

    /// A name not yet taken, `base` itself when free.
    pub fn fresh(&self, base: &str) -> String {
        if !self.map.contains_key(base) {
            return base.to_string();
        }
        (1..).map(|i| format!("{base}_{i}")).find(|n| !self.map.contains_key(n.as_str())).unwrap_or_default()
    }

    /// Range of an atom: the declared one for symbols, all integers for others.
    pub fn atom_range(&self, atom: &Atom) -> (i128, i128) {
        match atom {
            Atom::Sym(s) => match self.get(s) {
                Some(i) => (i128::from(i.lo), i128::from(i.hi)),
                None => (0, i128::from(DEFAULT_MAX)),
            },
            _ => (-Dim::FAR, Dim::FAR),
        }
    }

    /// Interval that holds every value of `dim` for symbols in range.
    pub fn range(&self, dim: &Dim) -> (i128, i128) {
        dim.interval(&|a| self.atom_range(a))
    }

    /// `a <= b` for every assignment in range (false when it cannot be shown).
    pub(crate) fn proves_le(&self, a: &Dim, b: &Dim) -> bool {
        self.range(&(b.clone() - a.clone())).0 >= 0
    }

    /// Some(name) when `dim` is exactly one named symbol.
    pub fn as_named<'a>(&self, dim: &'a Dim) -> Option<&'a Arc<str>> {
        dim.as_sym().filter(|s| self.get(s).is_some_and(|i| i.named))
    }
}
