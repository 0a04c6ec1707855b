//! Concrete tensors: constants, weights, interpreter inputs and outputs. Dense, row-major, little-endian.

use crate::scalar::Scalar;
use crate::types::{DType, Type};
use std::sync::Arc;

/// Shared bytes of a tensor: owned, or a view into a mapped file.
#[derive(Clone)]
pub struct Data(Arc<dyn AsRef<[u8]> + Send + Sync>);

impl Data {
    /// Wraps anything that holds bytes.
    pub fn new(bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Data {
        Data(Arc::new(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

/// A dense tensor. `data` holds exactly `numel * dtype.size()` bytes.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// Element type.
    pub dtype: DType,
    /// Dims, outermost first.
    pub shape: Vec<usize>,
    /// Elements in row-major order, little-endian.
    pub data: Data,
}

impl PartialEq for Tensor {
    fn eq(&self, o: &Tensor) -> bool {
        self.dtype == o.dtype && self.shape == o.shape && self.data.bytes() == o.data.bytes()
    }
}

impl Tensor {
    /// From elements, all of type `dtype`; their number is the product of `shape`.
    pub fn from_scalars(dtype: DType, shape: &[usize], elems: impl IntoIterator<Item = Scalar>) -> Tensor {
        let mut data = Vec::new();
        elems.into_iter().for_each(|s| s.push_bytes(&mut data));
        Tensor { dtype, shape: shape.to_vec(), data: Data::new(data) }
    }

    /// From f64 values, rounded to `dtype`.
    pub fn from_f64(dtype: DType, shape: &[usize], v: &[f64]) -> Tensor {
        Tensor::from_scalars(dtype, shape, v.iter().map(|&x| Scalar::from_f64(dtype, x)))
    }

    /// From integers, wrapped to `dtype`.
    pub fn from_ints(dtype: DType, shape: &[usize], v: &[i64]) -> Tensor {
        Tensor::from_scalars(dtype, shape, v.iter().map(|&x| Scalar::from_int(dtype, i128::from(x))))
    }

    /// From raw bytes; None unless their number fits.
    pub fn from_bytes(dtype: DType, shape: &[usize], data: Data) -> Option<Tensor> {
        let n = shape.iter().try_fold(dtype.size(), |a, &d| a.checked_mul(d))?;
        (data.bytes().len() == n).then(|| Tensor { dtype, shape: shape.to_vec(), data })
    }

    /// Number of elements.
    pub fn numel(&self) -> usize {
        self.shape.iter().product()
    }

    /// Type with constant dims.
    pub fn ty(&self) -> Type {
        Type::fixed(self.dtype, &self.shape)
    }

    /// Element number `i` in row-major order.
    pub fn get(&self, i: usize) -> Scalar {
        let s = self.dtype.size();
        Scalar::from_bytes(self.dtype, self.data.bytes().get(i * s..).unwrap_or(&[]))
    }

    /// All elements.
    pub fn scalars(&self) -> impl Iterator<Item = Scalar> + '_ {
        (0..self.numel()).map(|i| self.get(i))
    }

    /// All elements as f64.
    pub fn to_f64(&self) -> Vec<f64> {
        self.scalars().map(Scalar::as_f64).collect()
    }
}
