//! PyTorch's initialisations of parameters: each gives a tensor of known values.

use super::random::Stream;
use super::tensor::Tensor;
use tgc_ir::scalar::Scalar;
use tgc_ir::tensor::Tensor as Data;
use tgc_ir::types::DType;

fn made(shape: &[usize], f: impl Fn(&Stream, usize) -> f64) -> Tensor {
    let s = Stream::next_call();
    let n: usize = shape.iter().product();
    Tensor::from(Data::from_scalars(
        DType::F32,
        shape,
        (0..n).map(|i| Scalar::from_f64(DType::F32, f(&s, i))),
    ))
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
    made(shape, |_, _| value)
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
