//! Bytes as an ONNX model: diagnostics, or a module that verifies.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tgc_frontend::onnx::{ImportOptions, import_bytes};

fuzz_target!(|data: &[u8]| {
    match import_bytes(bytes::Bytes::copy_from_slice(data), None, &ImportOptions::default()) {
        Ok(found) => {
            let faults = tgc_ir::verify::verify(&found.module);
            assert!(faults.is_empty(), "{}", faults[0].render(None));
        }
        Err(d) => assert!(!d.is_empty() && d.iter().all(|d| !d.message.is_empty() && d.code != "E-BUG")),
    }
});
