//! `conv(x, w, bias)`: convolution (cross-correlation) over any number of spatial axes. x [N, C, spatial..], w [OC,
//! C / groups, kernel..], bias [OC] optional. With `channels_last` x is [N, spatial.., C] and the result [N, spatial..,
//! OC]; w stays. Sums run over the kernel's axes, then the channels of the group (fastest); the bias comes after.
//!
//! Constraints: conv.c1 one element type, a number, x of rank 3 or more, w of x's rank; conv.c2 one stride and dilation a
//! spatial axis, two pads; conv.c3 strides, dilations and the kernel 1 or more, pads 0 or more; conv.c4 the kernel fits in
//! the padded operand; conv.c5 C = groups * w's second dim, and groups divides OC; conv.c6 bias has shape [OC].
//!
//! `%y = conv %x, %w {strides = [1], pads = [1, 1], dilations = [1]} : f32[n, 8, 16]`

use super::{
    Accuracy, Add, Arity, GVal, Grad, GradCx, InferCx, LowerCx, Lowering, Onnx, OpDef, ReduceSum, Spec,
    matmul, parts, reduce,
    window::{Geometry, Layout},
};
use crate::class::{Access, Class, Contract};
use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred, Type};

crate::op_struct! {
    /// Convolution.
    pub struct Conv {
        /// Step of the kernel on each spatial axis.
        strides: Vec<i64>,
        /// Zeros before each spatial axis, then after each.
        pads: Vec<i64>,
        /// Distance of the kernel's elements on each spatial axis.
        dilations: Vec<i64>,
        /// Number of channel groups.
        groups: i64 = 1,
        /// Channels are the last axis of the operand and the result.
        channels_last: bool = false,
    }
}

impl Conv {
    fn geometry(&self, w: &Type) -> Geometry<'_> {
        Geometry {
            name: "conv",
            kernel: w.shape[2..].to_vec(),
            strides: &self.strides,
            pads: &self.pads,
            dilations: &self.dilations,
            ceil: false,
        }
    }

    fn layout(&self, x: &Type) -> Layout {
        Layout { rank: x.rank(), last: self.channels_last }
    }

    fn check_channels(&self, cx: &mut InferCx<'_>, x: &Type, w: &Type) -> Result<(), Diag> {
        let groups = self.groups;
        cx.check(
            (1..=1 << 31).contains(&groups),
            "conv.c5",
            format!("groups must be 1 or more, found {groups}"),
        )?;
        let (oc, per) = (&w.shape[0], w.shape[1].clone());
        cx.require_eq(
            &x.shape[self.layout(x).channel()],
            &(per * Dim::from(groups)),
            "the operand's channels must be groups times the second dim of the weight [conv.c5]",
        )?;
        let divides = groups == 1 || oc.div_exact(&Dim::from(groups)).is_some();
        cx.check(divides, "conv.c5", format!("{groups} groups must divide the {oc} output channels"))
    }

    /// Contraction over the kernel and the channels of a group. Channels are summed fastest: they are contiguous in
    /// channels-last data, and addresses and padding are found once a kernel position, not once a product.
    fn contract(&self, x: &Type, w: &Type, out: &Type) -> Contract {
        let geo = self.geometry(w);
        let layout = self.layout(x);
        let rank = out.rank() as u32;
        let oc = Dim::label(layout.channel() as u32);
        let alone = w.shape[1].is(1);
        let channel = if alone { Dim::from(0) } else { Dim::label(rank) };
        let input = if self.groups == 1 {
            channel.clone()
        } else {
            let per_group = w.shape[0].div_exact(&Dim::from(self.groups)).unwrap_or_else(|| Dim::from(1));
            oc.floordiv(&per_group) * w.shape[1].clone() + channel.clone()
        };
        let (mut spatial, mut wi, mut when) = (Vec::new(), vec![oc, channel], Vec::new());
        for i in 0..geo.axes() {
            let axis = layout.spatial(i);
            let (at, within) = (Dim::label(axis as u32), Dim::label(rank + 1 + i as u32));
            let index = geo.read(i, &at, &within);
            when.push(geo.inside(i, &index, &x.shape[axis]));
            spatial.push(index);
            wi.push(within);
        }
        let xi = layout.order(Dim::label(0), input, spatial);
        Contract {
            extents: out.shape.iter().chain(&w.shape[1..]).cloned().collect(),
            out: (0..rank).collect(),
            red: (rank + 1..rank + 1 + geo.axes() as u32).chain((!alone).then_some(rank)).collect(),
            operands: [Access { index: xi, when: Pred::all(when) }, Access::plain(wi)],
            acc: reduce::sum_type(x.dtype),
            chunk: matmul::CHUNK,
        }
    }
}

impl OpDef for Conv {
    const SPEC: Spec = Spec {
        arity: Arity::Optional(&["x", "w", "bias"], 2),
        accuracy: Accuracy::Sum,
        onnx: Onnx::Op("Conv", 1, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let d = cx.same_dtype()?;
        let (x, w) = (cx.ty(0)?, cx.ty(1)?);
        cx.check(d.is_float() || d.is_int(), "conv.c1", "the element type must be a number")?;
        let ranks = x.rank() >= 3 && w.rank() == x.rank();
        cx.check(ranks, "conv.c1", "x needs rank 3 or more ([N, C, spatial..]) and w the same rank")?;
        let geo = self.geometry(w);
        geo.check(cx, x.rank() - 2)?;
        self.check_channels(cx, x, w)?;
        if let Some(bias) = cx.operands.get(2) {
            cx.check(bias.ty.rank() == 1, "conv.c6", "the bias must have one axis, the output channels")?;
            cx.require_eq(
                &bias.ty.shape[0],
                &w.shape[0],
                "the bias needs one element an output channel [conv.c6]",
            )?;
        }
        let layout = self.layout(x);
        let mut windows = Vec::new();
        for i in 0..geo.axes() {
            windows.push(geo.windows(cx, i, &x.shape[layout.spatial(i)])?);
        }
        let shape = layout.order(x.shape[0].clone(), w.shape[0].clone(), windows);
        Ok(vec![Type::new(d, shape).into()])
    }
    fn lower(&self, cx: &LowerCx<'_>) -> Result<Lowering, Diag> {
        let (x, w, out) = (&cx.ins[0], &cx.ins[1], &cx.outs[0]);
        let Some(bias) = cx.ins.get(2) else {
            return Ok(Lowering::Class(Class::Contract(self.contract(x, w, out))));
        };
        parts::decompose(cx, |b, v| {
            let wide = reduce::sum_type(x.dtype);
            let (x, w) = (b.cast(v[0], wide)?, b.cast(v[1], wide)?);
            let y = b.op(self.clone(), &[x, w])?;
            let channels = out.rank() - self.layout(out).channel();
            let bias = b.reshape(v[2], parts::along(0, channels, &bias.shape[0]))?;
            let bias = b.cast(bias, wide)?;
            let y = b.op(Add {}, &[y, bias])?;
            b.cast(y, out.dtype)
        })
    }
    fn grad(&self) -> Grad<Self> {
        Grad::Rule(|op, cx| {
            let layout = op.layout(&cx.b.ty(cx.operands[0]));
            let first = Conv { channels_last: false, ..op.clone() };
            cx.channels_second(layout);
            let dx = input_back(&first, cx);
            let mut out = vec![Some(layout.restore(cx, dx)), Some(weight_back(&first, cx))];
            if cx.operands.len() > 2 {
                let axes = (0..layout.rank as i64).filter(|a| *a != 1).collect();
                out.push(Some(cx.op1(ReduceSum { axes, keepdims: false }, &[cx.cotangents[0]])));
            }
            out
        })
    }
}

/// Splits axis 0 of `x` into (groups, rest), swaps rest and axis 1, and joins groups with the new axis 1's place: w
/// [G * OC', C', k..] becomes [G * C', OC', k..].
fn swap_in_groups(cx: &mut GradCx<'_>, w: GVal, groups: i64) -> GVal {
    let shape = cx.b.ty(w).shape;
    let g = Dim::from(groups);
    let per = shape[0].div_exact(&g).unwrap_or_else(|| shape[0].clone());
    let split: Vec<Dim> =
        [g.clone(), per.clone(), shape[1].clone()].into_iter().chain(shape[2..].to_vec()).collect();
    let w = cx.reshape(w, split);
    let perm: Vec<usize> = [0, 2, 1].into_iter().chain(3..shape.len() + 1).collect();
    let w = cx.transpose(w, &perm);
    let joined: Vec<Dim> = [g * shape[1].clone(), per].into_iter().chain(shape[2..].to_vec()).collect();
    cx.reshape(w, joined)
}

/// Cotangent of the operand, channels second: the cotangent with zeros between its elements, convolved with the reversed kernel.
fn input_back(op: &Conv, cx: &mut GradCx<'_>) -> GVal {
    let (x, w) = (cx.b.ty(cx.operands[0]), cx.b.ty(cx.operands[1]));
    let geo = op.geometry(&w);
    let (n, one, zero) = (geo.axes(), Dim::from(1), Dim::from(0));
    let mut g = cx.cotangents[0];
    for i in (0..n).filter(|&i| op.strides[i] > 1) {
        let mut shape = cx.b.ty(g).shape;
        let (at, s) = (i + 2, Dim::from(op.strides[i]));
        let windows = shape[at].clone();
        shape.insert(at + 1, one.clone());
        g = cx.reshape(g, shape.clone());
        let mut after = vec![zero.clone(); shape.len()];
        after[at + 1] = s.clone() - one.clone();
        g = cx.pad(g, vec![zero.clone(); shape.len()], after);
        shape.remove(at + 1);
        shape[at] = windows.clone() * s.clone();
        g = cx.reshape(g, shape.clone());
        shape[at] = (windows - one.clone()) * s + one.clone();
        g = cx.window(g, vec![zero.clone(); shape.len()], shape);
    }
    let mut shape = cx.b.ty(g).shape;
    let (mut before, mut after) = (vec![zero.clone(); 2], vec![zero.clone(); 2]);
    let mut starts = before.clone();
    for i in 0..n {
        // the whole must have room for one window an element of x
        let first = geo.span(i) - one.clone() - Dim::from(op.pads[i]);
        let full = x.shape[i + 2].clone() + geo.span(i) - one.clone();
        let last = full.clone() - shape[i + 2].clone() - first.clone();
        before.push(first.dmax(&zero));
        after.push(last.dmax(&zero));
        starts.push((-first).dmax(&zero));
        shape[i + 2] = full;
    }
    let g = cx.pad(g, before, after);
    let g = cx.window(g, starts, shape);
    let w = swap_in_groups(cx, cx.operands[1], op.groups);
    let sizes = cx.b.ty(w).shape;
    let flip = |i: usize| i >= 2 && !sizes[i].is(1);
    let from = |i: usize| if flip(i) { sizes[i].clone() - one.clone() } else { zero.clone() };
    let starts: Vec<Dim> = (0..n + 2).map(from).collect();
    let steps = (0..n + 2).map(|i| if flip(i) { -1 } else { 1 }).collect();
    let w = cx.op1(super::Slice { starts, sizes, steps }, &[w]);
    let back = Conv {
        strides: vec![1; n],
        pads: vec![0; 2 * n],
        dilations: op.dilations.clone(),
        groups: op.groups,
        channels_last: false,
    };
    cx.op1(back, &[g, w])
}

/// Cotangent of the weight, channels second: the operand convolved with the cotangent, batch and channels in each other's place, strides
/// and dilations too.
fn weight_back(op: &Conv, cx: &mut GradCx<'_>) -> GVal {
    let (x, w) = (cx.b.ty(cx.operands[0]), cx.b.ty(cx.operands[1]));
    let n = x.rank() - 2;
    let groups = Dim::from(op.groups);
    let spatial = &x.shape[2..];
    let split: Vec<Dim> = [x.shape[0].clone(), groups.clone(), w.shape[1].clone()]
        .into_iter()
        .chain(spatial.to_vec())
        .collect();
    let xs = cx.reshape(cx.operands[0], split);
    let perm: Vec<usize> = [2, 1, 0].into_iter().chain(3..n + 3).collect();
    let xs = cx.transpose(xs, &perm);
    let joined: Vec<Dim> =
        [w.shape[1].clone(), groups * x.shape[0].clone()].into_iter().chain(spatial.to_vec()).collect();
    let xs = cx.reshape(xs, joined);
    let perm: Vec<usize> = [1, 0].into_iter().chain(2..n + 2).collect();
    let g = cx.transpose(cx.cotangents[0], &perm);
    let back = Conv {
        strides: op.dilations.clone(),
        pads: op.pads.clone(),
        dilations: op.strides.clone(),
        groups: op.groups,
        channels_last: false,
    };
    let dw = cx.op1(back, &[xs, g]);
    let dw = cx.transpose(dw, &perm);
    cx.window(dw, vec![Dim::from(0); n + 2], w.shape)
}
