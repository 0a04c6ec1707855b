//! PyTorch's initialisations of parameters. Those named as in `torch.nn.init`, with `_` at the end, give a parameter
//! other values; the others give a tensor of known values.

use super::error::report;
use super::module::Param;
use super::random::Stream;
use super::tensor::Tensor;
use std::panic::Location;
use tgc_ir::diag::Diag;
use tgc_ir::types::DType;

fn filled(shape: &[usize], f: impl Fn(usize) -> f64) -> Tensor {
    let n: usize = shape.iter().product();
    let mut bytes = Vec::with_capacity(4 * n);
    (0..n).for_each(|i| bytes.extend((f(i) as f32).to_le_bytes()));
    Tensor::from_bytes(DType::F32, shape, bytes).unwrap_or(Tensor::FAILED)
}

fn made(shape: &[usize], f: impl Fn(&Stream, usize) -> f64) -> Tensor {
    let s = Stream::next_call();
    filled(shape, |i| f(&s, i))
}

/// Uniform between two bounds.
pub fn uniform(shape: &[usize], low: f64, high: f64) -> Tensor {
    made(shape, |s, i| low + (high - low) * s.uniform(i))
}

/// Normal with a mean and a deviation.
pub fn normal(shape: &[usize], mean: f64, std: f64) -> Tensor {
    made(shape, |s, i| mean + std * s.normal(i))
}

/// Everywhere the same.
pub fn constant(shape: &[usize], value: f64) -> Tensor {
    filled(shape, |_| value)
}

/// Elements that one output adds up: the second dim and all further ones.
pub fn fan_in(shape: &[usize]) -> usize {
    shape.get(1..).map_or(1, |s| s.iter().product())
}

/// Outputs that one element goes into: the first dim and all from the third on.
pub fn fan_out(shape: &[usize]) -> usize {
    shape.first().copied().unwrap_or(1) * shape.get(2..).map_or(1, |s| s.iter().product())
}

/// He's uniform initialisation with a leaky slope `a`: what Linear and Conv layers start from, with `a = sqrt(5)`.
pub fn kaiming_uniform(shape: &[usize], a: f64) -> Tensor {
    let bound = (6.0 / ((1.0 + a * a) * fan_in(shape).max(1) as f64)).sqrt();
    uniform(shape, -bound, bound)
}

/// He's normal initialisation for ReLU, by the outputs.
pub fn kaiming_normal_fan_out(shape: &[usize]) -> Tensor {
    normal(shape, 0.0, (2.0 / fan_out(shape).max(1) as f64).sqrt())
}

/// Glorot's uniform initialisation.
pub fn xavier_uniform(shape: &[usize]) -> Tensor {
    let bound = (6.0 / (fan_in(shape) + fan_out(shape)).max(1) as f64).sqrt();
    uniform(shape, -bound, bound)
}

/// What a layer's outputs go through, which the deviation of its weights makes up for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Nonlinearity {
    /// None: also for convolutions and the sigmoid.
    Linear,
    /// Hyperbolic tangent.
    Tanh,
    /// `max(x, 0)`.
    Relu,
    /// With the slope of its negative part.
    LeakyRelu(f64),
    /// SELU.
    Selu,
}

/// The factor of the deviation of weights.
pub fn calculate_gain(nonlinearity: Nonlinearity) -> f64 {
    match nonlinearity {
        Nonlinearity::Linear => 1.0,
        Nonlinearity::Tanh => 5.0 / 3.0,
        Nonlinearity::Relu => 2f64.sqrt(),
        Nonlinearity::LeakyRelu(a) => (2.0 / (1.0 + a * a)).sqrt(),
        Nonlinearity::Selu => 0.75,
    }
}

/// Whether the variance is kept of what goes forwards or of gradients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Forwards.
    #[default]
    FanIn,
    /// Of gradients.
    FanOut,
}

/// The shape of a parameter with at least so many axes; others are reported.
#[track_caller]
fn shape(p: &Param, rank: usize, what: &str, at: &'static Location<'static>) -> Option<Vec<usize>> {
    let shape: Vec<usize> = p.shape().iter().map(|d| d.to_usize()).collect();
    if shape.len() < rank {
        let m = format!("{what} of a parameter {:#}", **p);
        report(Diag::error("E-NN-104", m).help(format!("it must have {rank} axes or more")), at);
        return None;
    }
    Some(shape)
}

#[track_caller]
fn put(p: &Param, t: &Tensor) {
    p.set(&t.to_dtype(p.dtype()));
}

macro_rules! in_place {
    ($($(#[$doc:meta])* $name:ident $rank:literal ($p:ident, $s:ident $(, $a:ident: $t:ty)*) $body:expr;)*) => { $(
        $(#[$doc])*
        #[track_caller]
        pub fn $name($p: &Param $(, $a: $t)*) {
            let at = Location::caller();
            if let Some($s) = shape($p, $rank, stringify!($name), at) {
                put($p, &$body);
            }
        }
    )* };
}
in_place! {
    /// Uniform between two bounds.
    uniform_ 0 (p, s, low: f64, high: f64) uniform(&s, low, high);
    /// Normal with a mean and a deviation.
    normal_ 0 (p, s, mean: f64, std: f64) normal(&s, mean, std);
    /// Normal with a mean and a deviation, between two bounds.
    trunc_normal_ 0 (p, s, mean: f64, std: f64, low: f64, high: f64) truncated(&s, mean, std, low, high);
    /// Everywhere the same.
    constant_ 0 (p, s, value: f64) constant(&s, value);
    /// Ones.
    ones_ 0 (p, s) constant(&s, 1.0);
    /// Zeros.
    zeros_ 0 (p, s) constant(&s, 0.0);
    /// Ones on the diagonal of a matrix.
    eye_ 2 (p, s) filled(&s, |i| f64::from(u8::from(i / row(&s) == i % row(&s))));
    /// Kernels that keep as many channels as there are, in each group.
    dirac_ 3 (p, s, groups: usize) dirac(&s, groups);
    /// Glorot's uniform initialisation.
    xavier_uniform_ 2 (p, s, gain: f64) {
        let bound = gain * (6.0 / (fan_in(&s) + fan_out(&s)).max(1) as f64).sqrt();
        uniform(&s, -bound, bound)
    };
    /// Glorot's normal initialisation.
    xavier_normal_ 2 (p, s, gain: f64) {
        normal(&s, 0.0, gain * (2.0 / (fan_in(&s) + fan_out(&s)).max(1) as f64).sqrt())
    };
    /// He's uniform initialisation.
    kaiming_uniform_ 2 (p, s, mode: Mode, nonlinearity: Nonlinearity) {
        let bound = 3f64.sqrt() * deviation(&s, mode, nonlinearity);
        uniform(&s, -bound, bound)
    };
    /// He's normal initialisation.
    kaiming_normal_ 2 (p, s, mode: Mode, nonlinearity: Nonlinearity) {
        normal(&s, 0.0, deviation(&s, mode, nonlinearity))
    };
    /// A random matrix (the first axis by all others) whose rows, or columns if they are fewer, are orthogonal and of
    /// length `gain`.
    orthogonal_ 2 (p, s, gain: f64) orthogonal(&s, gain);
}

/// Elements of a row of a matrix.
fn row(shape: &[usize]) -> usize {
    shape[1..].iter().product::<usize>().max(1)
}

fn deviation(shape: &[usize], mode: Mode, nonlinearity: Nonlinearity) -> f64 {
    let fan = match mode {
        Mode::FanIn => fan_in(shape),
        Mode::FanOut => fan_out(shape),
    };
    calculate_gain(nonlinearity) / (fan.max(1) as f64).sqrt()
}

fn dirac(shape: &[usize], groups: usize) -> Tensor {
    let (groups, kernel) = (groups.max(1), shape[2..].iter().product::<usize>());
    let each = shape[0] / groups;
    // the middle of every axis of the kernel
    let middle = shape[2..].iter().fold(0, |at, k| at * k + k / 2);
    filled(shape, |i| {
        let (out, input, at) = (i / kernel / shape[1], i / kernel % shape[1], i % kernel);
        let own = each > 0 && out < each * groups && out % each == input;
        f64::from(u8::from(own && at == middle))
    })
}

/// Draws again what falls outside; bounds that hold next to nothing give the nearer one.
fn truncated(shape: &[usize], mean: f64, std: f64, low: f64, high: f64) -> Tensor {
    const TRIES: usize = 1000;
    let n: usize = shape.iter().product();
    let s = Stream::next_call();
    filled(shape, |i| {
        let draws = (0..TRIES).map(|k| mean + std * s.normal(i + k * n.max(1)));
        draws.into_iter().find(|x| (low..=high).contains(x)).unwrap_or(mean.clamp(low, high.max(low)))
    })
}

/// By Gram and Schmidt in f64, each vector made orthogonal twice against rounding.
fn orthogonal(shape: &[usize], gain: f64) -> Tensor {
    let (rows, columns) = (shape[0], row(shape));
    let (count, length) = (rows.min(columns), rows.max(columns));
    let s = Stream::next_call();
    let mut all: Vec<Vec<f64>> = Vec::with_capacity(count);
    for i in 0..count {
        let mut v: Vec<f64> = (0..length).map(|j| s.normal(i * length + j)).collect();
        for _ in 0..2 {
            for u in &all {
                let dot: f64 = u.iter().zip(&v).map(|(a, b)| a * b).sum();
                v.iter_mut().zip(u).for_each(|(b, a)| *b -= dot * a);
            }
        }
        let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt().max(f64::MIN_POSITIVE);
        all.push(v.into_iter().map(|x| x / norm).collect());
    }
    filled(shape, |i| {
        let (r, c) = (i / columns, i % columns);
        gain * if rows <= columns { all[r][c] } else { all[c][r] }
    })
}
