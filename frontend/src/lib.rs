//! What becomes IR: importers of model files. Today ONNX; nothing here optimises or runs a model.

mod limits;
pub mod onnx;
