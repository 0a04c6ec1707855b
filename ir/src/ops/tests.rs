//! Tests over the whole table: inferred types, refused operands, index maps evaluated against loops written out, and
//! gradients' types.

use super::*;
use crate::class::{Access, Class, Contract, Window};
use crate::diag::Loc;
use crate::graph::{Graph, Value};
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::types::{Atom, DType, SymInfo};

/// `f32[n, 4]`.
fn ty(text: &str) -> Type {
    let (dtype, rest) = text.split_once('[').unwrap();
    let dim = |d: &str| d.parse::<i64>().map_or_else(|_| Dim::sym(d), Dim::from);
    let dims = rest.trim_end_matches(']').split(',').map(str::trim).filter(|d| !d.is_empty()).map(dim);
    Type::new(dtype.parse().unwrap(), dims.collect())
}

fn graph(types: &[&str], named: bool) -> (Graph, Vec<Value>) {
    let mut g = Graph::new("t");
    for t in types {
        ty(t).numel().leaves(&mut |a| {
            if let Atom::Sym(s) = a {
                g.symbols.insert(s, SymInfo { named, ..SymInfo::default() });
            }
        });
    }
    let ins =
        types.iter().enumerate().map(|(i, t)| g.input(&format!("x{i}"), ty(t), Loc::default())).collect();
    (g, ins)
}

/// Result types and guards.
fn infer(op: impl Into<Op>, types: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut g, ins) = graph(types, true);
    let id = g.add(op.into(), &ins, Vec::new(), Loc::default()).unwrap();
    let outs = g.node(id).unwrap().results.iter().map(|f| f.ty.to_string()).collect();
    (outs, g.guards().iter().map(|gd| gd.pred.to_string()).collect())
}

fn refused(op: impl Into<Op>, types: &[&str]) -> Diag {
    let (mut g, ins) = graph(types, true);
    g.add(op.into(), &ins, Vec::new(), Loc::default()).unwrap_err()
}

fn lowered(op: impl Into<Op>, types: &[&str]) -> (Lowering, Vec<Type>) {
    let op = op.into();
    let (mut g, ins) = graph(types, true);
    let id = g.add(op.clone(), &ins, Vec::new(), Loc::default()).unwrap();
    let outs: Vec<Type> = g.node(id).unwrap().results.iter().map(|f| f.ty.clone()).collect();
    let types: Vec<Type> = types.iter().map(|t| ty(t)).collect();
    (op.lower(&types, &outs, &g.symbols).unwrap(), outs)
}

fn dims(v: &[i64]) -> Vec<Dim> {
    v.iter().map(|&d| Dim::from(d)).collect()
}

fn conv(strides: &[i64], pads: &[i64], dilations: &[i64], groups: i64) -> Conv {
    let (strides, pads, dilations) = (strides.to_vec(), pads.to_vec(), dilations.to_vec());
    Conv { strides, pads, dilations, groups, channels_last: false }
}

fn last(op: Conv) -> Conv {
    Conv { channels_last: true, ..op }
}

fn max_pool(kernel: &[i64], strides: &[i64], pads: &[i64], ceil: bool) -> MaxPool {
    let (kernel, strides, pads) = (kernel.to_vec(), strides.to_vec(), pads.to_vec());
    MaxPool { dilations: vec![1; kernel.len()], kernel, strides, pads, ceil, channels_last: false }
}

fn avg_pool(kernel: &[i64], strides: &[i64], pads: &[i64], ceil: bool, count_include_pad: bool) -> AvgPool {
    let m = max_pool(kernel, strides, pads, ceil);
    AvgPool {
        kernel: m.kernel,
        strides: m.strides,
        pads: m.pads,
        dilations: m.dilations,
        ceil,
        count_include_pad,
        channels_last: false,
    }
}

fn slice(starts: &[Dim], sizes: &[Dim], steps: &[i64]) -> Slice {
    Slice { starts: starts.to_vec(), sizes: sizes.to_vec(), steps: steps.to_vec() }
}

#[test]
fn types_with_symbolic_dims() {
    let one = |op: Op, types: &[&str], want: &str, guards: &[&str]| {
        let (outs, found) = infer(op.clone(), types);
        assert_eq!(outs, [want], "{op:?}");
        assert_eq!(found, guards, "{op:?}");
    };
    let n = Dim::sym("n");
    one(Matmul {}.into(), &["f32[n, s, 8]", "f32[8, 3]"], "f32[n, s, 3]", &[]);
    one(Matmul {}.into(), &["f32[8]", "f32[n, 8, 3]"], "f32[n, 3]", &[]);
    one(Matmul {}.into(), &["f32[n, 8]", "f32[8]"], "f32[n]", &[]);
    one(Matmul {}.into(), &["f32[8]", "f32[8]"], "f32[]", &[]);
    one(Matmul {}.into(), &["f32[2, n]", "f32[m, 3]"], "f32[2, 3]", &["eq(n, m)"]);
    one(Select {}.into(), &["bool[4]", "f32[n, 1]", "f32[]"], "f32[n, 4]", &[]);
    one(Concat { axis: 1 }.into(), &["f32[n, m]", "f32[n, 3]"], "f32[n, m + 3]", &[]);
    one(Concat { axis: -1 }.into(), &["f32[n, 1]", "f32[s, 3]"], "f32[n, 4]", &["eq(n, s)"]);
    one(Transpose { perm: vec![1, -1, 0] }.into(), &["f32[n, m, 2]"], "f32[m, 2, n]", &[]);
    let pad = Pad {
        before: vec![1.into(), n.clone()],
        after: dims(&[0, 2]),
        value: Scalar::from_f64(DType::F32, 0.0),
    };
    one(pad.into(), &["f32[m, 3]"], "f32[m + 1, n + 5]", &[]);
    let tail = n.clone() - Dim::from(1);
    one(
        slice(&dims(&[1]), std::slice::from_ref(&tail), &[1]).into(),
        &["f32[n]"],
        "f32[n - 1]",
        &["le(0, n - 1)"],
    );
    one(slice(&[tail], std::slice::from_ref(&n), &[-1]).into(), &["f32[n]"], "f32[n]", &[]);
    one(slice(&dims(&[0]), &dims(&[4]), &[2]).into(), &["f32[n]"], "f32[4]", &["le(7, n)"]);
    one(
        conv(&[1], &[1, 1], &[1], 1).into(),
        &["f32[n, 3, s]", "f32[8, 3, 3]"],
        "f32[n, 8, s]",
        &["le(3, s + 2)"],
    );
    let (outs, guards) =
        infer(conv(&[2, 1], &[0; 4], &[1, 3], 2), &["f32[n, 4, h, 9]", "f32[6, 2, 2, 2]", "f32[6]"]);
    assert_eq!((outs[0].as_str(), guards[0].as_str()), ("f32[n, 6, floordiv(h, 2), 6]", "le(2, h)"));
    one(max_pool(&[3], &[2], &[1, 1], true).into(), &["f32[n, 3, 8]"], "f32[n, 3, 5]", &[]);
    one(
        max_pool(&[2], &[2], &[0, 0], true).into(),
        &["f32[1, 1, s]"],
        "f32[1, 1, floordiv(s + 1, 2)]",
        &["le(2, s)"],
    );
    one(Gather { axis: 0 }.into(), &["f32[9, m]", "i64[n, 2]"], "f32[n, 2, m]", &[]);
    one(GatherElements { axis: 1 }.into(), &["f32[n, 4]", "i64[s, 2]"], "f32[s, 2]", &["le(s, n)"]);
    one(
        UpdateSlice { axis: 1 }.into(),
        &["f32[1, m, 64]", "i64[]", "f32[1, s, 64]"],
        "f32[1, m, 64]",
        &["le(s, m)"],
    );
    one(CumSum { axis: 1, exclusive: false, reverse: false }.into(), &["f32[n, m]"], "f32[n, m]", &[]);
    one(ReduceMean { axes: vec![-1], keepdims: true }.into(), &["f16[n, m]"], "f16[n, 1]", &[]);
    let arg = ArgMax { axis: 0, keepdims: false, last: false, smallest: false };
    one(arg.into(), &["f32[n, 4]"], "i64[4]", &["le(1, n)"]);
    one(LayerNorm { axes: vec![-1], epsilon: 1e-5 }.into(), &["f32[n, 4]", "f32[4]"], "f32[n, 4]", &[]);
    one(
        BatchNorm { epsilon: 1e-5 }.into(),
        &["f16[n, 3, h]", "f32[3]", "f32[3]", "f32[3]", "f32[3]"],
        "f16[n, 3, h]",
        &[],
    );
    one(Quantize { axis: Some(1), to: DType::I8 }.into(), &["f32[n, 3]", "f32[3]", "i8[3]"], "i8[n, 3]", &[]);
    one(Dequantize { axis: None }.into(), &["u8[n, 3]", "f16[1]", "u8[]"], "f16[n, 3]", &[]);
    let (outs, guards) = infer(TopK { axis: -1, k: Dim::sym("k"), largest: true }, &["f32[n, 9]"]);
    assert_eq!(
        (outs, guards),
        (vec!["f32[n, k]".to_string(), "i64[n, k]".to_string()], vec!["le(k, 9)".to_string()])
    );
    let (outs, _) = infer(NonZero {}, &["bool[n, 4]"]);
    assert_eq!(outs, ["i64[2, 4*n]", "i64[]"]);
    let (mut g, _) = graph(&[], true);
    let iota =
        g.op(Iota { axis: 1, shape: vec![n, 4.into()], dtype: DType::I32 }, &[], &Loc::default()).unwrap();
    assert_eq!(g.ty(iota).unwrap().to_string(), "i32[n, 4]");
}

#[test]
fn refusals_name_the_constraint() {
    let no = |op: Op, types: &[&str], code: &str, text: &str| {
        let d = refused(op.clone(), types);
        assert_eq!(d.code, code, "{op:?}: {d}");
        assert!(d.message.contains(text), "{op:?}: {d}");
    };
    no(Exp {}.into(), &["i32[n]"], "E-IR-008", "not defined on i32");
    no(And {}.into(), &["f32[n]", "f32[n]"], "E-IR-008", "not defined on f32");
    no(Mul {}.into(), &["f32[n]", "f64[n]"], "E-IR-007", "one element type");
    no(Mul {}.into(), &["f32[2]", "f32[3]"], "E-IR-005", "broadcast");
    no(Mul {}.into(), &["f32[n]", "f32[3]"], "E-IR-006", "pin the named dim `n`");
    no(Matmul {}.into(), &["f32[2, 3]", "f32[4, 2]"], "E-IR-005", "matmul.c3");
    no(Matmul {}.into(), &["f32[]", "f32[4, 2]"], "E-IR-003", "matmul.c2");
    no(Transpose { perm: vec![0, 0] }.into(), &["f32[2, 3]"], "E-IR-003", "transpose.c1");
    no(slice(&dims(&[0]), &dims(&[4]), &[1]).into(), &["f32[3]"], "E-IR-005", "slice.c3");
    no(slice(&dims(&[0]), &dims(&[2]), &[-1]).into(), &["f32[3]"], "E-IR-005", "slice.c3");
    no(slice(&dims(&[0]), &dims(&[2]), &[0]).into(), &["f32[3]"], "E-IR-003", "slice.c2");
    no(slice(&dims(&[0]), &dims(&[-1]), &[1]).into(), &["f32[3]"], "E-IR-005", "not be negative");
    no(conv(&[1], &[0, 0], &[1], 2).into(), &["f32[1, 4, 9]", "f32[3, 2, 3]"], "E-IR-003", "conv.c5");
    no(conv(&[1], &[0, 0], &[1], 1).into(), &["f32[1, 4, 9]", "f32[3, 2, 3]"], "E-IR-005", "conv.c5");
    no(conv(&[1], &[0, 0], &[1], 1).into(), &["f32[1, 2, 2]", "f32[3, 2, 3]"], "E-IR-005", "conv.c4");
    no(conv(&[0], &[0, 0], &[1], 1).into(), &["f32[1, 2, 9]", "f32[3, 2, 3]"], "E-IR-003", "conv.c3");
    no(conv(&[1], &[0], &[1], 1).into(), &["f32[1, 2, 9]", "f32[3, 2, 3]"], "E-IR-003", "conv.c2");
    no(
        conv(&[1], &[0, 0], &[1], 1).into(),
        &["f32[1, 2, 9]", "f32[3, 2, 3]", "f32[2]"],
        "E-IR-005",
        "conv.c6",
    );
    no(max_pool(&[2], &[1], &[2, 0], false).into(), &["f32[1, 2, 9]"], "E-IR-003", "max_pool.c5");
    no(Gather { axis: 2 }.into(), &["f32[2, 2]", "i64[1]"], "E-IR-004", "axis 2");
    no(Gather { axis: 0 }.into(), &["f32[2, 2]", "f32[1]"], "E-IR-003", "gather.c2");
    no(TopK { axis: 0, k: 3.into(), largest: true }.into(), &["f32[2]"], "E-IR-005", "top_k.c2");
    no(Reshape { shape: dims(&[-2, -2]) }.into(), &["f32[1, 4]"], "E-IR-005", "not be negative");
    no(Softmax { axis: 2 }.into(), &["f32[2]"], "E-IR-004", "axis 2");
    no(Cast { to: DType::F8E5M2 }.into(), &["f32[2]"], "E-IR-003", "cast.c1");
    no(Quantize { axis: None, to: DType::I64 }.into(), &["f32[2]", "f32[]"], "E-IR-003", "quantize.c2");
    no(Add {}.into(), &["f32[2]"], "E-IR-002", "2 wanted");
    no(Cond {}.into(), &["bool[]"], "E-IR-003", "cond.c2");
    let none = ScatterElements { axis: 0, reduction: "avg".into() };
    no(none.into(), &["f32[4]", "i64[2]", "f32[2]"], "E-IR-003", "scatter_elements.c5");
}

/// Operand element at labels, or nothing where it is not read.
fn read(a: &Access, shape: &[Dim], at: &[i64]) -> Option<usize> {
    let leaf = |x: &Atom| if let Atom::Label(l) = x { at.get(*l as usize).copied() } else { None };
    if !a.when.eval(&leaf).unwrap() {
        return None;
    }
    let mut lin = 0;
    for (ix, d) in a.index.iter().zip(shape) {
        let (i, d) = (ix.eval(&leaf).unwrap(), d.as_const().unwrap());
        assert!((0..d).contains(&i), "index {i} of {d} at {at:?}");
        lin = lin * d + i;
    }
    Some(lin as usize)
}

fn each(extents: &[i64], f: &mut dyn FnMut(&[i64])) {
    let n: i64 = extents.iter().product();
    for mut k in 0..n {
        let mut at = vec![0; extents.len()];
        for (a, e) in at.iter_mut().zip(extents).rev() {
            *a = k % e;
            k /= e;
        }
        f(&at);
    }
}

fn fixed(d: &[Dim]) -> Vec<i64> {
    d.iter().map(|d| d.as_const().unwrap()).collect()
}

/// Sums a contraction over operands 1, 2, 3 .. and 1, -1, 2, -2 ..
fn contract(c: &Contract, ins: &[Type]) -> Vec<i64> {
    let extents = fixed(&c.extents);
    let out: Vec<i64> = c.out.iter().map(|l| extents[*l as usize]).collect();
    let mut sums = vec![0; out.iter().product::<i64>() as usize];
    each(&extents, &mut |at| {
        let slot = c.out.iter().fold(0, |p, l| p * extents[*l as usize] + at[*l as usize]);
        let v = [0, 1].map(|i| read(&c.operands[i], &ins[i].shape, at));
        if let [Some(a), Some(b)] = v {
            sums[slot as usize] += left(a) * right(b);
        }
    });
    sums
}

fn left(i: usize) -> i64 {
    i as i64 + 1
}

fn right(i: usize) -> i64 {
    (i as i64 / 2 + 1) * if i.is_multiple_of(2) { 1 } else { -1 }
}

#[test]
fn matmul_reads_rows_and_columns() {
    let run = |types: [&str; 2]| {
        let (low, _) = lowered(Matmul {}, &types);
        let Lowering::Class(Class::Contract(c)) = low else { panic!("not a contraction") };
        contract(&c, &types.map(ty))
    };
    // rows 1 2 3, 4 5 6 times columns 1 2 3, -1 -2 -3
    assert_eq!(run(["i32[2, 3]", "i32[3, 2]"]), [14, -14, 32, -32]);
    assert_eq!(run(["i32[3]", "i32[3, 2]"]), [14, -14]);
    assert_eq!(run(["i32[2, 2]", "i32[2]"]), [-1, -1]);
    assert_eq!(run(["i32[2]", "i32[2]"]), [-1]);
    // the left operand has two matrices (1, 2 and 3, 4), the right one (1, -1) is shared
    assert_eq!(run(["i32[2, 1, 2]", "i32[2, 1]"]), [-1, -1]);
    assert_eq!(run(["i32[2, 1, 1, 2]", "i32[2, 2, 1]"]), [-1, -2, -1, -2]);
}

fn conv_by_hand(c: &Conv, x: &[i64], w: &[i64], out: &[i64]) -> Vec<i64> {
    let mut sums = Vec::new();
    each(out, &mut |o| {
        let (per, oc_per) = (w[1], w[0] / c.groups);
        let mut sum = 0;
        each(&[per, w[2], w[3]], &mut |k| {
            let channel = o[1] / oc_per * per + k[0];
            let at = [0, 1].map(|i| o[2 + i] * c.strides[i] + k[1 + i] * c.dilations[i] - c.pads[i]);
            if (0..x[2]).contains(&at[0]) && (0..x[3]).contains(&at[1]) {
                let xi = ((o[0] * x[1] + channel) * x[2] + at[0]) * x[3] + at[1];
                let wi = ((o[1] * per + k[0]) * w[2] + k[1]) * w[3] + k[2];
                sum += left(xi as usize) * right(wi as usize);
            }
        });
        sums.push(sum);
    });
    sums
}

#[test]
fn convolution_reads_windows_of_its_group() {
    let cases: [(Conv, [i64; 4], [i64; 4]); 6] = [
        (conv(&[1, 1], &[0; 4], &[1, 1], 1), [1, 1, 3, 3], [1, 1, 2, 2]),
        (conv(&[1, 1], &[1; 4], &[1, 1], 1), [2, 2, 4, 3], [3, 2, 3, 3]),
        (conv(&[2, 1], &[0, 1, 1, 0], &[1, 2], 1), [1, 3, 5, 6], [2, 3, 2, 3]),
        (conv(&[1, 2], &[2, 0, 0, 2], &[2, 1], 2), [2, 4, 6, 5], [6, 2, 2, 2]),
        (conv(&[1, 1], &[1; 4], &[1, 1], 4), [1, 4, 3, 3], [4, 1, 3, 3]),
        (conv(&[3, 3], &[0; 4], &[1, 1], 3), [1, 3, 7, 8], [6, 1, 2, 2]),
    ];
    for (op, x, w) in cases {
        let show =
            |d: &[i64]| format!("i64[{}]", d.iter().map(i64::to_string).collect::<Vec<_>>().join(", "));
        let types = [show(&x), show(&w)];
        let (low, outs) = lowered(op.clone(), &[&types[0], &types[1]]);
        let Lowering::Class(Class::Contract(c)) = low else { panic!("not a contraction") };
        let want = conv_by_hand(&op, &x, &w, &fixed(&outs[0].shape));
        assert_eq!(contract(&c, &[ty(&types[0]), ty(&types[1])]), want, "{op:?}");
    }
    let (low, _) = lowered(conv(&[1], &[0, 0], &[1], 1), &["f32[1, 2, 8]", "f32[4, 2, 3]"]);
    let Lowering::Class(Class::Contract(c)) = low else { panic!("not a contraction") };
    assert_eq!((c.red.as_slice(), c.operands[0].when.to_string()), (&[4, 3][..], "true".to_string()));
    let (low, _) = lowered(conv(&[1], &[0, 0], &[1], 1), &["f16[n, 2, 8]", "f16[4, 2, 3]", "f16[4]"]);
    let Lowering::Decompose(g) = low else { panic!("a bias is added after") };
    let ops: Vec<&str> = g.topo().iter().filter_map(|&i| g.op_of(i)).map(Op::name).collect();
    assert_eq!(ops.iter().filter(|n| **n == "cast").count(), 4, "{ops:?}");
}

/// Reduces windows of 1, 2, 3 .. with the reducer itself.
fn pool(op: impl Into<Op>, x: &str) -> (Vec<f64>, Vec<i64>) {
    let (low, outs) = lowered(op, &[x]);
    let Lowering::Class(Class::Window(Window { extents, access, reducer })) = low else {
        panic!("not a window")
    };
    let (shape, kernel) = (fixed(&outs[0].shape), fixed(&extents));
    let d = outs[0].dtype;
    let mut out = Vec::new();
    each(&shape, &mut |o| {
        let mut state = reducer.init.clone();
        each(&kernel, &mut |k| {
            let at: Vec<i64> = o.iter().chain(k).copied().collect();
            if let Some(i) = read(&access, &ty(x).shape, &at) {
                let args: Vec<Scalar> =
                    state.iter().copied().chain([Scalar::from_f64(d, left(i) as f64)]).collect();
                state = reducer.step.eval(&|i| args[i as usize], &|_| None).unwrap();
            }
        });
        out.push(reducer.finish.eval(&|i| state[i as usize], &|_| None).unwrap()[0].as_f64());
    });
    (out, shape)
}

#[test]
fn pools_leave_padding_out_and_stop_in_time() {
    assert_eq!(pool(max_pool(&[2], &[2], &[0, 0], false), "f32[1, 1, 5]").0, [2.0, 4.0]);
    assert_eq!(pool(max_pool(&[2], &[2], &[0, 0], true), "f32[1, 1, 5]").0, [2.0, 4.0, 5.0]);
    assert_eq!(pool(max_pool(&[3], &[2], &[1, 1], false), "f32[1, 1, 5]").0, [2.0, 4.0, 5.0]);
    // rounding up gives 4 windows from -1, 1, 3, 5; the last starts beyond the operand
    assert_eq!(pool(max_pool(&[2], &[2], &[1, 1], true), "f32[1, 1, 4]").0, [1.0, 3.0, 4.0]);
    assert_eq!(pool(max_pool(&[2, 2], &[1, 1], &[0; 4], false), "f32[1, 1, 2, 3]").0, [5.0, 6.0]);
    let wide = MaxPool { dilations: vec![2], ..max_pool(&[2], &[1], &[0, 0], false) };
    assert_eq!(pool(wide, "f32[1, 1, 4]").0, [3.0, 4.0]);
    assert_eq!(pool(avg_pool(&[2], &[2], &[0, 0], false, false), "f32[1, 1, 4]").0, [1.5, 3.5]);
    assert_eq!(pool(avg_pool(&[3], &[2], &[1, 1], false, false), "f32[1, 1, 3]").0, [1.5, 2.5]);
    assert_eq!(pool(avg_pool(&[2], &[2], &[0, 0], true, true), "f32[1, 1, 3]").0, [1.5, 3.0]);
    let (low, outs) = lowered(avg_pool(&[2], &[2], &[1, 1], true, true), &["f32[1, 1, 4]"]);
    let Lowering::Decompose(g) = low else { panic!("padding that counts is made by a pad") };
    assert_eq!(g.ty(g.outputs()[0].value), outs.first());
}

/// Records gradients into a graph.
struct Record {
    g: Graph,
    values: Vec<Value>,
    error: Option<Diag>,
}

impl Record {
    fn value(&mut self, v: Value) -> GVal {
        self.values.push(v);
        GVal(self.values.len() as u32 - 1)
    }
}

impl GradBuilder for Record {
    fn op(&mut self, op: Op, operands: &[GVal]) -> Vec<GVal> {
        let ins: Vec<Value> = operands.iter().map(|v| self.values[v.0 as usize]).collect();
        match self.g.add(op, &ins, Vec::new(), Loc::default()) {
            Ok(id) => {
                let n = self.g.node(id).map_or(0, |n| n.results.len());
                (0..n).map(|r| self.value(Value { node: id, result: r as u32 })).collect()
            }
            Err(d) => {
                self.error.get_or_insert(d);
                vec![GVal(0)]
            }
        }
    }
    fn ty(&self, v: GVal) -> Type {
        self.g.ty(self.values[v.0 as usize]).unwrap().clone()
    }
}

/// The graph of an op's gradient: inputs are the operands, then a cotangent a result; outputs are the cotangents given.
fn gradient(op: &Op, types: &[&str]) -> (Graph, Vec<bool>) {
    let (g, ins) = graph(types, false);
    let mut r = Record { g, values: Vec::new(), error: None };
    let operands: Vec<GVal> = ins.into_iter().map(|v| r.value(v)).collect();
    let results = r.op(op.clone(), &operands);
    let tys: Vec<Type> = results.iter().map(|v| r.ty(*v)).collect();
    let mut cotangents = Vec::new();
    for (i, t) in tys.iter().enumerate() {
        let v = r.g.input(&format!("g{i}"), t.clone(), Loc::default());
        cotangents.push(r.value(v));
    }
    let given = {
        let mut cx = GradCx { b: &mut r, operands: operands.clone(), results, cotangents };
        op.gradient(&mut cx).unwrap().unwrap()
    };
    assert!(r.error.is_none(), "{op:?}: {}", r.error.unwrap());
    for (i, (g, x)) in given.iter().zip(&operands).enumerate() {
        if let Some(g) = g {
            assert_eq!(r.ty(*g), r.ty(*x), "{op:?}, operand {i}");
            r.g.output(&format!("d{i}"), r.values[g.0 as usize]);
        }
    }
    assert_eq!(given.len(), operands.len(), "{op:?}");
    (r.g, given.iter().map(Option::is_some).collect())
}

/// Differentiable ops whose gradient is a rule, with operands: floats are differentiated, integers are given data.
fn rules() -> Vec<(Op, Vec<&'static str>)> {
    let n = || Dim::sym("n");
    let pad =
        Pad { before: dims(&[0, 1]), after: vec![n(), 2.into()], value: Scalar::from_f64(DType::F64, 1.0) };
    let add = ScatterElements { axis: 1, reduction: "add".into() };
    let set = ScatterElements { axis: 1, reduction: "none".into() };
    vec![
        (Cast { to: DType::F32 }.into(), vec!["f64[n, 3]"]),
        (Reshape { shape: vec![3.into(), n()] }.into(), vec!["f64[n, 3]"]),
        (Expand { shape: vec![2.into(), n(), 3.into()] }.into(), vec!["f64[n, 1]"]),
        (Transpose { perm: vec![2, 0, 1] }.into(), vec!["f64[n, 3, 4]"]),
        (slice(&[n() - Dim::from(1), 1.into()], &[n(), 2.into()], &[-1, 2]).into(), vec!["f64[n, 5]"]),
        (slice(&dims(&[0, 1]), &[n(), 2.into()], &[1, 1]).into(), vec!["f64[n, 5]"]),
        (Concat { axis: 1 }.into(), vec!["f64[n, 2]", "f64[n, m]"]),
        (pad.into(), vec!["f64[n, 2]"]),
        (ReduceSum { axes: vec![0], keepdims: false }.into(), vec!["f64[n, 3]"]),
        (ReduceMean { axes: vec![0, 2], keepdims: false }.into(), vec!["f64[n, 3, 2]"]),
        (ReduceMax { axes: vec![1], keepdims: true }.into(), vec!["f64[n, 3]"]),
        (ReduceMin { axes: vec![1], keepdims: false }.into(), vec!["f64[n, 3]"]),
        (ReduceProd { axes: vec![-1], keepdims: false }.into(), vec!["f64[n, 3]"]),
        (Matmul {}.into(), vec!["f64[n, 2, 3]", "f64[3, 4]"]),
        (Matmul {}.into(), vec!["f64[3]", "f64[n, 3, 2]"]),
        (Matmul {}.into(), vec!["f64[n, 3]", "f64[3]"]),
        (Matmul {}.into(), vec!["f64[n]", "f64[n]"]),
        (conv(&[1], &[1, 1], &[1], 1).into(), vec!["f64[n, 2, h]", "f64[3, 2, 3]", "f64[3]"]),
        (conv(&[2, 1], &[1, 0, 0, 2], &[1, 2], 2).into(), vec!["f64[n, 4, 6, 5]", "f64[6, 2, 3, 2]"]),
        (conv(&[3], &[4, 0], &[1], 1).into(), vec!["f64[2, 1, 7]", "f64[2, 1, 3]"]),
        (last(conv(&[2, 1], &[1, 0, 0, 2], &[1, 2], 2)).into(), vec!["f64[n, 6, 5, 4]", "f64[6, 2, 3, 2]"]),
        (last(conv(&[1], &[1, 1], &[1], 1)).into(), vec!["f64[n, h, 2]", "f64[3, 2, 3]", "f64[3]"]),
        (max_pool(&[3, 2], &[2, 1], &[1, 0, 0, 1], true).into(), vec!["f64[n, 2, 4, 4]"]),
        (MaxPool { channels_last: true, ..max_pool(&[3], &[2], &[1, 0], true) }.into(), vec!["f64[n, 7, 2]"]),
        (avg_pool(&[2], &[2], &[0, 0], false, false).into(), vec!["f64[n, 2, 7]"]),
        (avg_pool(&[3], &[2], &[1, 1], true, true).into(), vec!["f64[n, 2, 6]"]),
        (avg_pool(&[3], &[2], &[1, 1], true, false).into(), vec!["f64[n, 2, 6]"]),
        (
            AvgPool { channels_last: true, ..avg_pool(&[3], &[2], &[1, 1], true, true) }.into(),
            vec!["f64[n, 6, 2]"],
        ),
        (Gather { axis: 1 }.into(), vec!["f64[n, 4, 2]", "i64[2, 3]"]),
        (GatherElements { axis: 1 }.into(), vec!["f64[n, 4]", "i64[n, 3]"]),
        (add.into(), vec!["f64[n, 4]", "i64[n, 3]", "f64[n, 3]"]),
        (set.into(), vec!["f64[n, 8]", "i64[n, 3]", "f64[n, 3]"]),
        (UpdateSlice { axis: 0 }.into(), vec!["f64[6, n]", "i64[]", "f64[2, n]"]),
        (CumSum { axis: 1, exclusive: true, reverse: false }.into(), vec!["f64[n, 4]"]),
        (TopK { axis: 1, k: 2.into(), largest: true }.into(), vec!["f64[n, 4]"]),
        (Softmax { axis: 1 }.into(), vec!["f64[n, 3]"]),
        (LogSoftmax { axis: -1 }.into(), vec!["f64[n, 3]"]),
    ]
}

#[test]
fn gradients_have_the_types_of_their_operands() {
    for (op, types) in rules() {
        let (_, given) = gradient(&op, &types);
        for (given, t) in given.iter().zip(&types) {
            assert_eq!(*given, t.starts_with('f'), "{op:?}");
        }
    }
}

/// Data of a type for small sizes: distinct floats around 0; integers that count along the last axis.
fn data(t: &Type, salt: usize) -> Tensor {
    let leaf = |a: &Atom| match a {
        Atom::Sym(s) => [("n", 2), ("m", 3), ("h", 5)].iter().find(|x| x.0 == &**s).map(|x| x.1),
        _ => None,
    };
    let shape: Vec<usize> = t.shape.iter().map(|d| d.eval(&leaf).unwrap() as usize).collect();
    let (count, last): (usize, usize) = (shape.iter().product(), shape.last().copied().unwrap_or(2));
    if !t.dtype.is_float() {
        let v: Vec<i64> = (0..count).map(|i| if shape.is_empty() { 1 } else { (i % last) as i64 }).collect();
        return Tensor::from_ints(t.dtype, &shape, &v);
    }
    let v: Vec<f64> = (0..count).map(|i| ((i * 37 + salt * 13) % 101) as f64 / 50.0 - 1.0).collect();
    Tensor::from_f64(t.dtype, &shape, &v)
}

fn run(g: &Graph, ins: &[Tensor]) -> Vec<Tensor> {
    crate::interp::run_graph(g, ins, &|_| None).unwrap_or_else(|d| panic!("{d}"))
}

#[test]
fn gradients_agree_with_finite_differences() {
    const STEP: f64 = 1e-5;
    for (op, types) in rules().into_iter().filter(|r| r.0.name() != "cast") {
        let (mut forward, ins) = graph(&types, false);
        let id = forward.add(op.clone(), &ins, Vec::new(), Loc::default()).unwrap();
        let outs: Vec<Type> = forward.node(id).unwrap().results.iter().map(|f| f.ty.clone()).collect();
        forward.output("y", Value { node: id, result: 0 });
        let x: Vec<Tensor> = types.iter().enumerate().map(|(i, t)| data(&ty(t), i)).collect();
        let mut g: Vec<Tensor> = outs.iter().map(|_| run(&forward, &x).swap_remove(0)).collect();
        g[0] = data(&g[0].ty(), 9);
        if let Some(t) = outs.get(1) {
            g[1] = Tensor::from_ints(t.dtype, &g[0].shape, &vec![0; g[0].numel()]);
        }
        let loss = |x: &[Tensor]| {
            let y = run(&forward, x).swap_remove(0).to_f64();
            y.iter().zip(g[0].to_f64()).map(|(a, b)| a * b).sum::<f64>()
        };
        let (backward, given) = gradient(&op, &types);
        let all: Vec<Tensor> = x.iter().chain(&g).cloned().collect();
        let mut found = run(&backward, &all).into_iter();
        for i in (0..x.len()).filter(|i| given[*i]) {
            let d = found.next().unwrap();
            assert_eq!(d.shape, x[i].shape, "{op:?}");
            for (e, got) in d.to_f64().into_iter().enumerate() {
                let moved = |by: f64| {
                    let mut v = x[i].to_f64();
                    v[e] += by;
                    let mut x = x.clone();
                    x[i] = Tensor::from_f64(DType::F64, &x[i].shape.clone(), &v);
                    loss(&x)
                };
                let want = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
                let close = (got - want).abs() <= 1e-6 * (1.0 + want.abs());
                assert!(close, "{op:?}, operand {i}, element {e}: {got} and {want}");
            }
        }
    }
}

#[test]
fn attributes_read_back() {
    for (op, _) in rules() {
        let attrs: Attrs = op.attrs().into_iter().map(|(k, v)| (k.to_string(), v)).collect();
        assert_eq!(Op::from_attrs(op.name(), attrs), Some(Ok(op)));
    }
    let unknown = [("axes".to_string(), Attr::Int(1))].into_iter().collect();
    let text = Op::from_attrs("softmax", unknown).unwrap().unwrap_err();
    assert_eq!(text, "unknown attribute `axes`; valid: axis");
    assert!(Op::from_attrs("transpose", Attrs::new()).unwrap().unwrap_err().contains("`perm`"));
}
