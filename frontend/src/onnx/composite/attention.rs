//! `Attention`, as a matrix product, scale, mask, softmax and second product. Heads of keys and values that several heads
//! of queries share are broadcast views. What must not take part (boolean mask, causal frontier, window, padding) is one
//! boolean; a row in which nothing takes part gives zeros.

use super::heads::{apart, together};
use crate::onnx::check::Res;
use crate::onnx::node::NodeCx;
use crate::onnx::registry::{ANY, Row};
use crate::onnx::weights::dtype_of;
use tgc_ir::graph::Value;
use tgc_ir::ops::{Add, And, Concat, Div, Eq, Iota, Le, Lt, Matmul, Mul, Pad, Reciprocal};
use tgc_ir::ops::{ReduceMax, Select, Softmax, Sqrt, Sub, Tanh, Transpose};
use tgc_ir::scalar::Scalar;
use tgc_ir::types::{DType, Dim, Pred};

pub(crate) const ROWS: &[Row] = &[("Attention", 23, ANY, attention)];

/// Sizes of the scores: batch, heads of queries, queries, keys.
struct Sizes {
    batch: Dim,
    heads: Dim,
    queries: Dim,
    keys: Dim,
}

impl Sizes {
    fn scores(&self) -> Vec<Dim> {
        vec![self.batch.clone(), self.heads.clone(), self.queries.clone(), self.keys.clone()]
    }
}

/// What of the scores counts.
#[derive(Default)]
struct Mask {
    /// False where a key takes no part. Broadcasts to the scores.
    allowed: Option<Value>,
    /// Added to the scores. Broadcasts to them.
    bias: Option<Value>,
    /// There may be rows in which nothing takes part.
    dead_rows: bool,
}

fn attention(cx: &mut NodeCx<'_, '_>) -> Res<Vec<Value>> {
    let (q, k, v) = (cx.x(0)?, cx.x(1)?, cx.x(2)?);
    let (t, flat) = (cx.dtype(q), cx.rank(q) == 3);
    let wide = [t, cx.dtype(v)].into_iter().fold(DType::F32, |a, b| if b.bits() > a.bits() { b } else { a });
    let scale = scale(cx, q, wide)?;
    let (q, k, v) = split_heads(cx, q, k, v)?;
    let (present_k, present_v) = (joined(cx, 4, k)?, joined(cx, 5, v)?);
    let (qs, ks) = (cx.shape(q), cx.shape(present_k));
    let [batch, heads, queries, _] = &qs[..] else { return Err(rank(cx)) };
    let sizes =
        Sizes { batch: batch.clone(), heads: heads.clone(), queries: queries.clone(), keys: ks[2].clone() };
    let same = Pred::Eq(ks[2].clone(), cx.shape(present_v)[2].clone());
    cx.require(same, "keys and values must be equally many")?;
    let mask = mask(cx, &sizes, wide)?;

    let (k, v) = (shared(cx, present_k, &sizes.heads)?, shared(cx, present_v, &sizes.heads)?);
    let (q, k, v) = (cx.cast(q, wide)?, cx.cast(k, wide)?, cx.cast(v, wide)?);
    let k = cx.op(Transpose { perm: vec![0, 1, 3, 2] }, &[k])?;
    let product = cx.op(Matmul {}, &[q, k])?;
    let product = cx.op(Mul {}, &[product, scale])?;
    let capped = softcap(cx, product, wide)?;
    let masked = apply(cx, capped, &mask, &sizes, wide)?;
    let dead = dead_rows(cx, &mask, &sizes, wide)?;
    let probs = softmax(cx, masked, t, wide)?;
    let y = cx.op(Matmul {}, &[probs, v])?;
    let y = without(cx, y, dead)?;
    let y = cx.cast(y, t)?;
    let y = if flat { together(cx, y)? } else { y };
    let mut out = vec![y, present_k, present_v];
    let mode = cx.attrs.int("qk_matmul_output_mode", 0)?;
    if cx.wants(3) {
        let shown = match mode {
            0 => product,
            1 => capped,
            2 => masked,
            3 => without(cx, probs, dead)?,
            other => {
                let m = format!("qk_matmul_output_mode = {other} is not known (allowed: 0, 1, 2, 3)");
                return Err(cx.fail("E-ONNX-007", m).into());
            }
        };
        out.push(cx.cast(shown, t)?);
    }
    Ok(out)
}

fn rank(cx: &NodeCx<'_, '_>) -> crate::onnx::check::Stop {
    cx.fail("E-ONNX-022", "queries, keys and values must all have rank 3, or all rank 4").into()
}

/// Queries, keys and values as [batch, heads, length, size].
fn split_heads(cx: &mut NodeCx<'_, '_>, q: Value, k: Value, v: Value) -> Res<(Value, Value, Value)> {
    let heads = [cx.attrs.opt_int("q_num_heads")?, cx.attrs.opt_int("kv_num_heads")?];
    let mut out = Vec::new();
    for (x, heads, name) in [(q, heads[0], "q_num_heads"), (k, heads[1], "kv_num_heads"), (v, heads[1], "kv_num_heads")] {
        if cx.rank(x) != cx.rank(q) || !matches!(cx.rank(x), 3 | 4) {
            return Err(rank(cx));
        }
        out.push(apart(cx, x, heads, name)?);
    }
    let (b, kv) = (cx.shape(out[0])[0].clone(), cx.shape(out[1])[1].clone());
    for i in [1, 2] {
        let shape = cx.shape(out[i]);
        cx.require(Pred::Eq(b.clone(), shape[0].clone()), "queries, keys and values must have one batch size")?;
        cx.require(Pred::Eq(kv.clone(), shape[1].clone()), "keys and values must have equally many heads")?;
    }
    Ok((out[0], out[1], out[2]))
}

/// The scale as a scalar: the attribute, or 1 / sqrt(size of a head).
fn scale(cx: &mut NodeCx<'_, '_>, q: Value, d: DType) -> Res<Value> {
    if let Some(scale) = cx.attrs.opt_float("scale")? {
        return cx.num(d, scale);
    }
    let size = cx.shape(q).pop().unwrap_or_default();
    let size = match (cx.rank(q), cx.attrs.opt_int("q_num_heads")?) {
        (3, Some(heads)) if heads > 0 => size.floordiv(&Dim::from(heads)),
        _ => size,
    };
    if let Some(n) = size.as_const() {
        return cx.num(d, 1.0 / (n as f64).sqrt());
    }
    let size = cx.dim_value(size)?;
    let size = cx.cast(size, d)?;
    let root = cx.op(Sqrt {}, &[size])?;
    cx.op(Reciprocal {}, &[root])
}

/// Operand `past` with `new` behind it, on the axis of positions.
fn joined(cx: &mut NodeCx<'_, '_>, past: usize, new: Value) -> Res<Value> {
    match (cx.opt(4), cx.opt(5), cx.opt(past)) {
        (None, None, _) => Ok(new),
        (Some(_), Some(_), Some(old)) => cx.op(Concat { axis: 2 }, &[old, new]),
        _ => Err(cx.fail("E-ONNX-020", "past_key and past_value are only allowed together").into()),
    }
}

/// Each head of [batch, heads, length, size] as often as needed to be `heads` in number, one beside the other.
fn shared(cx: &mut NodeCx<'_, '_>, x: Value, heads: &Dim) -> Res<Value> {
    let shape = cx.shape(x);
    if shape[1] == *heads {
        return Ok(x);
    }
    cx.require(Pred::Le(Dim::from(1), shape[1].clone()), "there must be a head of keys")?;
    let times = heads.div_exact(&shape[1]).unwrap_or_else(|| heads.floordiv(&shape[1]));
    let all = Pred::Eq(shape[1].clone() * times.clone(), heads.clone());
    cx.require(all, "the number of heads of queries must be a multiple of that of keys")?;
    let with = |n: Dim| {
        let mut s = shape.clone();
        s.insert(2, n);
        s
    };
    let x = cx.reshape(x, with(Dim::from(1)))?;
    let x = cx.expand(x, with(times))?;
    let to = vec![shape[0].clone(), heads.clone(), shape[2].clone(), shape[3].clone()];
    cx.reshape(x, to)
}

fn softcap(cx: &mut NodeCx<'_, '_>, x: Value, d: DType) -> Res<Value> {
    let cap = cx.attrs.float("softcap", 0.0)?;
    if cap <= 0.0 {
        return Ok(x);
    }
    let cap = cx.num(d, cap)?;
    let y = cx.op(Div {}, &[x, cap])?;
    let y = cx.op(Tanh {}, &[y])?;
    cx.op(Mul {}, &[y, cap])
}

fn mask(cx: &mut NodeCx<'_, '_>, sizes: &Sizes, wide: DType) -> Res<Mask> {
    let mut mask = Mask::default();
    if let Some(m) = cx.opt(3) {
        let m = given_mask(cx, m, sizes)?;
        mask.dead_rows = true;
        match cx.dtype(m) {
            DType::Bool => mask.allowed = Some(m),
            d if d.is_float() => mask.bias = Some(cx.cast(m, wide)?),
            d => {
                let m = format!("a mask of type {d} has no meaning; it must be a float or bool");
                return Err(cx.fail("E-ONNX-008", m).into());
            }
        }
    }
    let counts = counts(cx, sizes)?;
    let axis = |axis, mut shape: Vec<Dim>, size: &Dim| {
        shape[axis as usize] = size.clone();
        Iota { axis, shape, dtype: DType::I64 }
    };
    let one = vec![Dim::from(1); 4];
    let key = cx.op(axis(3, one.clone(), &sizes.keys), &[])?;
    let place = cx.op(axis(2, one, &sizes.queries), &[])?;
    let offset = offset(cx, counts, sizes)?;
    let place = cx.op(Add {}, &[place, offset])?;
    let mut tests = Vec::new();
    if cx.attrs.flag("is_causal", false)? {
        tests.push(cx.op(Le {}, &[key, place])?);
        mask.dead_rows |= counts.is_some();
    }
    if cx.opset >= 25 {
        tests.extend(window(cx, key, place)?);
        mask.dead_rows |= tests.len() > 1 || !tests.is_empty() && !cx.attrs.flag("is_causal", false)?;
    }
    if let Some(n) = counts {
        tests.push(cx.op(Lt {}, &[key, n])?);
        mask.dead_rows = true;
    }
    for t in tests {
        mask.allowed = Some(mask.allowed.map_or(Ok(t), |a| cx.op(And {}, &[a, t]))?);
    }
    Ok(mask)
}

/// Operand `attn_mask`, so that it broadcasts to the scores: too few keys are filled up with ones that take no part.
fn given_mask(cx: &mut NodeCx<'_, '_>, mut m: Value, sizes: &Sizes) -> Res<Value> {
    let mut shape = cx.shape(m);
    let n = shape.len();
    if n == 0 || n > 4 {
        return Err(cx.fail("E-ONNX-022", format!("the mask must have rank 1 to 4, found {n}")).into());
    }
    let width = shape[n - 1].clone();
    // one key is either repeated or filled up; where the keys that count are given, both mean the same
    if width != sizes.keys && !(width.is(1) && cx.opt(6).is_some()) {
        let whole = Pred::Eq(width.clone(), sizes.keys.clone());
        let clear = Pred::Or(vec![Pred::Le(Dim::from(2), width.clone()), whole]);
        cx.require(clear, "a mask for one of several keys can be read in two ways")?;
        if cx.opset >= 24 {
            m = filled_up(cx, m, &sizes.keys)?;
            shape[n - 1] = sizes.keys.clone();
        }
    }
    let full = sizes.scores();
    for (d, to) in shape.iter_mut().rev().zip(full.iter().rev()) {
        if !d.is(1) {
            *d = to.clone();
        }
    }
    cx.expand(m, shape)
}

/// The mask with keys behind it that take no part.
fn filled_up(cx: &mut NodeCx<'_, '_>, m: Value, keys: &Dim) -> Res<Value> {
    let (shape, d) = (cx.shape(m), cx.dtype(m));
    let width = shape.last().cloned().unwrap_or_default();
    let fits = Pred::Le(width.clone(), keys.clone());
    cx.require(fits, "the mask must not have more keys than there are")?;
    let before = vec![Dim::from(0); shape.len()];
    let mut after = before.clone();
    if let Some(last) = after.last_mut() {
        *last = cx.simplify(keys.clone() - width);
    }
    let value =
        if d == DType::Bool { Scalar::bool(false) } else { Scalar::from_f64(d, f64::NEG_INFINITY) };
    cx.op(Pad { before, after, value }, &[m])
}

/// Operand `nonpad_kv_seqlen` as [batch, 1, 1, 1].
fn counts(cx: &mut NodeCx<'_, '_>, sizes: &Sizes) -> Res<Option<Value>> {
    let Some(n) = cx.opt(6).filter(|_| cx.opset >= 24) else { return Ok(None) };
    if cx.opt(4).is_some() {
        let m = "nonpad_kv_seqlen is not allowed together with past_key";
        return Err(cx.fail("E-ONNX-020", m).into());
    }
    let one = Dim::from(1);
    let n = cx.cast(n, DType::I64)?;
    let shape = cx.shape(n);
    let [len] = &shape[..] else {
        return Err(cx.fail("E-ONNX-022", "nonpad_kv_seqlen must have rank 1").into());
    };
    cx.require(Pred::Eq(len.clone(), sizes.batch.clone()), "nonpad_kv_seqlen must have one number a batch entry")?;
    cx.reshape(n, vec![sizes.batch.clone(), one.clone(), one.clone(), one]).map(Some)
}

/// Place of the first query among the keys.
fn offset(cx: &mut NodeCx<'_, '_>, counts: Option<Value>, sizes: &Sizes) -> Res<Value> {
    if let Some(n) = counts {
        let q = cx.dim_value(sizes.queries.clone())?;
        return cx.op(Sub {}, &[n, q]);
    }
    let past = cx.opt(4).and_then(|p| cx.shape(p).get(2).cloned()).unwrap_or_default();
    cx.dim_value(past)
}

/// Tests that a key is within the window of a query.
fn window(cx: &mut NodeCx<'_, '_>, key: Value, place: Value) -> Res<Vec<Value>> {
    let mut tests = Vec::new();
    for (name, left) in [("left_window_size", true), ("right_window_size", false)] {
        let size = cx.attrs.int(name, -1)?;
        if size < -1 {
            return Err(cx.fail("E-ONNX-007", format!("{name} = {size}; allowed are -1 and more")).into());
        }
        if size == -1 {
            continue;
        }
        let by = cx.dim_value(Dim::from(size))?;
        tests.push(if left {
            let reach = cx.op(Add {}, &[key, by])?;
            cx.op(Le {}, &[place, reach])?
        } else {
            let reach = cx.op(Add {}, &[place, by])?;
            cx.op(Le {}, &[key, reach])?
        });
    }
    Ok(tests)
}

/// Scores with the bias added, and minus infinity where a key takes no part.
fn apply(cx: &mut NodeCx<'_, '_>, mut x: Value, mask: &Mask, sizes: &Sizes, d: DType) -> Res<Value> {
    if let Some(b) = mask.bias {
        let b = cx.expand(b, sizes.scores())?;
        x = cx.op(Add {}, &[x, b])?;
    }
    if let Some(a) = mask.allowed {
        let (a, never) = (cx.expand(a, sizes.scores())?, cx.num(d, f64::NEG_INFINITY)?);
        x = cx.op(Select {}, &[a, x, never])?;
    }
    Ok(x)
}

/// True for rows in which nothing takes part, as [batch, heads, queries, 1]. Only the mask tells, not the scores.
fn dead_rows(cx: &mut NodeCx<'_, '_>, mask: &Mask, sizes: &Sizes, d: DType) -> Res<Option<Value>> {
    if !mask.dead_rows {
        return Ok(None);
    }
    let never = cx.num(d, f64::NEG_INFINITY)?;
    let bias = mask.bias.map_or_else(|| cx.num(d, 0.0), Ok)?;
    let total = mask.allowed.map_or(Ok(bias), |a| cx.op(Select {}, &[a, bias, never]))?;
    let most = cx.op(ReduceMax { axes: vec![-1], keepdims: true }, &[total])?;
    let dead = cx.op(Eq {}, &[most, never])?;
    let mut rows = sizes.scores();
    rows[3] = Dim::from(1);
    cx.expand(dead, rows).map(Some)
}

/// Softmax over the keys, in the type of attribute `softmax_precision` where that is another than the operands'.
fn softmax(cx: &mut NodeCx<'_, '_>, x: Value, t: DType, wide: DType) -> Res<Value> {
    let inner = match cx.attrs.opt_int("softmax_precision")? {
        None | Some(0) => wide,
        Some(code) => match dtype_of(i32::try_from(code).unwrap_or(-1))? {
            d if d == t => wide,
            d @ (DType::F16 | DType::BF16 | DType::F32 | DType::F64) => d,
            d => {
                let m = format!("softmax_precision must be f16, bf16, f32 or f64, not {d}");
                return Err(cx.fail("E-ONNX-007", m).into());
            }
        },
    };
    let x = cx.cast(x, inner)?;
    let y = cx.op(Softmax { axis: -1 }, &[x])?;
    cx.cast(y, wide)
}

/// Zeros in dead rows.
fn without(cx: &mut NodeCx<'_, '_>, x: Value, dead: Option<Value>) -> Res<Value> {
    let Some(dead) = dead else { return Ok(x) };
    let d = cx.dtype(x);
    let zero = cx.num(d, 0.0)?;
    cx.op(Select {}, &[dead, zero, x])
}
