//! The runtime of tgc: opens an artifact, binds a model's entry to input shapes, and runs it. It knows nothing of the
//! compiler and needs libc only. The compiler writes artifacts through the same types.
//!
//! ```no_run
//! use tgc_runtime::{DType, Model, Session, SessionOptions, Tensor};
//!
//! let model = Model::open("m.tgc".as_ref())?;
//! let mut session = Session::new(&model, "forward", &SessionOptions::default())?;
//! let x = Tensor::zeros(DType::F32, &[3, 784])?;
//! for (name, y) in session.run_owned(&[("x", &x)])? {
//!     println!("{name}: {:?} {:?}", y.shape(), y.to_f64());
//! }
//! # Ok::<(), tgc_runtime::Error>(())
//! ```
#![deny(missing_docs)]

mod abi;
mod bind;
mod checksum;
mod claims;
mod codec;
mod dtype;
mod error;
mod exec;
mod expr;
mod features;
mod format;
mod load;
mod plan;
mod session;
mod tensor;
mod threads;
mod validate;
mod write;

pub use {
    bind::plan_program,
    dtype::DType,
    error::{Code, Error, Fault},
    exec::StepTime,
    expr::{Expr, ExprError, Pred},
    features::host_features,
    format::{
        ArgDecl, Bind, Buffer, BufferKind, Entry, Guard, Image, ImageKernel, KernelDecl, Manifest, Port,
        Program, Role, Segment, Site, StateDecl, Step, Symbol, Variant, WeightDecl,
    },
    load::{Loader, Model},
    plan::{Plan, Request, plan},
    session::{Session, SessionOptions},
    tensor::Tensor,
    threads::Pool,
    write::{Section, write, write_file},
};
