//! Operators against hand numbers, one test an idea.

use crate::model::*;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;

const NAN: f64 = f64::NAN;

#[test]
fn clip_keeps_nan_and_lets_max_win() {
    let x = f(&[5], &[0.5, -3.0, 4.5, 11.0, NAN]);
    close(
        &one(13, "Clip", &[x.clone(), f(&[], &[0.0]), f(&[], &[NAN])], &[]),
        &[5],
        &[0.5, 0.0, 4.5, 11.0, NAN],
    );
    close(
        &one(13, "Clip", &[x.clone(), f(&[], &[10.0]), f(&[], &[2.0])], &[]),
        &[5],
        &[2.0, 2.0, 2.0, 2.0, NAN],
    );
    close(&one(6, "Clip", &[x], &[("max", A::F(4.0))]), &[5], &[0.5, -3.0, 4.0, 4.0, NAN]);
}

#[test]
fn softplus_keeps_digits() {
    let x = f(&[5], &[-12.3392, -30.0, 0.0, 30.0, 100.0]);
    close(
        &one(14, "Softplus", &[x], &[]),
        &[5],
        &[4.376761e-6, 9.357623e-14, std::f64::consts::LN_2, 30.0, 100.0],
    );
}

#[test]
fn activations() {
    let x = f(&[3], &[-2.0, 0.5, NAN]);
    let e = (-2.0f64).exp() - 1.0;
    close(&one(16, "LeakyRelu", std::slice::from_ref(&x), &[("alpha", A::F(0.25))]), &[3], &[-0.5, 0.5, NAN]);
    close(&one(6, "Elu", std::slice::from_ref(&x), &[("alpha", A::F(2.0))]), &[3], &[2.0 * e, 0.5, NAN]);
    close(
        &one(14, "HardSwish", std::slice::from_ref(&x), &[]),
        &[3],
        &[-2.0 * (1.0 / 6.0), 0.5 * (0.5 / 6.0 + 0.5), NAN],
    );
    close(
        &one(10, "ThresholdedRelu", std::slice::from_ref(&x), &[("alpha", A::F(0.25))]),
        &[3],
        &[0.0, 0.5, 0.0],
    );
    close(
        &one(16, "PRelu", &[f(&[1, 2, 2], &[-1.0, 2.0, -3.0, 4.0]), f(&[2, 1], &[0.5, 2.0])], &[]),
        &[1, 2, 2],
        &[-0.5, 2.0, -6.0, 4.0],
    );
    close(&one(9, "Shrink", &[x], &[("lambd", A::F(1.0)), ("bias", A::F(0.5))]), &[3], &[-1.5, 0.0, 0.0]);
}

#[test]
fn integer_division_truncates_and_mod_has_two_signs() {
    let (a, b) = (i(&[4], &[8, -8, 7, -7]), i(&[4], &[-3, 3, -2, 2]));
    assert_eq!(one(14, "Div", &[a.clone(), b.clone()], &[]), i(&[4], &[-2, -2, -3, -3]));
    assert_eq!(one(13, "Mod", &[a.clone(), b.clone()], &[]), i(&[4], &[-1, 1, -1, 1]));
    assert_eq!(one(13, "Mod", &[a, b], &[("fmod", A::I(1))]), i(&[4], &[2, -2, 1, -1]));
}

#[test]
fn pow_takes_the_type_of_its_base() {
    close(&one(15, "Pow", &[f(&[2], &[2.0, 3.0]), i(&[2], &[3, 2])], &[]), &[2], &[8.0, 9.0]);
    assert_eq!(one(15, "Pow", &[i(&[2], &[9, 2]), f(&[2], &[0.5, 3.0])], &[]), i(&[2], &[3, 8]));
}

#[test]
fn variadic_operators() {
    let (a, b) = (f(&[2], &[1.0, NAN]), f(&[1], &[10.0]));
    close(&one(13, "Max", &[a.clone(), b.clone()], &[]), &[2], &[10.0, NAN]);
    close(&one(13, "Mean", &[a.clone(), b.clone(), f(&[], &[4.0])], &[]), &[2], &[5.0, NAN]);
    close(&one(13, "Sum", &[a], &[]), &[2], &[1.0, NAN]);
}

#[test]
fn broadcasting_of_opset_6_follows_its_attributes() {
    let x = f(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let b = f(&[2], &[10.0, 20.0]);
    let at = |axis| [("broadcast", A::I(1)), ("axis", A::I(axis))];
    close(&one(6, "Add", &[x.clone(), b.clone()], &at(1)), &[1, 2, 2], &[11.0, 12.0, 23.0, 24.0]);
    close(&one(6, "Add", &[x, b], &at(2)), &[1, 2, 2], &[11.0, 22.0, 13.0, 24.0]);
}

#[test]
fn softmax_of_old_opsets_is_over_a_matrix() {
    let x = f(&[1, 2, 2], &[0.0, 0.0, 0.0, 0.0]);
    close(&one(11, "Softmax", std::slice::from_ref(&x), &[]), &[1, 2, 2], &[0.25; 4]);
    close(&one(13, "Softmax", std::slice::from_ref(&x), &[("axis", A::I(1))]), &[1, 2, 2], &[0.5; 4]);
    close(&one(11, "LogSoftmax", &[x], &[("axis", A::I(2))]), &[1, 2, 2], &[-std::f64::consts::LN_2; 4]);
}

#[test]
fn reductions_without_axes_keep_the_formula() {
    let x = f(&[2, 2], &[1.0, -2.0, 3.0, -4.0]);
    let noop = || [("noop_with_empty_axes", A::I(1)), ("keepdims", A::I(0))];
    close(&one(18, "ReduceL1", std::slice::from_ref(&x), &noop()), &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    close(&one(18, "ReduceSumSquare", std::slice::from_ref(&x), &noop()), &[2, 2], &[1.0, 4.0, 9.0, 16.0]);
    close(&one(18, "ReduceSum", std::slice::from_ref(&x), &[("keepdims", A::I(0))]), &[], &[-2.0]);
    close(
        &one(13, "ReduceMean", std::slice::from_ref(&x), &[("axes", A::Is(&[-1])), ("keepdims", A::I(0))]),
        &[2],
        &[-0.5, -0.5],
    );
    let by = |v: f64| (v.exp() + (v - 1.0).exp()).ln();
    close(&one(11, "ReduceLogSumExp", &[f(&[2], &[100.0, 99.0])], &[]), &[1], &[by(0.0) + 100.0]);
}

#[test]
fn arg_max_counts_nan_as_greatest_and_can_take_the_last() {
    let x = f(&[2, 3], &[1.0, 3.0, 3.0, NAN, 5.0, NAN]);
    let axis = |last| [("axis", A::I(1)), ("keepdims", A::I(0)), ("select_last_index", A::I(last))];
    assert_eq!(one(13, "ArgMax", std::slice::from_ref(&x), &axis(0)), i(&[2], &[1, 0]));
    assert_eq!(one(13, "ArgMax", &[f(&[1, 3], &[1.0, 3.0, 3.0])], &axis(1)), i(&[1], &[2]));
}

#[test]
fn gemm() {
    let (a, b) = (f(&[2, 1], &[1.0, 2.0]), f(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
    let attrs = [("transA", A::I(1)), ("transB", A::I(1)), ("alpha", A::F(2.0)), ("beta", A::F(0.5))];
    close(
        &one(13, "Gemm", &[a, b, f(&[2], &[10.0, 20.0])], &attrs),
        &[1, 2],
        &[2.0 * 5.0 + 5.0, 2.0 * 11.0 + 10.0],
    );
}

#[test]
fn pooling_pads_as_the_attributes_say() {
    let x = f(&[1, 1, 6, 2], &(0..12).map(f64::from).collect::<Vec<_>>());
    let attrs =
        [("kernel_shape", A::Is(&[5, 1])), ("auto_pad", A::S("SAME_LOWER")), ("count_include_pad", A::I(1))];
    let want = [1.2, 1.8, 2.4, 3.2, 4.0, 5.0, 6.0, 7.0, 5.6, 6.4, 4.8, 5.4];
    close(&one(19, "AveragePool", &[x], &attrs), &[1, 1, 6, 2], &want);
    let x = f(&[1, 1, 4], &[-1.0, -2.0, -3.0, -4.0]);
    let attrs = [("kernel_shape", A::Is(&[3])), ("strides", A::Is(&[2])), ("pads", A::Is(&[0, 1]))];
    close(&one(12, "MaxPool", std::slice::from_ref(&x), &attrs), &[1, 1, 2], &[-1.0, -3.0]);
    close(&one(6, "GlobalAveragePool", &[x], &[]), &[1, 1, 1], &[-2.5]);
}

#[test]
fn conv_same_upper_and_symbolic_sizes_agree() {
    let w = f(&[1, 1, 3], &[1.0, 10.0, 100.0]);
    let build = |dim: &str| {
        let m = model(13).input("x", F32, &["1", "1", dim]).input("w", F32, &["1", "1", "3"]);
        m.node("Conv", &["x", "w"], &["y"], &[("auto_pad", A::S("SAME_UPPER")), ("strides", A::Is(&[2]))])
            .output("y")
    };
    for n in [4usize, 5] {
        let x = f(&[1, 1, n], &(1..=n).map(|v| v as f64).collect::<Vec<_>>());
        let fixed = build(&n.to_string()).run(&[x.clone(), w.clone()]);
        assert_eq!(fixed, build("n").run(&[x, w.clone()]), "{n}");
        let want: &[f64] = if n == 4 { &[321.0, 43.0] } else { &[210.0, 432.0, 54.0] };
        close(&fixed[0], &[1, 1, want.len()], want);
    }
}

#[test]
fn batch_norm_in_inference() {
    let x = f(&[1, 2, 1], &[3.0, 5.0]);
    let p = |a, b| f(&[2], &[a, b]);
    let ins = [x, p(2.0, 1.0), p(1.0, 0.0), p(1.0, 1.0), p(4.0, 16.0)];
    close(&one(15, "BatchNormalization", &ins, &[("epsilon", A::F(0.0))]), &[1, 2, 1], &[3.0, 1.0]);
    close(&one(9, "BatchNormalization", &ins, &[("epsilon", A::F(0.0))]), &[1, 2, 1], &[3.0, 1.0]);
}

#[test]
fn norms_made_of_parts() {
    let x = f(&[1, 2, 2], &[1.0, 3.0, 5.0, 9.0]);
    let (one_, zero) = (f(&[2], &[1.0, 1.0]), f(&[2], &[0.0, 0.0]));
    let e = [("epsilon", A::F(0.0))];
    close(
        &one(6, "InstanceNormalization", &[x.clone(), one_.clone(), zero.clone()], &e),
        &[1, 2, 2],
        &[-1.0, 1.0, -1.0, 1.0],
    );
    let attrs = [("epsilon", A::F(0.0)), ("num_groups", A::I(1))];
    let s = (8.75f64).sqrt();
    let want = [-3.5 / s, -1.5 / s, 0.5 / s, 4.5 / s];
    close(&one(21, "GroupNormalization", &[x.clone(), one_, zero], &attrs), &[1, 2, 2], &want);
    close(
        &one(22, "LpNormalization", &[f(&[2, 2], &[3.0, 4.0, 0.0, 0.0])], &[]),
        &[2, 2],
        &[0.6, 0.8, 0.0, 0.0],
    );
}

#[test]
fn quantization_rounds_half_to_even() {
    let x = f(&[5], &[0.25, 0.75, 1.25, -0.25, 1e9]);
    let q = one(13, "QuantizeLinear", &[x, f(&[], &[0.5])], &[]);
    assert_eq!(q, Tensor::from_ints(DType::U8, &[5], &[0, 2, 2, 0, 255]));
    let d = one(13, "DequantizeLinear", &[q, f(&[], &[0.5])], &[]);
    close(&d, &[5], &[0.0, 1.0, 1.0, 0.0, 127.5]);
}

#[test]
fn indexing_counts_negative_indices_from_the_end() {
    let x = f(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    close(&one(13, "Gather", &[x.clone(), i(&[1], &[-1])], &[]), &[1, 2], &[3.0, 4.0]);
    close(
        &one(13, "GatherElements", &[x.clone(), i(&[2, 1], &[-1, 0])], &[("axis", A::I(1))]),
        &[2, 1],
        &[2.0, 3.0],
    );
    let s = one(
        18,
        "ScatterElements",
        &[f(&[3], &[0.0; 3]), i(&[3], &[1, 1, -2]), f(&[3], &[1.0, 2.0, 4.0])],
        &[("reduction", A::S("add"))],
    );
    close(&s, &[3], &[0.0, 7.0, 0.0]);
    let m = model(13).input("i", I64, &["2"]).ints("depth", &[3]).init(floats("v", &[2], &[0.0, 1.0]));
    let m = m.node("OneHot", &["i", "depth", "v"], &["y"], &[]).output("y");
    close(&m.run(&[i(&[2], &[-1, 1])])[0], &[2, 3], &[0.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
}

#[test]
fn top_k_non_zero_and_cum_sum() {
    let m = model(13).input("x", F32, &["n"]).ints("k", &[2]).node("TopK", &["x", "k"], &["v", "j"], &[]);
    let r = m.output("v").output("j").run(&[f(&[4], &[1.0, 3.0, 3.0, 2.0])]);
    close(&r[0], &[2], &[3.0, 3.0]);
    assert_eq!(r[1], i(&[2], &[1, 2]));
    let m = model(13).input("x", F32, &["2", "2"]).node("NonZero", &["x"], &["y"], &[]).output("y");
    assert_eq!(m.run(&[f(&[2, 2], &[1.0, 0.0, 0.0, 2.0])])[0], i(&[2, 2], &[0, 1, 0, 1]));
    let m = model(14).input("x", F32, &["3"]).ints("a", &[0]).node(
        "CumSum",
        &["x", "a"],
        &["y"],
        &[("exclusive", A::I(1)), ("reverse", A::I(1))],
    );
    close(&m.output("y").run(&[f(&[3], &[1.0, 2.0, 3.0])])[0], &[3], &[5.0, 3.0, 0.0]);
}

#[test]
fn if_with_a_known_condition_takes_its_branch() {
    let yes = GraphOf(vec![node("Neg", &["x"], &["a"], &[])], "a").get();
    let no = GraphOf(vec![node("NoSuchOp", &["x"], &["b"], &[])], "b").get();
    let c = tgc_proto::TensorProto {
        name: Some("c".into()),
        data_type: Some(BOOL),
        int32_data: vec![1],
        ..Default::default()
    };
    let attrs = [("then_branch", A::G(yes)), ("else_branch", A::G(no))];
    let m = model(13).input("x", F32, &["2"]).init(c).node("If", &["c"], &["y"], &attrs).output("y");
    close(&m.run(&[f(&[2], &[1.0, -2.0])])[0], &[2], &[-1.0, 2.0]);
}

#[test]
fn if_with_a_fed_condition_becomes_regions() {
    let yes = GraphOf(vec![node("Add", &["h", "k"], &["a"], &[])], "a").get();
    let no = GraphOf(vec![node("Mul", &["h", "h"], &["b"], &[])], "b").get();
    let attrs = [("then_branch", A::G(yes)), ("else_branch", A::G(no))];
    let m = model(13).input("x", F32, &["n"]).input("c", BOOL, &[]).init(floats("k", &[1], &[10.0]));
    let m = m.node("Neg", &["x"], &["h"], &[]).node("If", &["c"], &["y"], &attrs).output("y");
    let c = |v| Tensor::from_ints(DType::Bool, &[], &[v]);
    close(&m.run(&[f(&[1], &[3.0]), c(1)])[0], &[1], &[7.0]);
    close(&m.run(&[f(&[1], &[3.0]), c(0)])[0], &[1], &[9.0]);
}

struct GraphOf(Vec<tgc_proto::NodeProto>, &'static str);

impl GraphOf {
    fn get(self) -> tgc_proto::GraphProto {
        let out = tgc_proto::ValueInfoProto { name: Some(self.1.into()), ..Default::default() };
        tgc_proto::GraphProto { node: self.0, output: vec![out], ..Default::default() }
    }
}

#[test]
fn functions_of_the_model_are_inlined_with_their_attributes() {
    use tgc_proto::attribute_proto::AttributeType::Float;
    let f_ = tgc_proto::FunctionProto {
        name: Some("Leaky".into()),
        domain: Some("mine".into()),
        input: vec!["a".into()],
        output: vec!["b".into()],
        attribute: vec!["slope".into()],
        node: vec![
            node("LeakyRelu", &["a"], &["t"], &[("alpha", A::Ref("slope", Float))]),
            node("Neg", &["t"], &["b"], &[]),
        ],
        opset_import: model(17).0.opset_import,
        ..Default::default()
    };
    let mut m =
        model(17).input("x", F32, &["2"]).node("Leaky", &["x"], &["y"], &[("slope", A::F(0.5))]).output("y");
    m.0.functions.push(f_);
    m.0.graph.as_mut().unwrap().node[0].domain = Some("mine".into());
    close(&m.run(&[f(&[2], &[-4.0, 3.0])])[0], &[2], &[2.0, -3.0]);
}

#[test]
fn nodes_may_come_in_any_order_and_outputs_may_be_anything() {
    let m = model(13).input("x", F32, &["2"]).init(floats("w", &[2], &[7.0, 8.0]));
    let m = m.node("Neg", &["h"], &["y"], &[]).node("Add", &["x", "w"], &["h"], &[]);
    let m = m.output("y").output("w").output("x");
    let r = m.run(&[f(&[2], &[1.0, 2.0])]);
    close(&r[0], &[2], &[-8.0, -10.0]);
    close(&r[1], &[2], &[7.0, 8.0]);
    close(&r[2], &[2], &[1.0, 2.0]);
}
