//! Programs that share buffers give the results of those that do not: random graphs, every node a kernel of its own, run with
//! classes and without, on one thread and on two. What a kernel allows, case by case.

use super::program::{Lowered, Stored};
use super::{compile, lower_module};
use crate::cpu::Target;
use crate::kernel::{Kernel, Role, reuse, text};
use crate::lower::tests::region::{Region, Rng, random};
use std::collections::BTreeMap;
use std::io::Cursor;
use tgc_ir::diag::Loc;
use tgc_ir::graph::{Graph, Value};
use tgc_ir::module::{Entry, Module};
use tgc_ir::ops::{
    Abs, Add, Constant, Div, Exp, Fused, Matmul, Neg, Op, ReduceMax, ReduceSum, Relu, Reshape, Sub,
};
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{DType, Dim, SymInfo, Type};
use tgc_runtime as rt;

/// A node in a region of its own.
fn alone(out: &mut Graph, op: &Op, operands: &[Value], results: usize) -> Value {
    let mut region = Graph::region(&out.symbols);
    let inner: Vec<Value> = operands
        .iter()
        .enumerate()
        .map(|(i, v)| region.input(&format!("x{i}"), out.ty(*v).unwrap().clone(), Loc::default()))
        .collect();
    let node = region.add(op.clone(), &inner, Vec::new(), Loc::default()).unwrap();
    for result in 0..results as u32 {
        region.output(&format!("y{result}"), Value { node, result });
    }
    let made = out.add(Fused {}.into(), operands, vec![region], Loc::default()).unwrap();
    Value { node: made, result: 0 }
}

/// The graph with each node in a region of its own; of numeric inputs and outputs the negative is
/// taken, so that all between are temporaries.
fn outlined(g: &Graph) -> Graph {
    let mut out = Graph::new("forward");
    out.symbols = g.symbols.clone();
    let mut of: BTreeMap<Value, Value> = BTreeMap::new();
    for id in g.topo() {
        let node = g.node(id).unwrap();
        let operands: Vec<Value> = g.operands(id).iter().map(|v| of[v]).collect();
        let made = match &node.op {
            Op::Input(i) => {
                let x = out.input_op(i.clone(), Loc::default());
                let numeric = i.dtype.is_float() || i.dtype.is_int();
                if numeric { alone(&mut out, &Neg {}.into(), &[x], 1).node } else { x.node }
            }
            Op::Constant(_) | Op::Weight(_) => {
                out.add(node.op.clone(), &[], Vec::new(), Loc::default()).unwrap()
            }
            Op::Fused(f) => {
                out.add(f.clone().into(), &operands, node.regions.clone(), Loc::default()).unwrap()
            }
            op => alone(&mut out, op, &operands, node.results.len()).node,
        };
        for result in 0..node.results.len() as u32 {
            of.insert(Value { node: id, result }, Value { node: made, result });
        }
    }
    for o in g.outputs() {
        let (v, dtype) = (of[&o.value], g.ty(o.value).unwrap().dtype);
        let numeric = dtype.is_float() || dtype.is_int();
        let v = if numeric { alone(&mut out, &Neg {}.into(), &[v], 1) } else { v };
        out.output(&o.name, v);
    }
    out
}

fn lower(g: &Graph) -> Option<Lowered> {
    let mut module = Module::default();
    module.entries.insert("forward".into(), Entry { body: outlined(g), variants: Vec::new() });
    match lower_module(&module) {
        Ok(l) => Some(l),
        Err(d) if d.iter().all(|d| matches!(d.code, "E-CG-002" | "E-CG-024")) => None,
        Err(d) => panic!("{}\n{}", d[0], tgc_ir::text::print_graph(g)),
    }
}

fn programs(m: &rt::Manifest) -> impl Iterator<Item = &rt::Program> {
    m.entries.iter().flat_map(|e| &e.variants).filter_map(|v| v.body.as_ref().ok())
}

fn shared(m: &rt::Manifest) -> usize {
    programs(m).flat_map(|p| &p.buffers).filter(|b| b.alias.is_some()).count()
}

fn open(m: &rt::Manifest, code: &[u8], weights: &[Stored]) -> std::sync::Arc<rt::Model> {
    let mut file = Cursor::new(Vec::new());
    let mut write = |i: usize, w: &mut dyn std::io::Write| w.write_all(&weights[i].bytes());
    rt::write(m, &[code], &mut write, &mut file).unwrap();
    rt::Loader::default().from_bytes(&file.into_inner()).unwrap()
}

/// Result bytes, or the error's text.
fn run(
    model: &std::sync::Arc<rt::Model>,
    inputs: &[(String, rt::Tensor)],
    threads: usize,
) -> Result<Vec<Vec<u8>>, String> {
    let options = rt::SessionOptions { threads: Some(threads), ..rt::SessionOptions::default() };
    let mut s = rt::Session::new(model, "forward", &options).unwrap();
    let given: Vec<(&str, &rt::Tensor)> = inputs.iter().map(|(n, t)| (n.as_str(), t)).collect();
    // The second run finds what the first one left in the arena.
    s.run_owned(&given).map_err(|e| e.to_string())?;
    let out = s.run_owned(&given).map_err(|e| e.to_string())?;
    Ok(out.into_iter().map(|(_, t)| t.bytes().to_vec()).collect())
}

/// Compares runs with classes and without; gives the number of buffers in classes, `None` if there is nothing to compare.
fn compare(seed: u64, r: &Region) -> Option<usize> {
    let lowered = lower(&r.graph)?;
    let artifact = compile(lowered, &[Target::parse("native").unwrap()], &[], 1, "", &|| ()).unwrap();
    let n = shared(&artifact.manifest);
    if n == 0 {
        return Some(0);
    }
    let mut plain = artifact.manifest.clone();
    for v in plain.entries.iter_mut().flat_map(|e| &mut e.variants) {
        v.body.as_mut().unwrap().buffers.iter_mut().for_each(|b| b.alias = None);
    }
    let inputs: Vec<(String, rt::Tensor)> = artifact.manifest.entries[0]
        .inputs
        .iter()
        .zip(&r.inputs)
        .map(|(p, t)| (p.name.clone(), rt::Tensor::new(p.dtype, &t.shape, t.data.bytes()).unwrap()))
        .collect();
    let with = open(&artifact.manifest, &artifact.images[0], &artifact.weights);
    let without = open(&plain, &artifact.images[0], &artifact.weights);
    let want = run(&without, &inputs, 1);
    for threads in [1, 2] {
        assert_eq!(
            run(&with, &inputs, threads),
            want,
            "seed {seed}\n{}",
            tgc_ir::text::print_graph(&r.graph)
        );
    }
    Some(n)
}

#[test]
fn sharing_changes_no_result() {
    let wanted = crate::lower::tests::count(40);
    let (mut done, mut classes) = (0, 0);
    for seed in 0..wanted * 100 {
        if done == wanted {
            break;
        }
        let Some(r) = random(&mut Rng::new(seed)) else { continue };
        if let Some(n) = compare(seed, &r)
            && n > 0
        {
            done += 1;
            classes += n;
        }
    }
    assert_eq!(done, wanted);
    assert!(classes as u64 >= 2 * wanted, "{classes} buffers in classes");
}

/// Two branches, a contraction in several chunks with a residual after it, softmax, reshapes.
#[test]
fn a_residual_block_needs_two_places() {
    let mut g = Graph::new("forward");
    g.symbols.insert("n", SymInfo { lo: 1, hi: 40, named: true });
    let k = 2500i64;
    let ty = |dims: &[Dim]| Type::new(DType::F32, dims.to_vec());
    let (n, at) = (Dim::sym("n"), Loc::default());
    let (tall, wide) = (ty(&[n.clone(), k.into()]), ty(&[k.into(), k.into()]));
    let x = g.input("x", tall.clone(), at.clone());
    let w = g.input("w", wide.clone(), at.clone());
    let left = g.op(Relu {}, &[x], &at).unwrap();
    let residual = g.op(Abs {}, &[x], &at).unwrap();
    let mut region = Graph::region(&g.symbols);
    let inner: Vec<Value> = [("x0", &tall), ("x1", &wide), ("x2", &tall)]
        .into_iter()
        .map(|(name, t)| region.input(name, t.clone(), at.clone()))
        .collect();
    let product = region.op(Matmul {}, &inner[..2], &at).unwrap();
    let sum = region.op(Add {}, &[product, inner[2]], &at).unwrap();
    region.output("y", sum);
    let fused = g.add(Fused {}.into(), &[left, w, residual], vec![region], at.clone()).unwrap();
    let mut softmax = Graph::region(&g.symbols);
    let row = softmax.input("x0", tall.clone(), at.clone());
    let max = softmax.op(ReduceMax { axes: vec![1], keepdims: true }, &[row], &at).unwrap();
    let less = softmax.op(Sub {}, &[row, max], &at).unwrap();
    let exp = softmax.op(Exp {}, &[less], &at).unwrap();
    let total = softmax.op(ReduceSum { axes: vec![1], keepdims: true }, &[exp], &at).unwrap();
    let part = softmax.op(Div {}, &[exp, total], &at).unwrap();
    softmax.output("y", part);
    let fused = g.add(Fused {}.into(), &[Value { node: fused, result: 0 }], vec![softmax], at.clone());
    let s = Value { node: fused.unwrap(), result: 0 };
    let v = g.op(Reshape { shape: vec![n * Dim::from(50), 50.into()] }, &[s], &at).unwrap();
    let y = g.op(Neg {}, &[v], &at).unwrap();
    let z = g.op(Reshape { shape: vec![Dim::sym("n"), 50.into(), 50.into()] }, &[y], &at).unwrap();
    g.output("z", z);
    let lowered = lower(&g).unwrap();
    let steps: Vec<&rt::Step> =
        programs(&lowered.manifest).flat_map(|p| &p.segments).flat_map(|s| &s.steps).collect();
    assert_eq!(
        steps.len(),
        8,
        "two branches with their negatives, the sum, softmax, the last: reshapes run nothing"
    );
    assert!(steps.iter().all(|s| matches!(s, rt::Step::Launch { .. })));
    let in_place: BTreeMap<&str, Vec<(u32, u32)>> =
        lowered.kernels.iter().map(|k| (k.name.as_str(), reuse::in_place(k))).collect();
    assert_eq!(in_place["matmul_add"], [(3, 2)], "over the residual, never over a factor");
    assert_eq!(
        in_place["reduce_max_sub_exp_reduce_sum_div"],
        [(1, 0)],
        "rows are read by the tile that writes them"
    );
    assert!(lowered.kernels.iter().all(|k| reuse::copied(k).is_none()));
    let mut stream = Rng::new(5);
    let mut tensor = |shape: &[usize]| {
        let v: Vec<f64> = (0..shape.iter().product::<usize>()).map(|_| stream.unit() - 0.5).collect();
        Tensor::from_f64(DType::F32, shape, &v)
    };
    let inputs = vec![tensor(&[3, k as usize]), tensor(&[k as usize, k as usize])];
    let region = Region { graph: g, inputs, symbols: BTreeMap::from([("n".to_string(), 3)]) };
    // x negated dies in the second branch, that in the sum, that in softmax, that in the negative of its reshape.
    assert_eq!(compare(0, &region), Some(5));
}

/// What must not be called a copy, and what may not be overwritten.
#[test]
fn moved_and_reread_elements_are_seen() {
    let one = |text: &str| text::parse(text).unwrap().remove(0);
    let map = |dims: &str, out: &str, index: &str| {
        one(&format!(
            "kernel @k(d0)(%x: in f32[{dims}], %y: out f32[{out}]) grid [{out}] {{ \
             stage \"s\" over [#0, #1] map {{ load 0 %x[{index}] $0 = arg 0 : f32 result $0 \
             store %y[#0, #1] = 0 }} }}"
        ))
    };
    let copied = |dims: &str, out: &str, index: &str| {
        let k = map(dims, out, index);
        (reuse::copied(&k).is_some(), !reuse::in_place(&k).is_empty())
    };
    assert_eq!(copied("d0, 8", "d0, 8", "#0, #1"), (true, true));
    assert_eq!(copied("d0 * 8", "d0, 8", "8 * #0 + #1"), (true, true), "a reshape");
    assert_eq!(copied("1, d0", "d0, 1", "#1, #0"), (true, true), "a transpose that moves nothing");
    assert_eq!(copied("8, 8", "8, 8", "#1, #0"), (false, false), "a transpose");
    assert_eq!(copied("d0, 8", "d0, 8", "#0, 7 - #1"), (false, false), "reversed rows");
    assert_eq!(copied("d0, 1", "d0, 8", "#0, 0"), (false, false), "a broadcast");
    assert_eq!(copied("9, 8", "8, 8", "#0, #1"), (false, false), "a part");
}

/// A weight that contractions read on either side: the one that a block's vectors run along is packed, the other is not.
#[test]
fn a_weight_on_both_sides_is_packed_on_one() {
    let mut g = Graph::new("forward");
    g.symbols.insert("n", SymInfo { lo: 0, hi: 40, named: true });
    let x = g.input("x", Type::new(DType::F32, vec![Dim::sym("n"), Dim::from(16)]), Loc::default());
    let value = Tensor::from_f64(DType::F32, &[16, 16], &[0.5; 256]);
    let w = g.op(Constant { value, shape: None }, &[], &Loc::default()).unwrap();
    for (name, left) in [("a", x), ("b", w)] {
        let y = g.op(Matmul {}, &[left, w], &Loc::default()).unwrap();
        g.output(name, y);
    }
    let lowered = lower(&g).unwrap();
    let weights = |k: &Kernel| -> Vec<bool> {
        let weights = k.args.iter().filter(|a| a.role == Role::Const);
        weights.map(|a| a.packed.is_some()).collect()
    };
    let forms: Vec<Vec<bool>> = lowered.kernels.iter().map(weights).filter(|w| !w.is_empty()).collect();
    assert_eq!(forms, [vec![true], vec![false, true]]);
    compile(lowered, &[Target::parse("native").unwrap()], &[], 1, "", &|| ()).unwrap();
}
