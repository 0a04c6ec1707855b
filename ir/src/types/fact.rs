//! What is known of a value while a graph is built: its type and, for small ones, its elements.

use super::{DType, Dim, Pred};
use crate::scalar::Scalar;
use std::fmt;

/// Most elements a known value may have.
pub const MAX_KNOWN: usize = 1024;

/// Type of a tensor: element type and shape. Rank is static, dims may be symbolic; layout is not part of a type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Type {
    /// Element type.
    pub dtype: DType,
    /// One dim an axis, outermost first.
    pub shape: Vec<Dim>,
}

impl Type {
    /// A type from its parts.
    pub fn new(dtype: DType, shape: Vec<Dim>) -> Type {
        Type { dtype, shape }
    }

    /// Rank 0.
    pub fn scalar(dtype: DType) -> Type {
        Type { dtype, shape: Vec::new() }
    }

    /// A type with constant dims.
    pub fn fixed(dtype: DType, shape: &[usize]) -> Type {
        Type { dtype, shape: shape.iter().map(|&d| Dim::from(d)).collect() }
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Product of the dims.
    pub fn numel(&self) -> Dim {
        self.shape.iter().cloned().product()
    }

    /// The dims as numbers when all are.
    pub fn as_fixed(&self) -> Option<Vec<usize>> {
        self.shape.iter().map(|d| d.as_const().and_then(|c| usize::try_from(c).ok())).collect()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (i, d) in self.shape.iter().enumerate() {
            write!(f, "{}{d}", if i > 0 { ", " } else { "" })?;
        }
        f.write_str("]")
    }
}

/// One element of a known value.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownElem {
    /// A number.
    Scalar(Scalar),
    /// A symbolic integer (always of an integer type).
    Dim(Dim),
    /// A condition over dims (always bool).
    Pred(Pred),
    /// Not known.
    Unknown,
}

/// Elements of a small value in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Known(pub Vec<KnownElem>);

impl Known {
    /// Every element as a dim, if all are integers or dims.
    pub fn as_dims(&self) -> Option<Vec<Dim>> {
        self.0.iter().map(KnownElem::as_dim).collect()
    }
}

impl KnownElem {
    /// The element as a dim: a dim or an integer scalar.
    pub fn as_dim(&self) -> Option<Dim> {
        match self {
            KnownElem::Dim(d) => Some(d.clone()),
            KnownElem::Scalar(s) => s.as_int().map(Dim::from),
            _ => None,
        }
    }
}

/// Type plus optional known elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact {
    /// The type.
    pub ty: Type,
    /// Its elements when there are at most [`MAX_KNOWN`] and some are known.
    pub known: Option<Known>,
}

impl From<Type> for Fact {
    fn from(ty: Type) -> Fact {
        Fact { ty, known: None }
    }
}
