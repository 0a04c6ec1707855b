//! Writes `proto/src/onnx.rs` from `proto/onnx.proto`: `cargo run --manifest-path proto/regen/Cargo.toml`.
//!
//! Not part of the workspace and not a build script, so that building tgc needs neither protoc nor this crate.

use std::error::Error;
use std::fs;
use std::path::Path;

const HEADER: &str = "\
// @generated from proto/onnx.proto by `cargo run --manifest-path proto/regen/Cargo.toml`. Do not edit.
//! ONNX message types, generated. Nothing hand-written belongs here.

";

fn main() -> Result<(), Box<dyn Error>> {
    let proto_dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let descriptors = protox::compile(["onnx.proto"], [&proto_dir])?;
    let mut config = prost_build::Config::new();
    // The large payload: shared with the file's buffer instead of copied.
    config.bytes([".onnx.TensorProto.raw_data"]);
    let mut config_modules = config.generate(
        descriptors
            .file
            .into_iter()
            .map(|file| (prost_build::Module::from_protobuf_package_name(file.package()), file))
            .collect(),
    )?;
    let (_, code) = config_modules.drain().next().ok_or("no module generated")?;
    let target = proto_dir.join("src/onnx.rs");
    fs::write(&target, format!("{HEADER}{code}"))?;
    println!("wrote {}", target.display());
    Ok(())
}
