//! `bind_dim(n)`: gives the value of a rank-0 integer a name as a symbolic dim; the program's next segment starts here.
//!
//! Constraints: bind_dim.c1 the operand is i64 of rank 0; bind_dim.c2 the symbol is declared in the entry.
//! A value outside the symbol's range is an error when the program runs. The result is the operand.
//!
//! `%n = bind_dim %count {symbol = "k"} : i64[]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec};
use crate::diag::Diag;
use crate::types::{DType, Fact};

crate::op_struct! {
    /// Binds a symbol.
    pub struct BindDim {
        /// The symbol's name.
        symbol: String,
    }
}

impl OpDef for BindDim {
    const SPEC: Spec = Spec {
        arity: Arity::Fixed(&["n"]),
        accuracy: Accuracy::Exact,
        onnx: Onnx::Internal,
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let t = cx.ty(0)?;
        cx.check(t.dtype == DType::I64 && t.rank() == 0, "bind_dim.c1", "the operand must be i64 of rank 0")?;
        cx.check(cx.symbols.get(&self.symbol).is_some(), "bind_dim.c2", "the symbol must be declared")?;
        Ok(vec![t.clone().into()])
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::NotDifferentiable("a size is an integer")
    }
}
