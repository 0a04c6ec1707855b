//! Element types in ONNX, and which of them each operator takes at which opset: the table by which the exporter puts
//! casts around a node, or says what stands in the way. No op of the tensor IR is named here.

use tgc_ir::types::DType;
use tgc_proto::tensor_proto::DataType;

/// A set of element types, a bit each.
type Set = u32;

const fn one(d: DType) -> Set {
    1 << d as u32
}

const F32: Set = one(DType::F32);
const F64: Set = one(DType::F64);
const F16: Set = one(DType::F16);
const BF16: Set = one(DType::BF16);
const I8: Set = one(DType::I8);
const I16: Set = one(DType::I16);
const I32: Set = one(DType::I32);
const I64: Set = one(DType::I64);
const U8: Set = one(DType::U8);
const U16: Set = one(DType::U16);
const U32: Set = one(DType::U32);
const U64: Set = one(DType::U64);
const BOOL: Set = one(DType::Bool);
/// The floats that every operator on floats takes.
const FLOATS: Set = F32 | F64 | F16;
const SIGNED: Set = I8 | I16 | I32 | I64;
const UNSIGNED: Set = U8 | U16 | U32 | U64;
const INTS: Set = SIGNED | UNSIGNED;
/// What older operators call numbers: high-precision integers, and floats.
const WIDE: Set = FLOATS | BF16 | I32 | I64 | U32 | U64;
const NUMBERS: Set = INTS | FLOATS | BF16;
const ALL: Set = NUMBERS | BOOL;

/// An operator from an opset on: the types it takes by the specification, and those of them for which a wider type is
/// preferred where there is one, because ONNX Runtime has no CPU kernel for them.
struct Row(&'static str, i64, Set, Set);

/// Operators that do not take every type. Rows of one operator are in ascending order of opset.
#[rustfmt::skip]
const ROWS: &[Row] = &[
    Row("Neg", 13, SIGNED | FLOATS | BF16, BF16 | I16), Row("Abs", 13, NUMBERS, BF16),
    Row("Exp", 13, FLOATS | BF16, BF16), Row("Log", 13, FLOATS | BF16, BF16),
    Row("Sqrt", 13, FLOATS | BF16, BF16), Row("Reciprocal", 13, FLOATS | BF16, BF16),
    Row("Tan", 7, FLOATS, 0), Row("Tan", 22, FLOATS | BF16, BF16),
    Row("Tanh", 13, FLOATS | BF16, BF16), Row("Erf", 13, FLOATS | BF16, BF16),
    Row("Sigmoid", 13, FLOATS | BF16, BF16),
    Row("Relu", 13, FLOATS | BF16, BF16), Row("Relu", 14, FLOATS | BF16 | SIGNED, BF16 | I16 | I64),
    Row("Sin", 7, FLOATS, 0), Row("Sin", 22, FLOATS | BF16, BF16),
    Row("Cos", 7, FLOATS, 0), Row("Cos", 22, FLOATS | BF16, BF16),
    Row("Floor", 13, FLOATS | BF16, BF16), Row("Ceil", 13, FLOATS | BF16, BF16),
    Row("Round", 11, FLOATS, 0), Row("Round", 22, FLOATS | BF16, BF16),
    Row("Sign", 13, NUMBERS, 0), Row("Not", 1, BOOL, 0), Row("BitwiseNot", 18, INTS, 0),
    Row("IsNaN", 13, FLOATS | BF16, BF16), Row("Gelu", 20, FLOATS | BF16, BF16),
    Row("Softmax", 13, FLOATS | BF16, BF16), Row("LogSoftmax", 13, FLOATS | BF16, BF16),
    Row("NonZero", 13, ALL, I8 | U16 | I16 | F64 | U32 | U64 | BF16),
    Row("Add", 13, WIDE, BF16), Row("Add", 14, NUMBERS, BF16),
    Row("Sub", 13, WIDE, BF16), Row("Sub", 14, NUMBERS, BF16),
    Row("Mul", 13, WIDE, BF16), Row("Mul", 14, NUMBERS, BF16),
    Row("Div", 13, WIDE, BF16), Row("Div", 14, NUMBERS, BF16),
    Row("Pow", 13, I32 | I64 | FLOATS, 0), Row("Pow", 15, I32 | I64 | FLOATS | BF16, BF16),
    Row("Min", 13, NUMBERS, I16 | U16 | BF16), Row("Max", 13, NUMBERS, I16 | U16 | BF16),
    Row("Equal", 13, ALL, BF16), Row("Less", 13, NUMBERS, BF16),
    Row("LessOrEqual", 12, NUMBERS & !BF16, 0), Row("LessOrEqual", 16, NUMBERS, BF16),
    Row("And", 7, BOOL, 0), Row("Or", 7, BOOL, 0), Row("Xor", 7, BOOL, 0),
    Row("BitwiseAnd", 18, INTS, 0), Row("BitwiseOr", 18, INTS, 0), Row("BitwiseXor", 18, INTS, 0),
    Row("Mod", 13, NUMBERS, BF16), Row("BitShift", 11, UNSIGNED, 0),
    Row("Where", 9, ALL & !BF16, I16 | U16 | U64 | BOOL),
    Row("Where", 16, ALL, I16 | U16 | U64 | BOOL | BF16),
    Row("Expand", 13, ALL, BF16), Row("Pad", 13, ALL, I16 | U16 | BF16),
    Row("Clip", 13, NUMBERS, I16 | U16 | BF16), Row("ReduceSum", 13, WIDE, U32 | U64 | BF16), Row("ReduceProd", 13, WIDE, U32 | U64 | BF16),
    Row("ReduceMean", 13, WIDE, U32 | U64 | BF16),
    Row("ReduceMax", 13, WIDE | U8 | I8, U32 | U64 | BF16),
    Row("ReduceMax", 20, WIDE | U8 | I8 | BOOL, U32 | U64 | BF16),
    Row("ReduceMin", 13, WIDE | U8 | I8, U32 | U64 | BF16),
    Row("ReduceMin", 20, WIDE | U8 | I8 | BOOL, U32 | U64 | BF16),
    Row("ArgMax", 13, NUMBERS, I16 | U16 | U32 | U64 | BF16),
    Row("ArgMin", 13, NUMBERS, I16 | U16 | U32 | U64 | BF16),
    Row("MatMul", 13, WIDE, BF16), Row("Conv", 11, FLOATS, 0), Row("Conv", 22, FLOATS | BF16, BF16),
    Row("MaxPool", 12, FLOATS | I8 | U8, 0), Row("MaxPool", 22, FLOATS | BF16 | I8 | U8, BF16),
    Row("AveragePool", 11, FLOATS, 0), Row("AveragePool", 22, FLOATS | BF16, BF16),
    Row("CumSum", 11, (WIDE & !F16) & !BF16, U32 | U64), Row("CumSum", 14, WIDE, U32 | U64 | BF16),
    Row("TopK", 11, NUMBERS & !BF16, U16 | U32), Row("TopK", 24, NUMBERS, U16 | U32 | BF16),
    Row("LayerNormalization", 17, FLOATS | BF16, BF16),
    Row("BatchNormalization", 9, FLOATS, 0), Row("BatchNormalization", 14, FLOATS | BF16, BF16),
    Row("ConstantOfShape", 9, ALL & !BF16, 0), Row("ConstantOfShape", 20, ALL, 0),
    Row("QuantizeLinear", 13, U8 | I8, 0), Row("QuantizeLinear", 21, U8 | I8 | U16 | I16, 0),
    Row("DequantizeLinear", 13, U8 | I8 | I32, 0), Row("DequantizeLinear", 21, U8 | I8 | U16 | I16 | I32, 0),
];

/// Operators whose results are the same modulo a power of two in every type at least as wide, so that unsigned types of 64
/// bits can be computed as signed ones.
const WRAPPING: &[&str] = &["Add", "Sub", "Mul", "MatMul", "ReduceSum", "ReduceProd", "CumSum", "Where"];

/// Types that hold every value of `d`, best first.
fn wider(d: DType, operator: &str) -> &'static [DType] {
    match d {
        DType::Bool => &[DType::U8, DType::I32],
        DType::I8 | DType::I16 | DType::U8 | DType::U16 => &[DType::I32, DType::I64, DType::F32],
        DType::U32 => &[DType::I64, DType::F64],
        DType::I32 => &[DType::I64, DType::F64],
        DType::F16 | DType::BF16 => &[DType::F32],
        DType::U64 if WRAPPING.contains(&operator) => &[DType::I64],
        _ => &[],
    }
}

/// Why an operator does not take a type, in words: what is wrong, and from which opset on it is not.
pub(super) struct Refused(pub(super) String, pub(super) Option<i64>);

/// The type in which `operator` computes for operands of type `d`: `d` itself, or a wider one that gives the same results.
pub(super) fn compute_type(operator: &str, opset: i64, d: DType) -> Result<DType, Refused> {
    let rows = || ROWS.iter().filter(|r| r.0 == operator);
    let Some(first) = rows().next() else { return Ok(d) };
    let Some(row) = rows().rfind(|r| r.1 <= opset) else {
        let text = format!("{operator} exists from opset {} on", first.1);
        return Err(Refused(text, Some(first.1)));
    };
    let (takes, runs) = (|d: DType| row.2 & one(d) != 0, |d: DType| row.2 & !row.3 & one(d) != 0);
    if runs(d) {
        return Ok(d);
    }
    if let Some(w) = wider(d, operator).iter().find(|w| runs(**w)) {
        return Ok(*w);
    }
    if takes(d) {
        return Ok(d);
    }
    let later = rows().find(|r| r.1 > opset && r.2 & one(d) != 0).map(|r| r.1);
    Err(Refused(format!("{operator} does not take {d}, nor a type that holds it"), later))
}

/// True where `operator` of that opset computes `d` in a type that engines have a kernel for.
pub(super) fn runs(operator: &str, opset: i64, d: DType) -> bool {
    let row = ROWS.iter().rfind(|r| r.0 == operator && r.1 <= opset);
    compute_type(operator, opset, d).is_ok_and(|c| row.is_none_or(|r| r.3 & one(c) == 0))
}

/// True where `operator` of that opset takes `d` without a cast.
pub(super) fn takes(operator: &str, opset: i64, d: DType) -> bool {
    compute_type(operator, opset, d).is_ok_and(|c| c == d)
}

/// The code of an element type, and since which opset tensors of it exist.
pub(super) fn code(d: DType) -> (DataType, i64) {
    match d {
        DType::F64 => (DataType::Double, 1),
        DType::F32 => (DataType::Float, 1),
        DType::F16 => (DataType::Float16, 1),
        DType::BF16 => (DataType::Bfloat16, 13),
        DType::F8E4M3FN => (DataType::Float8e4m3fn, 19),
        DType::F8E4M3FNUZ => (DataType::Float8e4m3fnuz, 19),
        DType::F8E5M2 => (DataType::Float8e5m2, 19),
        DType::F8E5M2FNUZ => (DataType::Float8e5m2fnuz, 19),
        DType::F8E8M0 => (DataType::Float8e8m0, 24),
        DType::F4E2M1 => (DataType::Float4e2m1, 23),
        DType::I64 => (DataType::Int64, 1),
        DType::I32 => (DataType::Int32, 1),
        DType::I16 => (DataType::Int16, 1),
        DType::I8 => (DataType::Int8, 1),
        DType::I4 => (DataType::Int4, 21),
        DType::I2 => (DataType::Int2, 25),
        DType::U64 => (DataType::Uint64, 1),
        DType::U32 => (DataType::Uint32, 1),
        DType::U16 => (DataType::Uint16, 1),
        DType::U8 => (DataType::Uint8, 1),
        DType::U4 => (DataType::Uint4, 21),
        DType::U2 => (DataType::Uint2, 25),
        DType::Bool => (DataType::Bool, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_the_opset() {
        let ty = |op, opset, d| compute_type(op, opset, d).map_err(|r| r.1);
        assert_eq!(ty("Add", 13, DType::I8), Ok(DType::I32));
        assert_eq!(ty("Add", 14, DType::I8), Ok(DType::I8));
        assert_eq!(ty("Add", 21, DType::BF16), Ok(DType::F32));
        assert_eq!(ty("ReduceSum", 21, DType::U64), Ok(DType::I64));
        assert_eq!(ty("ReduceMax", 21, DType::U64), Ok(DType::U64));
        assert_eq!(ty("ReduceMax", 13, DType::Bool), Ok(DType::U8));
        assert_eq!(ty("MaxPool", 13, DType::I64), Err(None));
        assert_eq!(ty("BitwiseAnd", 17, DType::I32), Err(Some(18)));
        assert_eq!(ty("QuantizeLinear", 13, DType::U16), Err(Some(21)));
    }
}
