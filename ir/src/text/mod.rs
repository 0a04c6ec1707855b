//! Text form (`.tgir`) of modules and graphs, both ways. What an op is called and which attributes it has comes from the
//! op table; nothing here knows a single op but `input`, `constant` and `weight`, which have a short form.
//!
//! Laws: `print(parse(print(g)))` is `print(g)`; printing is deterministic; no bytes make the parser panic, recurse
//! without bound or allocate more than a small multiple of the text. Node ids are renumbered in text order.
//!
//! Tests of your own graphs can compare [`print_graph`] with a stored text, for example by
//! `insta::assert_snapshot!(tgc_ir::text::print_graph(&graph))`: the text does not depend on node ids or on the machine.
//!
//! ```
//! let g = tgc_ir::text::parse_graph("graph @f(%x: f32[n, 4]) -> f32[n, 4] { %0 = add %x, %x : f32[n, 4] return %0 }");
//! let text = tgc_ir::text::print_graph(&g.unwrap());
//! assert_eq!(text, "graph @f(%x: f32[n, 4]) -> f32[n, 4] {\n  %0 = add %x, %x : f32[n, 4]\n  return %0\n}\n");
//! ```
//!
//! | code | meaning |
//! |---|---|
//! | E-TXT-001 | a token where another is wanted |
//! | E-TXT-002 | characters that are no token |
//! | E-TXT-003 | nested too deep, or too large |
//! | E-TXT-004 | unknown op |
//! | E-TXT-005 | wrong attributes |
//! | E-TXT-006 | a value that is not defined (before), or defined twice |
//! | E-TXT-007 | a type that is not the inferred one, or a wrong number of results |
//! | E-TXT-008 | a symbol that no input and no `dim` line declares |
//! | E-TXT-009 | a name given twice |
//! | E-TXT-010 | a literal that does not fit its type |
//! | E-TXT-011 | a weight without data, or with other data than its line says |

mod cursor;
mod dims;
mod lexer;
mod literal;
mod near;
mod parser;
mod printer;
mod region;

pub use cursor::Cursor;
pub use lexer::Token;
pub use near::near;
pub(crate) use parser::{Parsed, module as parse_stored};
pub(crate) use printer::value_names;
pub use printer::{print_graph, print_module};

use crate::diag::Diag;
use crate::graph::Graph;
use crate::module::Module;
use crate::tensor::Tensor;
#[cfg(test)]
use crate::types::{Dim, Pred};

/// Weights of at most this many elements are written out; others go to the side file.
pub(crate) const INLINE_WEIGHT: usize = 16;

/// Bytes up to which the hash of a weight is checked whenever it is read; above, only on request.
pub(crate) const HASHED_AT_ONCE: usize = 64 << 20;

/// A module from its text; `weights` gives the data of weights that the text holds only by hash. Every error found.
pub fn parse_module(text: &str, weights: &dyn Fn(&str) -> Option<Tensor>) -> Result<Module, Vec<Diag>> {
    parse_stored(text, &|name, _| weights(name)).map(|p| p.module)
}

/// The only graph of a text that has no variants, states or weights. Every error found.
pub fn parse_graph(text: &str) -> Result<Graph, Vec<Diag>> {
    let mut module = parse_module(text, &|_| None)?;
    let only = module.states.is_empty() && module.weights.is_empty() && module.entries.len() == 1;
    match module.entries.pop() {
        Some((_, e)) if only && e.variants.is_empty() => Ok(e.body),
        _ => Err(vec![
            Diag::error("E-TXT-001", "exactly one graph, without variants, states and weights, is wanted")
                .help("read the text as a module"),
        ]),
    }
}

/// A dim such as `2*n + floordiv(m, 4)`.
#[cfg(test)]
pub(crate) fn parse_dim(text: &str) -> Result<Dim, Diag> {
    whole(text, Cursor::dim)
}

/// A condition such as `and(le(1, n), eq(m, 4))`.
#[cfg(test)]
pub(crate) fn parse_pred(text: &str) -> Result<Pred, Diag> {
    whole(text, Cursor::pred)
}

#[cfg(test)]
fn whole<'t, T>(text: &'t str, f: impl FnOnce(&mut Cursor<'t>) -> Result<T, Diag>) -> Result<T, Diag> {
    let mut c = Cursor::new(text);
    let v = f(&mut c)?;
    c.end()?;
    Ok(v)
}

#[cfg(test)]
mod tests;
