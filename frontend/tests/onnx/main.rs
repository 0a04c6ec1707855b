//! Tests of the ONNX importer through its public functions: small models are built here, imported, verified and run by
//! the interpreter against numbers worked out by hand.

mod bounds;
mod conv_transpose;
mod dims;
mod fixed;
mod indexing;
mod model;
mod mutate;
mod ops;
mod refuse;
mod shapes;
mod tensors;
