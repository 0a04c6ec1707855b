//! Tests of error bounds: an evaluation in lower precision stays within them, and they say something.

use super::naive::{Rng, run as emulate};
use super::*;
use crate::accuracy::within;
use crate::diag::Loc;
use crate::graph::Value;

fn bounded(text: &str, ins: &[Tensor]) -> Vec<Bounded> {
    run_bounded(&module(text), "main", ins).unwrap_or_else(|d| panic!("{d}"))
}

/// Adds a random op that keeps values moderate; gives its result.
fn grow(g: &mut Graph, pool: &[Value], rng: &mut Rng) -> Option<Value> {
    use crate::ops::*;
    let loc = Loc::default();
    let pick = |rng: &mut Rng| pool[rng.below(pool.len())];
    let (a, b) = (pick(rng), pick(rng));
    let shape = g.ty(a)?.shape.clone();
    let last = shape.len().checked_sub(1)? as i64;
    let made = match rng.below(15) {
        0 => g.op(Add {}, &[a, b], &loc),
        1 => g.op(Sub {}, &[a, b], &loc),
        2 => g.op(Mul {}, &[a, b], &loc),
        3 => g.op(Tanh {}, &[a], &loc),
        4 => g.op(Sigmoid {}, &[a], &loc),
        5 => g.op(Relu {}, &[a], &loc),
        6 => g.op(Erf {}, &[a], &loc),
        7 => g.op(Sin {}, &[a], &loc),
        8 => g.op(Max {}, &[a, b], &loc),
        9 => g.op(Matmul {}, &[a, b], &loc),
        10 => g.op(Softmax { axis: -1 }, &[a], &loc),
        11 => g.op(ReduceSum { axes: vec![last], keepdims: true }, &[a], &loc),
        12 => {
            let t = g.op(Tanh {}, &[a], &loc).ok()?;
            g.op(Exp {}, &[t], &loc)
        }
        13 => {
            let s = g.op(Mul {}, &[a, a], &loc).ok()?;
            let two =
                g.op(Constant::scalar(crate::scalar::Scalar::from_f64(DType::F32, 2.0)), &[], &loc).ok()?;
            let s = g.op(Add {}, &[s, two], &loc).ok()?;
            let d = g.op(Div {}, &[b, s], &loc).ok()?;
            let l = g.op(Log {}, &[s], &loc).ok()?;
            let r = g.op(Sqrt {}, &[l], &loc).ok()?;
            g.op(Mul {}, &[d, r], &loc)
        }
        _ => g.op(ReduceMax { axes: vec![0], keepdims: true }, &[a], &loc),
    };
    made.ok()
}

fn random_graph(rng: &mut Rng) -> Graph {
    let mut g = Graph::new("main");
    let shape = [[4, 4], [1, 4], [4, 1]];
    let mut pool: Vec<Value> = shape
        .iter()
        .enumerate()
        .map(|(i, s)| g.input(&format!("x{i}"), Type::fixed(DType::F32, s), Loc::default()))
        .collect();
    while pool.len() < 12 {
        if let Some(v) = grow(&mut g, &pool, rng) {
            pool.push(v);
        }
    }
    for (i, v) in pool[3..].iter().enumerate() {
        g.output(&format!("y{i}"), *v);
    }
    g
}

#[test]
fn lower_precision_stays_within_the_bound_which_is_not_absurd() {
    let mut rng = Rng(0x1234_5678_9abc_def1);
    let (mut ratios, mut infinite, mut total) = (Vec::new(), 0, 0);
    for case in 0..300 {
        let g = random_graph(&mut rng);
        let ins: Vec<Tensor> = [[4, 4], [1, 4], [4, 1]]
            .iter()
            .map(|s| f(s, &(0..s[0] * s[1]).map(|_| 2.0 * rng.unit()).collect::<Vec<_>>()))
            .collect();
        let want = run_graph_bounded(&g, &ins, &|_| None).unwrap();
        let got = emulate(&g, &ins, &mut rng);
        for (i, (w, t)) in want.iter().zip(&got).enumerate() {
            if let Err(m) = within(t, &w.tensor, &w.bound) {
                panic!("case {case}, output {i}: {m}\n{}", crate::text::print_graph(&g));
            }
            for ((a, b), bound) in w.tensor.to_f64().iter().zip(t.to_f64()).zip(&w.bound) {
                total += 1;
                infinite += usize::from(bound.is_infinite());
                let actual = (a - b).abs();
                if actual > 0.0 && bound.is_finite() {
                    ratios.push(bound / actual);
                }
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[ratios.len() / 2];
    assert!(ratios.len() > 5000 && infinite * 100 < total, "{} {infinite} {total}", ratios.len());
    assert!(median < 1e3, "the bound is typically {median} times the actual error");
}

#[test]
fn plain_runs_agree_with_bounded_ones() {
    let mut rng = Rng(77);
    let g = random_graph(&mut rng);
    let ins: Vec<Tensor> = [[4, 4], [1, 4], [4, 1]].iter().map(|s| f(s, &vec![0.7; s[0] * s[1]])).collect();
    let plain = run_graph(&g, &ins, &|_| None).unwrap();
    let with = run_graph_bounded(&g, &ins, &|_| None).unwrap();
    assert!(plain.iter().zip(&with).all(|(p, w)| *p == w.tensor));
}

#[test]
fn exact_ops_on_exact_operands_have_no_bound() {
    let text = "graph @main(%a: f32[3], %b: f32[3]) -> (f32[3], f32[3], f32[3]) {
      %0 = div %a, %b : f32[3]
      %1 = exp %0 : f32[3]
      %2 = add %1, %b : f32[3]
      return %0, %1, %2
    }";
    let out = bounded(text, &[f(&[3], &[1., 2., 3.]), f(&[3], &[3., 7., 9.])]);
    assert_eq!(out[0].bound, [0.0; 3]);
    let eps = DType::F32.epsilon();
    for (v, b) in out[1].tensor.to_f64().iter().zip(&out[1].bound) {
        assert!(*b >= 4.0 * eps * v && *b <= 6.0 * eps * v);
    }
    assert!(out[2].bound.iter().zip(&out[1].bound).all(|(b, a)| b > a));
}

#[test]
fn decisions_within_reach_give_the_hull() {
    let text = "graph @main(%x: f32[2]) -> (f32[2], i64[2], bool[2], f32[2]) {
      %t = tanh %x : f32[2]
      %h = constant splat 0.46211717 : f32[2]
      %c = lt %t, %h : bool[2]
      %big = constant splat 100.0 : f32[2]
      %s = select %c, %t, %big : f32[2]
      %m = mul %t, %big : f32[2]
      %i = cast %m {to = i64} : i64[2]
      %r = relu %t : f32[2]
      return %s, %i, %c, %r
    }";
    let out = bounded(text, &[f(&[2], &[0.5, -2.0])]);
    assert!(out[0].bound[0] > 99.0 && out[0].bound[1] < 1e-6, "{:?}", out[0].bound);
    assert_eq!(out[2].bound, [1.0, 0.0]);
    assert_eq!(out[1].bound, [0.0, 0.0]);
    assert!(out[3].bound.iter().all(|b| b.is_finite() && *b < 1e-6));
}

#[test]
fn what_cannot_be_bounded_is_infinite() {
    let text = "graph @main(%x: f32[4]) -> (f32[1], f32[4], i64[1]) {
      %t = tanh %x : f32[4]
      %u = sub %t, %t : f32[4]
      %q = sqrt %u : f32[4]
      %v, %i = top_k %t {axis = 0, k = 1} : f32[1], i64[1]
      return %v, %q, %i
    }";
    let out = bounded(text, &[f(&[4], &[0.5, 0.5, 0.1, 0.2])]);
    assert!(out[0].bound[0] < 1e-6 && out[0].bound[0] > 0.0);
    assert_eq!(out[2].bound, [f64::INFINITY]);
    assert!(out[1].bound.iter().all(|b| b.is_infinite()));
    let out = bounded(text, &[f(&[4], &[0.5, 0.4, 0.1, 0.2])]);
    assert_eq!(out[2].bound, [0.0]);
}

#[test]
fn sums_are_bounded_by_their_terms_not_their_result() {
    let text = "graph @main(%x: f32[n]) -> (f32[], f32[]) {
      %s = reduce_sum %x {axes = [0]} : f32[]
      %d = matmul %x, %x : f32[]
      return %s, %d
    }";
    let n = 10_000;
    let x: Vec<f64> = (0..n).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let out = bounded(text, &[f(&[n], &x)]);
    let eps = DType::F32.epsilon();
    let want = 4.0 * 100.0 * eps * n as f64;
    assert!(
        out[0].tensor.to_f64() == [0.0] && (out[0].bound[0] / want - 1.0).abs() < 0.01,
        "{:?}",
        out[0].bound
    );
    assert!(out[1].bound[0] > want && out[1].bound[0] < 1.1 * want);
}

#[test]
fn zero_terms_round_nothing() {
    let text = "graph @main(%x: f32[1, n], %w: f32[n, 1]) -> f32[1, 1] {
      %0 = matmul %x, %w : f32[1, 1]
      return %0
    }";
    let n = 1000;
    let mut x = vec![0.0; n];
    x[17] = 1.0;
    let out = bounded(text, &[f(&[1, n], &x), f(&[n, 1], &vec![0.5; n])]);
    assert!(out[0].bound[0] < 3.0 * DType::F32.epsilon() * 0.5 + 1e-12, "{:?}", out[0].bound);
}

#[test]
fn masks_of_infinities_stay_finite() {
    let text = "graph @main(%x: f32[2, 3], %m: f32[3]) -> f32[2, 3] {
      %t = tanh %x : f32[2, 3]
      %0 = add %t, %m : f32[2, 3]
      %1 = softmax %0 : f32[2, 3]
      return %1
    }";
    let out = bounded(
        text,
        &[f(&[2, 3], &[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), f(&[3], &[0.0, f64::NEG_INFINITY, 0.0])],
    );
    assert!(out[0].bound.iter().all(|b| *b < 1e-5), "{:?}", out[0].bound);
    assert_eq!(out[0].tensor.to_f64()[1], 0.0);
}

#[test]
fn an_unsure_size_or_branch_unbounds_what_follows() {
    let text = "graph @main(%x: f32[2]) -> (f32[2], f32[2]) {
      %t = tanh %x : f32[2]
      %h = constant splat 0.46211717 : f32[2]
      %c = lt %t, %h : bool[2]
      %n = cast %c {to = i64} : i64[2]
      %k = reduce_sum %n {axes = [0]} : i64[]
      %z = constant 1 : i64[]
      %go = lt %k, %z : bool[]
      %0 = cond(%go, %x) {
        ^(%a: f32[2]):
        %1 = neg %a : f32[2]
        return %1
      } {
        ^(%b: f32[2]):
        return %b
      } : f32[2]
      return %t, %0
    }";
    let out = bounded(text, &[f(&[2], &[0.5, 0.5])]);
    assert!(out[1].bound.iter().all(|b| b.is_infinite()) && out[0].bound[0] < 1e-6);
    let out = bounded(text, &[f(&[2], &[0.1, 0.1])]);
    assert_eq!(out[1].bound, [0.0, 0.0]);
}

#[test]
fn the_remainder_of_floored_division_is_rounded_where_it_adds_the_divisor() {
    let text = "graph @main(%x: f32[1], %y: f32[1]) -> (f32[1], f32[1]) {
  %a = exp %x : f32[1]
  %m = modulo %a, %y : f32[1]
  %r = rem %a, %y : f32[1]
  return %m, %r
}";
    let one = |v: f64| Tensor::from_f64(DType::F32, &[1], &[v]);
    let out = bounded(text, &[one(-14.0), one(-1.9)]);
    let (sum, exact) = (out[0].bound[0], out[1].bound[0]);
    assert!(sum > 1.9 * DType::F32.epsilon() && sum < 1e-6, "{sum:e}");
    assert!(exact > 0.0 && exact < 1e-12, "{exact:e}");
}
