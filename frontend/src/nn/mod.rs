//! Models in plain Rust, the way one writes PyTorch: tensors, modules, layers, and the capture of a model into the IR.
//!
//! Operations run at once on known values (by the reference interpreter), so that a model can be printed, stepped through
//! and tested. Inside [`trace`] the same calls are recorded instead, with symbolic dims, and give a [`Program`].
//!
//! What must not live here: anything of compiled code, and any operation that the IR's ops do not express.

mod control;
mod dim;
mod error;
mod exec;
pub mod init;
pub mod layers;
mod module;
mod ops;
mod program;
mod random;
mod state_dict;
mod tensor;
mod trace;

pub use control::{cond, scan, while_loop};
pub use dim::{Dim, DimSpec, IntoShape, IntoSpecs, dim};
pub use error::{Errors, catch};
pub use module::{
    Buffer, Forward, IgnoredKey, Module, ModuleDict, ModuleList, Param, State, Training, Visitor,
};
pub use ops::*;
pub use program::{Builder, Program, Tree, named, trace};
pub use random::manual_seed;
pub use state_dict::read as read_safetensors;
pub use tensor::{Element, Operand, Tensor};
pub use tgc_derive::{Module, forward};
pub use tgc_ir::types::DType;
pub use tgc_ir::types::DType::{BF16, Bool as BOOL, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
pub use trace::{Entered, Spec, eager, enter, spec};
