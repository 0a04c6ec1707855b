//! Real and made models: golden outputs and ONNX Runtime, several sizes of each dynamic dim from one artifact.

use crate::support::{MAGIKA, artifact, ok, prepared, python, root, same_as_onnx_runtime, scratch, tgc_run};

/// Tolerances as in `ir/src/accuracy.rs` (the reasons stand there).
const MAGIKA_TOL: [&str; 2] = ["1e-3", "1e-5"];
const MLP_TOL: [&str; 2] = ["1e-5", "1e-5"];

#[test]
fn magika_matches_its_golden_outputs() {
    let dir = scratch("magika-golden");
    let (input, want, got) = (dir.join("in.npz"), dir.join("want.npz"), dir.join("got.npz"));
    let golden = root().join("tests/data/golden/magika-1.0.3/model_standard_v3_3/test_data_set_0");
    ok(python("pb2npz.py").arg(prepared(MAGIKA)).arg(golden).arg(&input).arg(&want));
    ok(tgc_run().arg("run").arg(artifact(MAGIKA)).arg("--inputs").arg(&input).arg("-o").arg(&got));
    ok(python("npz_compare.py").arg(&got).arg(&want).args([
        "--rtol",
        MAGIKA_TOL[0],
        "--atol",
        MAGIKA_TOL[1],
    ]));
}

fn magika_at(batch: usize) {
    let [rtol, atol] = MAGIKA_TOL;
    same_as_onnx_runtime(MAGIKA, &[("unk__214", batch)], &["--range", "bytes=0:257"], rtol, atol);
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
fn mlp_at_three_batches() {
    let [rtol, atol] = MLP_TOL;
    for batch in [1, 3, 17] {
        same_as_onnx_runtime("models/made/mlp.onnx", &[("batch", batch)], &[], rtol, atol);
    }
}

#[test]
fn unrelated_named_dims_broadcast_or_not_at_run_time() {
    for (n, m) in [(3, 3), (1, 5), (5, 1), (0, 1)] {
        same_as_onnx_runtime("models/made/guards.onnx", &[("n", n), ("m", m)], &[], "0", "0");
    }
}

#[test]
fn rows_are_gathered_with_negative_indices() {
    same_as_onnx_runtime("models/made/gather.onnx", &[("n", 6)], &["--range", "index=-5:5"], "0", "0");
}

#[test]
fn external_weights_and_defaults() {
    same_as_onnx_runtime("models/made/external.onnx", &[], &[], "0", "0");
    same_as_onnx_runtime("models/made/default_input.onnx", &[("n", 2)], &[], "0", "0");
    same_as_onnx_runtime("models/made/constant_input.onnx", &[("n", 2)], &[], "0", "0");
}
