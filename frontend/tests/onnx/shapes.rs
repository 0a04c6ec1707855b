//! Shape arithmetic: operands that are sizes become attributes, symbolic where the model is.

use crate::model::*;

#[test]
fn a_shape_chain_leaves_no_computation() {
    // the usual exporter's way to flatten: Concat(Gather(Shape(x), 0), -1)
    let m = model(13)
        .input("x", F32, &["batch", "3", "4"])
        .init(ints("zero", &[], &[0]))
        .ints("rest", &[-1])
        .ints("ax", &[0]);
    let m = m.node("Shape", &["x"], &["s"], &[]).node("Gather", &["s", "zero"], &["b"], &[]);
    let m = m.node("Unsqueeze", &["b", "ax"], &["b1"], &[]).node(
        "Concat",
        &["b1", "rest"],
        &["t"],
        &[("axis", A::I(0))],
    );
    let m = m.node("Reshape", &["x", "t"], &["y"], &[]).output("y");
    assert_eq!(m.out(), "f32[batch, 12]");
    assert!(body(&m.import()).guards().is_empty());
    let x = f(&[2, 3, 4], &(0..24).map(f64::from).collect::<Vec<_>>());
    assert_eq!(m.run(std::slice::from_ref(&x))[0].to_f64(), x.to_f64());
}

fn reshape(dims: &[&str], to: &[i64]) -> M {
    model(13).input("x", F32, dims).ints("t", to).node("Reshape", &["x", "t"], &["y"], &[]).output("y")
}

#[test]
fn reshape_solves_minus_one_by_cancelling() {
    assert_eq!(reshape(&["n", "s", "12"], &[0, 0, 3, -1]).out(), "f32[n, s, 3, 4]");
    assert_eq!(reshape(&["n", "s", "12"], &[-1, 12]).out(), "f32[n*s, 12]");
    assert_eq!(reshape(&["2", "6"], &[3, -1]).out(), "f32[3, 4]");
}

#[test]
fn reshape_that_may_not_divide_is_guarded() {
    let m = reshape(&["n", "6"], &[-1, 4]);
    close(&m.run(&[f(&[2, 6], &[1.0; 12])])[0], &[3, 4], &[1.0; 12]);
    let e = tgc_ir::interp::run(&m.import().module, "main", &[f(&[1, 6], &[1.0; 6])]).unwrap_err();
    assert!(e.to_string().contains("divide evenly"), "{e}");
    assert!(reshape(&["5"], &[2, -1]).error().message.contains("5 elements do not divide by 2"));
    assert_eq!(reshape(&["2", "3"], &[-1, -1]).error().code, "E-ONNX-022");
    assert_eq!(reshape(&["2", "3"], &[-2, 3]).error().code, "E-ONNX-022");
    assert_eq!(reshape(&["6"], &[2, 0]).error().code, "E-ONNX-022");
}

#[test]
fn zero_in_a_shape_copies_or_stays_zero() {
    assert_eq!(reshape(&["n", "6"], &[0, 2, 3]).out(), "f32[n, 2, 3]");
    let m = model(14).input("x", F32, &["n", "0"]).ints("t", &[0, 5]);
    let m = m.node("Reshape", &["x", "t"], &["y"], &[("allowzero", A::I(1))]).output("y");
    close(&m.run(&[f(&[3, 0], &[])])[0], &[0, 5], &[]);
}

fn slice(dims: &[&str], s: &[i64], e: &[i64], axes: &[i64], steps: &[i64]) -> M {
    let m = model(13).input("x", F32, dims).ints("s", s).ints("e", e).ints("a", axes).ints("k", steps);
    m.node("Slice", &["x", "s", "e", "a", "k"], &["y"], &[]).output("y")
}

fn seq(n: usize) -> tgc_ir::tensor::Tensor {
    f(&[n], &(0..n).map(|v| v as f64).collect::<Vec<_>>())
}

/// What the operator's text gives for x[s:e:k] on 0..n: as numpy, but that a start before all elements is the first for
/// negative steps too.
fn sliced(n: i64, s: i64, e: i64, k: i64) -> Vec<f64> {
    let clamp = |v: i64, lo: i64, hi: i64| if v < 0 { v.saturating_add(n) } else { v }.max(lo).min(hi);
    let (last, before) = if k > 0 { (n, 0) } else { (n - 1, -1) };
    let (mut at, end, mut out) = (clamp(s, 0, last), clamp(e, before, last), Vec::new());
    while (k > 0 && at < end) || (k < 0 && at > end) {
        out.push(at as f64);
        at += k;
    }
    out
}

#[test]
fn slices_equal_their_text_for_fixed_and_symbolic_sizes() {
    let ends = [i64::MIN, -2_000_000_000, -7, -3, -1, 0, 1, 2, 4, 9, 2_000_000_000, i64::MAX];
    for k in [1, 2, 3, -1, -2] {
        for s in ends {
            for e in ends {
                let m = slice(&["n"], &[s], &[e], &[0], &[k]).import();
                for n in [0usize, 1, 4, 5] {
                    let want = sliced(n as i64, s, e, k);
                    let got = tgc_ir::interp::run(&m.module, "main", &[seq(n)])
                        .unwrap_or_else(|d| panic!("[{s}:{e}:{k}] of {n}: {d}"));
                    assert_eq!(got[0].to_f64(), want, "[{s}:{e}:{k}] of {n}");
                }
            }
        }
    }
    close(&slice(&["4"], &[3], &[0], &[0], &[-1]).run(&[seq(4)])[0], &[3], &[3.0, 2.0, 1.0]);
}

#[test]
fn slices_of_named_dims_stay_readable() {
    let to_end = i64::MAX;
    assert_eq!(slice(&["n"], &[0], &[to_end], &[0], &[1]).out(), "f32[n]");
    let m = slice(&["n"], &[1], &[to_end], &[0], &[1]);
    let m = m.import_with(&["n=1..64"]).unwrap();
    let g = body(&m);
    assert_eq!(g.ty(g.outputs()[0].value).unwrap().to_string(), "f32[n - 1]");
    assert!(g.guards().is_empty());
    assert_eq!(slice(&["n"], &[-1], &[to_end], &[0], &[1]).out(), "f32[min(1, n)]");
}

#[test]
fn slice_refuses_what_has_no_meaning() {
    assert!(slice(&["4"], &[0], &[4], &[0], &[0]).error().message.contains("step is 0"));
    assert!(slice(&["4"], &[0], &[4], &[1], &[1]).error().message.contains("axis 1"));
    assert_eq!(slice(&["4"], &[0, 0], &[4], &[0], &[1]).error().code, "E-ONNX-022");
    let m = model(9).input("x", F32, &["4"]);
    let m = m.node("Slice", &["x"], &["y"], &[("starts", A::Is(&[1])), ("ends", A::Is(&[-1]))]).output("y");
    close(&m.run(&[seq(4)])[0], &[2], &[1.0, 2.0]);
}

#[test]
fn expand_and_tile() {
    let m = model(13)
        .input("x", F32, &["n", "1"])
        .ints("t", &[1, 3])
        .node("Expand", &["x", "t"], &["y"], &[])
        .output("y");
    assert_eq!(m.out(), "f32[n, 3]");
    close(&m.run(&[f(&[2, 1], &[1.0, 2.0])])[0], &[2, 3], &[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]);
    let m =
        model(13).input("x", F32, &["n"]).ints("t", &[2]).node("Tile", &["x", "t"], &["y"], &[]).output("y");
    assert_eq!(m.out(), "f32[2*n]");
    close(&m.run(&[f(&[2], &[1.0, 2.0])])[0], &[4], &[1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn pad_adds_cuts_and_repeats() {
    let pad = |p: &[i64], attrs: &[(&str, A<'_>)]| {
        let m = model(13).input("x", F32, &["n"]).ints("p", p).init(floats("v", &[], &[9.0]));
        m.node("Pad", &["x", "p", "v"], &["y"], attrs).output("y")
    };
    close(&pad(&[1, 2], &[]).run(&[seq(2)])[0], &[5], &[9.0, 0.0, 1.0, 9.0, 9.0]);
    close(&pad(&[-1, 1], &[]).run(&[seq(3)])[0], &[3], &[1.0, 2.0, 9.0]);
    for (mode, want) in
        [("reflect", [2.0, 1.0, 0.0, 1.0, 2.0, 1.0]), ("edge", [0.0, 0.0, 0.0, 1.0, 2.0, 2.0])]
    {
        close(&pad(&[2, 1], &[("mode", A::S(mode))]).run(&[seq(3)])[0], &[6], &want);
    }
    // a cut in front, and an axis of one element
    close(&pad(&[-1, 2], &[("mode", A::S("edge"))]).run(&[seq(3)])[0], &[4], &[1.0, 2.0, 2.0, 2.0]);
    close(&pad(&[1, 1], &[("mode", A::S("reflect"))]).run(&[seq(1)])[0], &[3], &[0.0, 0.0, 0.0]);
    for mode in ["wrap", "mirror"] {
        assert_eq!(pad(&[1, 1], &[("mode", A::S(mode))]).error().code, "E-ONNX-007");
    }
    assert_eq!(pad(&[1], &[]).error().code, "E-ONNX-022");
}

#[test]
fn split_in_equal_and_unequal_parts() {
    let m = model(18).input("x", F32, &["5"]).node("Split", &["x"], &["a", "b"], &[("num_outputs", A::I(2))]);
    let r = m.output("a").output("b").run(&[seq(5)]);
    close(&r[0], &[3], &[0.0, 1.0, 2.0]);
    close(&r[1], &[2], &[3.0, 4.0]);
    let m = model(11).input("x", F32, &["n"]).node("Split", &["x"], &["a", "b"], &[]).output("b");
    assert_eq!(m.out(), "f32[floordiv(n, 2)]");
    close(&m.run(&[seq(4)])[0], &[2], &[2.0, 3.0]);
    assert!(tgc_ir::interp::run(&m.import().module, "main", &[seq(3)]).is_err());
}

#[test]
fn squeeze_and_flatten() {
    let m = model(11)
        .input("x", F32, &["1", "n", "1"])
        .node("Squeeze", &["x"], &["y"], &[("axes", A::Is(&[0]))])
        .output("y");
    assert_eq!(m.out(), "f32[n, 1]");
    let m = model(13).input("x", F32, &["1", "n"]).node("Squeeze", &["x"], &["y"], &[]).output("y");
    assert_eq!(m.out(), "f32[n]");
    let m = model(13)
        .input("x", F32, &["n", "2", "3"])
        .node("Flatten", &["x"], &["y"], &[("axis", A::I(-1))])
        .output("y");
    assert_eq!(m.out(), "f32[2*n, 3]");
    let m = model(13)
        .input("x", F32, &["n"])
        .ints("a", &[0])
        .node("Squeeze", &["x", "a"], &["y"], &[])
        .output("y");
    assert!(m.error().message.contains("pin the named dim `n` to 1"));
}

#[test]
fn ranges_and_filled_tensors_from_sizes() {
    let m = model(13).input("x", F32, &["n"]).init(ints("zero", &[], &[0])).init(ints("two", &[], &[2]));
    let m = m.node("Size", &["x"], &["s"], &[]).node("Range", &["zero", "s", "two"], &["y"], &[]).output("y");
    assert_eq!(m.run(&[seq(5)])[0], i(&[3], &[0, 2, 4]));
    let m = model(13).input("x", F32, &["n"]).node("Shape", &["x"], &["s"], &[]);
    let m = m.node("ConstantOfShape", &["s"], &["y"], &[("value", A::T(ints("", &[1], &[7])))]).output("y");
    assert_eq!(m.out(), "i64[n]");
    assert_eq!(m.run(&[seq(2)])[0], i(&[2], &[7, 7]));
}

#[test]
fn a_known_shape_used_as_data_is_data() {
    let m = model(15).input("x", F32, &["n", "4"]).node("Shape", &["x"], &["s"], &[("start", A::I(-2))]);
    assert_eq!(m.output("s").run(&[f(&[3, 4], &[0.0; 12])])[0], i(&[2], &[3, 4]));
}
