//! tgc as a library: load a model, optimize it, compile it to an artifact. The parts are re-exported; what they do is
//! documented there. No command line lives here.
//!
//! # Snapshot tests of your own graphs and passes
//!
//! [`graph_text`] gives the canonical text of a graph, which a snapshot library such as insta can keep, in the test or beside it:
//!
//! ```
//! use tgc::ir::{diag::Loc, graph::{Graph, Value}, ops::Add, types::{DType, Dim, Type}};
//!
//! let mut g = Graph::new("twice");
//! let x = g.input("x", Type::new(DType::F32, vec![Dim::sym("n"), Dim::from(4)]), Loc::default());
//! let y = g.op(Add {}, &[x, x], &Loc::default()).unwrap();
//! g.output("y", y);
//! insta::assert_snapshot!(tgc::graph_text(&g), @r#"
//! graph @twice(%x: f32[n, 4]) -> f32[n, 4] "y" {
//!   %0 = add %x, %x : f32[n, 4]
//!   return %0
//! }
//! "#);
//! ```

mod agree;
mod build;
mod diff;
mod export;
mod model;
mod onnxruntime;
mod reduce;
mod verify;

pub use agree::{Fault, agree};
pub use build::{BuildOptions, Stage, Verify, build, code_text, lower, optimize};
pub use diff::{Differences, OutputDiff, Side, Tolerance, diff};
pub use export::export;
pub use model::{LoadOptions, load};
pub use reduce::reduce;
pub use tgc_codegen as codegen;
pub use tgc_codegen::onnx::{AxisName, ExportOptions, External, OPSETS};
pub use tgc_frontend as frontend;
pub use tgc_frontend::onnx::{ConstOption, DimOption};
pub use tgc_ir as ir;
pub use tgc_passes as passes;
pub use tgc_runtime as runtime;
pub use tgc_zoo as zoo;

/// The canonical `.tgir` text of a graph: deterministic, and parsing it back gives the same text.
pub fn graph_text(graph: &ir::graph::Graph) -> String {
    ir::text::print_graph(graph)
}
