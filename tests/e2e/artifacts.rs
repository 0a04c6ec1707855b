//! Properties of artifacts and of the runtime binary: determinism, hand-edited kernels, thread counts, size.

use crate::support::{MAGIKA, artifact, fails, ok, prepared, python, root, scratch, tgc, tgc_run};
use std::path::Path;
use std::process::Command;

#[test]
fn the_same_bytes_from_another_folder_and_with_another_number_of_threads() {
    for model in [MAGIKA, "models/made/mlp.onnx"] {
        let (a, b) = (scratch("same-a"), scratch("same-b"));
        ok(tgc().current_dir(&a).arg("build").arg(prepared(model)).args(["-o", "m.tgc", "--jobs", "1"]));
        let copy = b.join("copied.onnx");
        std::fs::copy(prepared(model), &copy).unwrap();
        ok(tgc().current_dir(&b).args(["build", "copied.onnx", "-o", "other.tgc", "--jobs", "2"]));
        let (x, y) = (std::fs::read(a.join("m.tgc")).unwrap(), std::fs::read(b.join("other.tgc")).unwrap());
        assert!(x == y, "{model}: {} and {} bytes differ", x.len(), y.len());
    }
}

#[test]
fn kernels_can_be_edited_by_hand() {
    let dir = scratch("kernels");
    let model = prepared("models/made/default_input.onnx");
    let at = |n: &str| dir.join(n);
    ok(tgc().arg("build").arg(&model).args(["--emit", "kernels", "-o"]).arg(at("k.txt")));
    // hand-edited kernels are not verified unless asked, and the record says so
    ok(tgc().args(["build", "--verify"]).arg(&model).arg("-o").arg(at("plain.tgc")));
    let same = ["--verify", "--kernels"];
    ok(tgc().arg("build").arg(&model).args(same).arg(at("k.txt")).arg("-o").arg(at("same.tgc")));
    assert!(std::fs::read(at("plain.tgc")).unwrap() == std::fs::read(at("same.tgc")).unwrap());

    let text = std::fs::read_to_string(at("k.txt")).unwrap();
    let edited = text.replacen(" = mul ", " = add ", 1);
    assert_ne!(text, edited, "{text}");
    std::fs::write(at("edited.txt"), edited).unwrap();
    ok(tgc().arg("build").arg(&model).arg("--kernels").arg(at("edited.txt")).arg("-o").arg(at("edited.tgc")));
    let said = ok(tgc_run().arg("info").arg(at("edited.tgc")));
    assert!(said.contains("not verified: hand-edited kernels are in use"), "{said}");
    let mut refused = tgc();
    refused.arg("build").arg(&model).args(same).arg(at("edited.txt")).arg("-o").arg(at("refused.tgc"));
    fails(&mut refused, 1, &["E-VERIFY-004", "edited.txt is at fault"]);
    assert!(!at("refused.tgc").exists());
    let script = "import numpy as np, sys\nd = sys.argv[1]\nx = np.arange(6, dtype=np.float32).reshape(2, 3)\n\
                  np.savez(d + '/in.npz', x=x)\nnp.savez(d + '/want.npz', y=x + np.array([1, 2, 3], np.float32))\n";
    ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&dir));
    ok(tgc_run()
        .arg("run")
        .arg(at("edited.tgc"))
        .arg("--inputs")
        .arg(at("in.npz"))
        .arg("-o")
        .arg(at("got.npz")));
    ok(python("npz_compare.py").arg(at("got.npz")).arg(at("want.npz")).args(["--rtol", "0", "--atol", "0"]));
}

#[test]
fn a_constant_edited_by_hand_changes_the_result() {
    let dir = scratch("constant");
    let at = |n: &str| dir.join(n);
    let graph = "graph @main(%x: f32[n] \"x\") -> (f32[n] \"y\") {\n  %c = constant 2.0 : f32[]\n  %0 = mul %x, %c : f32[n]\n  return %0\n}\n";
    std::fs::write(at("g.tgir"), graph).unwrap();
    ok(tgc().arg("build").arg(at("g.tgir")).args(["--emit", "kernels", "-o"]).arg(at("k.txt")));
    let text = std::fs::read_to_string(at("k.txt")).unwrap();
    let edited = text.replacen("2.0", "3.0", 1);
    assert_ne!(text, edited, "{text}");
    std::fs::write(at("k.txt"), edited).unwrap();
    ok(tgc().arg("build").arg(at("g.tgir")).arg("--kernels").arg(at("k.txt")).arg("-o").arg(at("m.tgc")));
    let script = "import numpy as np, sys\nd = sys.argv[1]\nx = np.arange(5, dtype=np.float32)\n\
                  np.savez(d + '/in.npz', x=x)\nnp.savez(d + '/want.npz', y=x * 3)\n";
    ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&dir));
    ok(tgc_run().arg("run").arg(at("m.tgc")).arg("--inputs").arg(at("in.npz")).arg("-o").arg(at("got.npz")));
    ok(python("npz_compare.py").arg(at("got.npz")).arg(at("want.npz")).args(["--rtol", "0", "--atol", "0"]));
}

#[test]
fn one_and_two_threads_give_the_same_bits() {
    let dir = scratch("threads");
    let input = dir.join("in.npz");
    let script = "import numpy as np, sys\nr = np.random.default_rng(5)\n\
                  np.savez(sys.argv[1], bytes=r.integers(0, 257, (2, 2048)).astype(np.int32))\n";
    ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&input));
    for t in ["1", "2"] {
        let out = dir.join(format!("{t}.npz"));
        ok(tgc_run()
            .arg("run")
            .arg(artifact(MAGIKA))
            .arg("--inputs")
            .arg(&input)
            .args(["--threads", t, "-o"])
            .arg(out));
    }
    let compare = ["--rtol", "0", "--atol", "0"];
    ok(python("npz_compare.py").arg(dir.join("1.npz")).arg(dir.join("2.npz")).args(compare));
}

#[test]
fn the_runtime_is_small_and_needs_only_libc() {
    let bin = prepared("release/tgc-run");
    let dir = scratch("stripped");
    let stripped = dir.join("tgc-run");
    std::fs::copy(&bin, &stripped).unwrap();
    ok(Command::new("strip").arg(&stripped));
    let size = std::fs::metadata(&stripped).unwrap().len();
    assert!(size < 2_000_000, "tgc-run is {size} bytes stripped");
    let needed = ok(Command::new("ldd").arg(&stripped));
    for line in needed.lines() {
        let name = line.split_whitespace().next().unwrap_or("");
        let file = Path::new(name).file_name().and_then(|n| n.to_str()).unwrap_or("");
        let known = ["linux-vdso", "libgcc_s", "libc.so", "libm.so", "ld-linux"];
        assert!(known.iter().any(|k| file.starts_with(k)), "unexpected library: {line}");
    }
}

#[test]
fn check_agrees_with_build() {
    for model in [MAGIKA, "models/made/mlp.onnx", "models/made/guards.onnx", "models/made/gather.onnx"] {
        let said = ok(tgc().arg("check").arg(prepared(model)));
        assert!(said.contains("builds"), "{said}");
        artifact(model);
    }
    assert!(root().join("README.md").exists());
}

#[test]
fn a_model_without_kernels_copies_its_input() {
    let dir = scratch("no-kernels");
    let at = |n: &str| dir.join(n);
    let graph = "graph @main(%x: f32[n] \"x\") -> (f32[n] \"y\", f32[n] \"z\") {\n  return %x, %x\n}\n";
    std::fs::write(at("g.tgir"), graph).unwrap();
    ok(tgc().arg("build").arg(at("g.tgir")).arg("-o").arg(at("m.tgc")));
    let script = "import numpy as np, sys\nd = sys.argv[1]\nx = np.arange(5, dtype=np.float32)\n\
                  np.savez(d + '/in.npz', x=x)\nnp.savez(d + '/want.npz', y=x, z=x)\n";
    ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&dir));
    ok(tgc_run().arg("run").arg(at("m.tgc")).arg("--inputs").arg(at("in.npz")).arg("-o").arg(at("got.npz")));
    ok(python("npz_compare.py").arg(at("got.npz")).arg(at("want.npz")).args(["--rtol", "0", "--atol", "0"]));
}

#[test]
fn a_long_chain_of_shared_values_builds() {
    let g = scratch("chain").join("g.tgir");
    let mut text =
        "graph @main(%x: f32[n] \"x\") -> (f32[n] \"y\", f32[3] \"c\") {\n  %v0 = exp %x : f32[n]\n"
            .to_string();
    for i in 1..100 {
        text += &format!("  %v{i} = add %v{0}, %v{0} : f32[n]\n", i - 1);
    }
    text += "  %c = constant splat 1.0 : f32[3]\n  return %v99, %c\n}\n";
    std::fs::write(&g, text).unwrap();
    let said = ok(tgc().arg("check").arg(&g));
    assert!(said.contains("builds"), "{said}");
}

#[test]
fn a_reduction_that_two_outputs_follow() {
    let dir = scratch("two-reductions");
    let at = |n: &str| dir.join(n);
    ok(tgc().arg("build").arg(root().join("tests/text/two_reductions.tgir")).arg("-o").arg(at("m.tgc")));
    let script = "import numpy as np, sys\nd = sys.argv[1]\nx = np.random.default_rng(3).standard_normal((4, 3)).astype(np.float32)\n\
                  np.savez(d + '/in.npz', x=x)\ny = x.astype(np.float64)\nm = y.mean(1, keepdims=True)\n\
                  s = np.sqrt((y * y).mean(1, keepdims=True) - m * m + 1e-5)\n\
                  np.savez(d + '/want.npz', s=s.astype(np.float32), m=m.astype(np.float32))\n";
    ok(Command::new(prepared("venv/bin/python")).args(["-c", script]).arg(&dir));
    ok(tgc_run().arg("run").arg(at("m.tgc")).arg("--inputs").arg(at("in.npz")).arg("-o").arg(at("got.npz")));
    ok(python("npz_compare.py")
        .arg(at("got.npz"))
        .arg(at("want.npz"))
        .args(["--rtol", "1e-5", "--atol", "1e-5"]));
}
