//! Element types: PyTorch's short names for casts, and questions.

use crate::nn::tensor::{Tensor, promote_types};
use tgc_ir::types::DType;

macro_rules! casts {
    ($($(#[$doc:meta])* pub fn $name:ident => $d:expr;)*) => {
        impl Tensor { $(
            $(#[$doc])*
            #[track_caller]
            pub fn $name(&self) -> Tensor {
                self.to_dtype($d)
            }
        )* }
    };
}
casts! {
    /// As f32.
    pub fn float => DType::F32;
    /// As f64.
    pub fn double => DType::F64;
    /// As f16.
    pub fn half => DType::F16;
    /// As bf16.
    pub fn bfloat16 => DType::BF16;
    /// As i64.
    pub fn long => DType::I64;
    /// As i32.
    pub fn int => DType::I32;
    /// As i16.
    pub fn short => DType::I16;
    /// As i8.
    pub fn char => DType::I8;
    /// As u8.
    pub fn byte => DType::U8;
    /// As bool: whether an element is not 0.
    pub fn bool => DType::Bool;
}

impl Tensor {
    /// As another tensor's element type.
    #[track_caller]
    pub fn type_as(&self, other: &Tensor) -> Tensor {
        self.to_dtype(other.dtype())
    }

    /// Whether the elements are floats.
    pub fn is_floating_point(&self) -> bool {
        self.dtype().is_float()
    }

    /// Bytes of an element.
    pub fn element_size(&self) -> usize {
        self.dtype().size()
    }

    /// The element type that both fit in: `torch.promote_types`.
    pub fn promote_types(a: DType, b: DType) -> DType {
        promote_types(a, b)
    }

    /// The element type of a result of two tensors: `torch.result_type`.
    pub fn result_type(&self, other: &Tensor) -> DType {
        crate::nn::tensor::promote(self, other)
    }
}
