//! `ConvTranspose` against its definition: every element of the operand adds the kernel times itself to the result.

use crate::model::*;
use tgc_ir::tensor::Tensor;

/// A two-dimensional case; one-dimensional ones have a height of 1.
struct Case {
    x: [usize; 4],
    /// Input channels, output channels of a group, kernel.
    w: [usize; 4],
    groups: usize,
    strides: [usize; 2],
    dilations: [usize; 2],
    /// What is cut off in front of both axes.
    before: [usize; 2],
    size: [usize; 2],
}

const PLAIN: Case = Case {
    x: [1, 1, 1, 3],
    w: [1, 1, 1, 2],
    groups: 1,
    strides: [1, 1],
    dilations: [1, 1],
    before: [0, 0],
    size: [1, 4],
};

fn values(n: usize, seed: usize) -> Vec<f64> {
    (0..n).map(|i| ((i * 7 + seed) % 11) as f64 - 5.0).collect()
}

impl Case {
    fn operands(&self) -> [Vec<f64>; 3] {
        let (x, w) = (self.x.iter().product(), self.w.iter().product());
        [values(x, 3), values(w, 1), values(self.w[1] * self.groups, 5)]
    }

    fn want(&self) -> Vec<f64> {
        let [x, w, bias] = self.operands();
        let ([n, c, h, l], [_, o, kh, kl]) = (self.x, self.w);
        let (per, [oh, ol]) = (c / self.groups, self.size);
        let at = |i: usize, k: usize, axis: usize| {
            let to = i * self.strides[axis] + k * self.dilations[axis];
            to.checked_sub(self.before[axis]).filter(|t| *t < self.size[axis])
        };
        let channels = o * self.groups;
        let mut y: Vec<f64> = (0..n * channels * oh * ol).map(|i| bias[i / (oh * ol) % channels]).collect();
        for (b, ci) in (0..n).flat_map(|b| (0..c).map(move |ci| (b, ci))) {
            for (i, j) in (0..h).flat_map(|i| (0..l).map(move |j| (i, j))) {
                let v = x[((b * c + ci) * h + i) * l + j];
                for (oi, p, q) in (0..o * kh * kl).map(|k| (k / (kh * kl), k / kl % kh, k % kl)) {
                    let (Some(r), Some(s)) = (at(i, p, 0), at(j, q, 1)) else { continue };
                    let channel = ci / per * o + oi;
                    y[((b * channels + channel) * oh + r) * ol + s] +=
                        v * w[((ci * o + oi) * kh + p) * kl + q];
                }
            }
        }
        y
    }

    /// Checks the operator under `attrs`, once with fixed sizes and once with named ones.
    #[track_caller]
    fn check(&self, attrs: &[(&str, A<'_>)]) {
        let [x, w, bias] = self.operands();
        let channels = self.w[1] * self.groups;
        let ins = [f(&self.x, &x), f(&self.w, &w), f(&[channels], &bias)];
        let shape = [self.x[0], channels, self.size[0], self.size[1]];
        let both = [(self.strides, "strides"), (self.dilations, "dilations")];
        let lists = both.map(|(v, name)| (v.map(|n| n as i64), name));
        for named in [false, true] {
            let text = self.x.map(|d| d.to_string());
            let dims = if named { ["n", &text[1], "h", "l"] } else { [0, 1, 2, 3].map(|i| text[i].as_str()) };
            let m = model(11).input("x", F32, &dims);
            let m = m.init(floats("w", &self.w.map(|d| d as i64), &narrow(&ins[1])));
            let m = m.init(floats("b", &[channels as i64], &narrow(&ins[2])));
            let mut m = m.node("ConvTranspose", &["x", "w", "b"], &["y"], attrs).output("y");
            let node = m.0.graph.as_mut().unwrap().node.last_mut().unwrap();
            node.attribute.extend(lists.iter().map(|(v, name)| attr(name, &A::Is(v))));
            node.attribute.push(attr("group", &A::I(self.groups as i64)));
            close(&m.run(&ins[..1])[0], &shape, &self.want());
        }
    }
}

fn narrow(t: &Tensor) -> Vec<f32> {
    t.to_f64().iter().map(|v| *v as f32).collect()
}

#[test]
fn one_position_after_the_other() {
    PLAIN.check(&[]);
    Case { x: [2, 2, 3, 2], w: [2, 3, 2, 3], size: [4, 4], ..PLAIN }.check(&[]);
}

#[test]
fn strides_that_fit_the_kernel_or_not() {
    Case { strides: [1, 2], size: [1, 6], ..PLAIN }.check(&[]);
    Case { w: [1, 1, 1, 3], strides: [1, 2], size: [1, 7], ..PLAIN }.check(&[]);
    Case { w: [1, 1, 1, 2], strides: [1, 3], size: [1, 8], ..PLAIN }.check(&[]);
    let square = Case { x: [1, 2, 2, 3], w: [2, 2, 2, 2], strides: [2, 2], size: [4, 6], ..PLAIN };
    square.check(&[]);
    Case { x: [1, 2, 2, 3], w: [2, 2, 5, 4], strides: [2, 3], size: [7, 10], ..PLAIN }.check(&[]);
}

#[test]
fn groups_and_dilations() {
    let grouped = Case { x: [1, 4, 2, 2], w: [4, 2, 3, 3], groups: 2, size: [4, 4], ..PLAIN };
    grouped.check(&[]);
    Case { strides: [2, 2], size: [5, 5], ..grouped }.check(&[]);
    Case { w: [1, 1, 1, 3], dilations: [1, 2], size: [1, 7], ..PLAIN }.check(&[]);
    Case { w: [1, 1, 1, 3], dilations: [1, 3], strides: [1, 2], size: [1, 11], ..PLAIN }.check(&[]);
}

#[test]
fn padding_cuts_and_output_padding_adds() {
    let base = Case { x: [1, 1, 3, 3], w: [1, 2, 3, 3], strides: [2, 2], ..PLAIN };
    Case { before: [1, 0], size: [5, 6], ..base }.check(&[("pads", A::Is(&[1, 0, 1, 1]))]);
    Case { size: [8, 7], ..base }.check(&[("output_padding", A::Is(&[1, 0]))]);
    let far = Case { w: [1, 1, 1, 1], strides: [1, 3], size: [1, 9], ..PLAIN };
    far.check(&[("output_padding", A::Is(&[0, 2]))]);
}

#[test]
fn a_wanted_shape_sets_the_padding() {
    let base = Case { x: [1, 1, 3, 3], w: [1, 1, 4, 4], strides: [2, 2], ..PLAIN };
    Case { before: [1, 1], size: [6, 6], ..base }.check(&[("auto_pad", A::S("SAME_UPPER"))]);
    Case { w: [1, 1, 3, 3], before: [1, 1], size: [6, 6], ..base }.check(&[("auto_pad", A::S("SAME_LOWER"))]);
    Case { w: [1, 1, 3, 3], before: [0, 0], size: [6, 6], ..base }.check(&[("auto_pad", A::S("SAME_UPPER"))]);
    Case { before: [1, 0], size: [7, 8], ..base }.check(&[("output_shape", A::Is(&[7, 8]))]);
    Case { size: [8, 8], ..base }.check(&[("auto_pad", A::S("VALID"))]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let m = |w: &[i64], attrs: &[(&str, A<'_>)]| {
        let n: i64 = w.iter().product();
        let m = model(11).input("x", F32, &["1", "2", "3"]).init(floats("w", w, &vec![0.0; n as usize]));
        m.node("ConvTranspose", &["x", "w"], &["y"], attrs).output("y").error()
    };
    assert_eq!(m(&[3, 1, 2], &[]).code, "E-ONNX-022");
    assert_eq!(m(&[2, 1, 2], &[("group", A::I(3))]).code, "E-ONNX-022");
    assert_eq!(m(&[2, 1, 2], &[("pads", A::Is(&[9, 9]))]).code, "E-ONNX-022");
    assert_eq!(m(&[2, 1, 2], &[("output_shape", A::Is(&[1, 1]))]).code, "E-ONNX-007");
}
