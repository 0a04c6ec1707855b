//! Value types of the tensor IR: element types, symbolic dims, predicates over dims, tensor types and facts.
//! No graph structure and no operator knowledge lives here.

mod dim;
mod dtype;
mod fact;
mod pred;
mod symbols;

pub(crate) use dim::is_plain_name;
pub use dim::{Atom, Dim, DimError};
pub use dtype::DType;
pub use fact::{Fact, Known, KnownElem, MAX_KNOWN, Type};
pub use pred::Pred;
pub use symbols::{DEFAULT_MAX, SymInfo, SymTable};
