//! Element types and their properties. Conversion of values lives in `scalar`.

use std::fmt;
use std::str::FromStr;

/// Element type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)] // the names are the meaning
pub enum DType {
    F64,
    F32,
    F16,
    BF16,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0,
    F4E2M1,
    I64,
    I32,
    I16,
    I8,
    I4,
    I2,
    U64,
    U32,
    U16,
    U8,
    U4,
    U2,
    Bool,
}

const NAMES: [(DType, &str, u32); 23] = [
    (DType::F64, "f64", 64),
    (DType::F32, "f32", 32),
    (DType::F16, "f16", 16),
    (DType::BF16, "bf16", 16),
    (DType::F8E4M3FN, "f8e4m3fn", 8),
    (DType::F8E4M3FNUZ, "f8e4m3fnuz", 8),
    (DType::F8E5M2, "f8e5m2", 8),
    (DType::F8E5M2FNUZ, "f8e5m2fnuz", 8),
    (DType::F8E8M0, "f8e8m0", 8),
    (DType::F4E2M1, "f4e2m1", 4),
    (DType::I64, "i64", 64),
    (DType::I32, "i32", 32),
    (DType::I16, "i16", 16),
    (DType::I8, "i8", 8),
    (DType::I4, "i4", 4),
    (DType::I2, "i2", 2),
    (DType::U64, "u64", 64),
    (DType::U32, "u32", 32),
    (DType::U16, "u16", 16),
    (DType::U8, "u8", 8),
    (DType::U4, "u4", 4),
    (DType::U2, "u2", 2),
    (DType::Bool, "bool", 8),
];

impl DType {
    /// Every element type, widest float first.
    pub fn all() -> impl Iterator<Item = DType> {
        NAMES.iter().map(|&(d, _, _)| d)
    }

    /// Spelling in text form, such as `f32`.
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|n| n.0 == self).map_or("?", |n| n.1)
    }

    /// Width of one element in bits (8 for bool).
    pub fn bits(self) -> u32 {
        NAMES.iter().find(|n| n.0 == self).map_or(0, |n| n.2)
    }

    /// Bytes of one element in memory. Storage types below a byte are held one element a byte in the interpreter.
    pub fn size(self) -> usize {
        (self.bits() as usize).div_ceil(8)
    }

    /// f64, f32, f16, bf16: the float types arithmetic is defined on.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F64 | DType::F32 | DType::F16 | DType::BF16)
    }

    /// i8..i64 and u8..u64.
    pub fn is_int(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// i8, i16, i32, i64.
    pub fn is_signed(self) -> bool {
        matches!(self, DType::I64 | DType::I32 | DType::I16 | DType::I8)
    }

    /// u8, u16, u32, u64.
    pub fn is_unsigned(self) -> bool {
        matches!(self, DType::U64 | DType::U32 | DType::U16 | DType::U8)
    }

    /// Types that may be stored and cast but not computed with.
    pub fn is_storage_only(self) -> bool {
        !(self.is_float() || self.is_int() || self == DType::Bool)
    }

    /// Relative rounding unit (half the spacing at 1): 2^-53, 2^-24, 2^-11, 2^-8; 0 for others.
    pub fn epsilon(self) -> f64 {
        match self {
            DType::F64 => f64::EPSILON / 2.0,
            DType::F32 => f64::from(f32::EPSILON) / 2.0,
            DType::F16 => 1.0 / 2048.0,
            DType::BF16 => 1.0 / 256.0,
            _ => 0.0,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DType {
    type Err = ();
    fn from_str(s: &str) -> Result<Self, ()> {
        NAMES.iter().find(|n| n.1 == s).map(|n| n.0).ok_or(())
    }
}
