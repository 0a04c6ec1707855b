//! The op table. One row an op names its file and struct; from the rows come the [`Op`] enum, names, attribute reading
//! and writing, and dispatch. Nobody else lists ops.

pub mod attr;
mod def;
mod grad;
mod index;
pub(crate) mod map;
mod parts;
mod pool;
mod quant;
mod reduce;
mod region;
#[cfg(test)]
mod tests;
mod view;
mod window;

pub(crate) use attr::take_attr;
pub use attr::{Attr, AttrValue, Attrs};
pub use def::{Accuracy, Arity, GVal, GradBuilder, GradCx, Lowering, Onnx, Spec, Template};
pub(crate) use def::{Grad, InferCx, LowerCx, OpDef};

use crate::diag::Diag;
use crate::types::{Dim, Fact, Pred, SymTable, Type};

macro_rules! op_table {
    ($($file:ident :: $name:ident,)*) => {
        $(mod $file; pub use $file::$name;)*

        /// An op with its attributes.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)] // documented at each struct
        pub enum Op { $($name($name),)* }

        $(impl From<$name> for Op { fn from(op: $name) -> Op { Op::$name(op) } })*

        impl Op {
            /// Name in text form.
            pub fn name(&self) -> &'static str {
                match self { $(Op::$name(_) => stringify!($file),)* }
            }

            /// Names of all ops, in table order.
            pub fn all() -> &'static [&'static str] {
                &[$(stringify!($file)),*]
            }

            /// Constant facts by name; None for an unknown op.
            pub fn spec_of(name: &str) -> Option<Spec> {
                match name { $(stringify!($file) => Some(<$name as OpDef>::SPEC),)* _ => None }
            }

            /// Constant facts.
            pub fn spec(&self) -> Spec {
                match self { $(Op::$name(_) => <$name as OpDef>::SPEC,)* }
            }

            /// The op by name and attributes. None for an unknown name; an error in words for wrong attributes.
            pub fn from_attrs(name: &str, attrs: Attrs) -> Option<Result<Op, String>> {
                match name { $(stringify!($file) => Some($name::from_attrs(attrs).map(Op::$name)),)* _ => None }
            }

            /// Attributes that differ from their defaults.
            pub fn attrs(&self) -> Vec<(&'static str, Attr)> {
                match self { $(Op::$name(op) => op.attrs(),)* }
            }

            fn infer_unchecked(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
                match self { $(Op::$name(op) => op.infer(cx),)* }
            }

            /// What it computes, for types that inference accepted.
            pub fn lower(&self, ins: &[Type], outs: &[Type], symbols: &SymTable) -> Result<Lowering, Diag> {
                let cx = LowerCx { ins, outs, symbols };
                match self { $(Op::$name(op) => op.lower(&cx),)* }
            }

            /// Cotangents of the operands; `Err` with the reason when not differentiable. `Parts` and `FromExpr`
            /// gradients are the driver's work: they give `Ok(None)`.
            pub fn gradient(&self, cx: &mut GradCx<'_>) -> Result<Option<Vec<Option<GVal>>>, &'static str> {
                match self {
                    $(Op::$name(op) => match op.grad() {
                        Grad::Rule(f) => Ok(Some(f(op, cx))),
                        Grad::Zero => Ok(Some(vec![None; cx.operands.len()])),
                        Grad::FromExpr | Grad::Parts => Ok(None),
                        Grad::NotDifferentiable(why) => Err(why),
                    },)*
                }
            }
        }
    };
}

op_table! {
    // structure
    input::Input,
    constant::Constant,
    const_dims::ConstDims,
    weight::Weight,
    bind_dim::BindDim,
    fused::Fused,
    cond::Cond,
    repeat::Repeat,
    // maps of one operand
    neg::Neg,
    abs::Abs,
    exp::Exp,
    log::Log,
    sqrt::Sqrt,
    reciprocal::Reciprocal,
    tan::Tan,
    tanh::Tanh,
    erf::Erf,
    sigmoid::Sigmoid,
    relu::Relu,
    sin::Sin,
    cos::Cos,
    floor::Floor,
    ceil::Ceil,
    round::Round,
    sign::Sign,
    not::Not,
    is_nan::IsNan,
    gelu::Gelu,
    cast::Cast,
    // maps of several
    add::Add,
    sub::Sub,
    mul::Mul,
    div::Div,
    rem::Rem,
    modulo::Modulo,
    pow::Pow,
    min::Min,
    max::Max,
    eq::Eq,
    lt::Lt,
    le::Le,
    and::And,
    or::Or,
    xor::Xor,
    shl::Shl,
    shr::Shr,
    select::Select,
    iota::Iota,
    // views
    reshape::Reshape,
    expand::Expand,
    transpose::Transpose,
    slice::Slice,
    concat::Concat,
    pad::Pad,
    // reductions
    reduce_sum::ReduceSum,
    reduce_max::ReduceMax,
    reduce_min::ReduceMin,
    reduce_prod::ReduceProd,
    arg_max::ArgMax,
    // contractions
    matmul::Matmul,
    conv::Conv,
    // windows
    max_pool::MaxPool,
    avg_pool::AvgPool,
    // indexed reads and writes
    gather::Gather,
    gather_elements::GatherElements,
    scatter_elements::ScatterElements,
    update_slice::UpdateSlice,
    // prefix ops and runtime kernels
    cum_sum::CumSum,
    non_zero::NonZero,
    top_k::TopK,
    // composites
    reduce_mean::ReduceMean,
    softmax::Softmax,
    log_softmax::LogSoftmax,
    layer_norm::LayerNorm,
    batch_norm::BatchNorm,
    quantize::Quantize,
    dequantize::Dequantize,
}

impl Op {
    /// Type rule with the arity check.
    pub(crate) fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let n = cx.operands.len();
        let (ok, want) = match self.spec().arity {
            Arity::Fixed(names) => (n == names.len(), names.len().to_string()),
            Arity::Optional(names, need) => {
                ((need..=names.len()).contains(&n), format!("{need} to {}", names.len()))
            }
            Arity::Variadic(need) => (n >= need, format!("at least {need}")),
        };
        if !ok {
            return Err(cx.fail("E-IR-002", format!("{n} operands given, {want} wanted")));
        }
        let results = self.infer_unchecked(cx)?;
        let old: Vec<&Dim> = cx.operands.iter().flat_map(|f| &f.ty.shape).collect();
        let fresh = results.iter().flat_map(|f| &f.ty.shape).filter(|d| !old.contains(d));
        for d in fresh {
            cx.require(Pred::Le(Dim::from(0), d.clone()), "a size must not be negative")?;
        }
        Ok(results)
    }
}
