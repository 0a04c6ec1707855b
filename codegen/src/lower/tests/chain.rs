//! Regions that hold two contractions, at several sizes: the graph, the kernel and compiled code compute the same.

use super::check_region;
use super::region::{Region, Rng};
use tgc_ir::graph::Value;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::{Atom, DType};

/// A region from its text, with sizes of its symbols and data.
fn region(text: &str, sizes: &[(&str, i64)], seed: u64) -> Region {
    let graph = tgc_ir::text::parse_graph(text).unwrap_or_else(|e| panic!("{}", e[0].render(Some(text))));
    let symbols = sizes.iter().map(|(n, v)| (n.to_string(), *v)).collect();
    let mut rng = Rng::new(seed);
    let size = |a: &Atom| match a {
        Atom::Sym(s) => sizes.iter().find(|(n, _)| *n == &**s).map(|x| x.1),
        _ => None,
    };
    let mut inputs = Vec::new();
    for &id in graph.inputs() {
        let ty = graph.ty(Value { node: id, result: 0 }).unwrap();
        let shape: Vec<usize> = ty.shape.iter().map(|d| d.eval(&size).unwrap() as usize).collect();
        let count: usize = shape.iter().product();
        let elems = (0..count).map(|_| match ty.dtype {
            // Half of a mask lets nothing through, so that whole rows are masked at small sizes.
            DType::Bool => Scalar::bool(rng.below(2) == 0),
            d => Scalar::from_f64(d, rng.unit() * 4.0 - 2.0),
        });
        inputs.push(Tensor::from_scalars(ty.dtype, &shape, elems.collect::<Vec<_>>()));
    }
    Region { graph, inputs, symbols }
}

fn check(text: &str) {
    let sizes = [(2, 1, 5), (1, 7, 33), (1, 2, 0)];
    for (i, (b, s, t)) in sizes.into_iter().enumerate() {
        let r = region(text, &[("b", b), ("s", s), ("t", t)], i as u64);
        assert!(check_region(i as u64, &r), "b = {b}, s = {s}, t = {t} did not run\n{text}");
    }
}

const ATTENTION: &str = "graph @f(%x: f32[b, s, 3, 4], %k: f32[b, t, 3, 4], %v: f32[b, t, 3, 5], %mask: f32[b, 1, 1, t]) -> f32[b, s, 3, 5] {
    %q = transpose %x {perm = [0, 2, 1, 3]} : f32[b, 3, s, 4]
    %kt = transpose %k {perm = [0, 2, 3, 1]} : f32[b, 3, 4, t]
    %vt = transpose %v {perm = [0, 2, 1, 3]} : f32[b, 3, t, 5]
    %a = matmul %q, %kt : f32[b, 3, s, t]
    %e = add %a, %mask : f32[b, 3, s, t]
    %m = reduce_max %e {axes = [3], keepdims = true} : f32[b, 3, s, 1]
    %d = sub %e, %m : f32[b, 3, s, t]
    %g = exp %d : f32[b, 3, s, t]
    %n = reduce_sum %g {axes = [3], keepdims = true} : f32[b, 3, s, 1]
    %p = div %g, %n : f32[b, 3, s, t]
    %w = matmul %p, %vt : f32[b, 3, s, 5]
    %y = transpose %w {perm = [0, 2, 1, 3]} : f32[b, s, 3, 5]
    return %y
}";

#[test]
fn attention_is_one_kernel() {
    check(ATTENTION);
}

#[test]
fn attention_of_half_precision_rounds_as_the_graph_does() {
    check(&ATTENTION.replace("f32", "f16"));
}

#[test]
fn rows_masked_as_a_whole_keep_their_guard() {
    let text = "graph @f(%q: f32[b, s, 4], %k: f32[b, 4, t], %v: f32[b, t, 6], %keep: bool[b, s, t]) -> (f32[b, s, t], f32[b, s, 6]) {
        %a = matmul %q, %k : f32[b, s, t]
        %far = constant -inf : f32[]
        %e = select %keep, %a, %far : f32[b, s, t]
        %m = reduce_max %e {axes = [2], keepdims = true} : f32[b, s, 1]
        %d = sub %e, %m : f32[b, s, t]
        %g = exp %d : f32[b, s, t]
        %n = reduce_sum %g {axes = [2], keepdims = true} : f32[b, s, 1]
        %p = div %g, %n : f32[b, s, t]
        %bad = is_nan %p : bool[b, s, t]
        %zero = constant 0.0 : f32[]
        %r = select %bad, %zero, %p : f32[b, s, t]
        %y = matmul %r, %v : f32[b, s, 6]
        return %r, %y
    }";
    check(text);
}

#[test]
fn the_first_result_may_be_the_right_operand() {
    let text = "graph @f(%q: f32[b, s, 4], %k: f32[b, 4, t], %v: f32[b, 6, t]) -> f32[b, 6, s] {
        %a = matmul %q, %k : f32[b, s, t]
        %m = reduce_max %a {axes = [2], keepdims = true} : f32[b, s, 1]
        %d = sub %a, %m : f32[b, s, t]
        %dt = transpose %d {perm = [0, 2, 1]} : f32[b, t, s]
        %y = matmul %v, %dt : f32[b, 6, s]
        return %y
    }";
    check(text);
}
