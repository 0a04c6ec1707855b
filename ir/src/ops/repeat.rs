//! `repeat(trips, go, carried.., captured..)`: runs a region at most `trips` times, and only while its condition (at first
//! `go`) is true. The region takes (iteration, condition, carried.., captured..) and gives (condition, carried.., scans..).
//! Results are the last carried values and the scans of all iterations, stacked on a new axis 0.
//!
//! Constraints: repeat.c1 trips is i64 and go bool, both of rank 0; repeat.c2 one region; repeat.c3 `carried` is from 0 to
//! the operands left; repeat.c4 the region takes these types; repeat.c5 it gives a bool condition of rank 0 and the
//! carried values with their types; repeat.c6 with scans, `trip` is their extent. A run of another number of iterations
//! than `trip` is an error when the program runs.
//!
//! `%s, %ys = repeat (%n, %true, %s0, %w) {carried = 1, trip = (n)} { ... } : f32[4], f32[n, 4]`

use super::{Accuracy, Arity, Grad, InferCx, LowerCx, Lowering, Onnx, OpDef, Spec, region};
use crate::diag::Diag;
use crate::types::{DType, Dim, Fact, Type};

crate::op_struct! {
    /// A loop.
    pub struct Repeat {
        /// Number of carried values.
        carried: i64,
        /// Number of iterations, the extent of scans.
        trip: Option<Dim> = None,
    }
}

impl OpDef for Repeat {
    const SPEC: Spec = Spec {
        arity: Arity::Variadic(2),
        accuracy: Accuracy::Parts,
        onnx: Onnx::Op("Loop", 11, i64::MAX),
        commutative: false,
    };
    fn infer(&self, cx: &mut InferCx<'_>) -> Result<Vec<Fact>, Diag> {
        let (trips, go) = (Type::scalar(DType::I64), Type::scalar(DType::Bool));
        let heads = *cx.ty(0)? == trips && *cx.ty(1)? == go;
        cx.check(heads, "repeat.c1", "the first two operands must be i64[] and bool[]")?;
        let [body] = cx.regions else {
            return Err(
                cx.fail("E-IR-003", format!("{} regions given, one wanted [repeat.c2]", cx.regions.len()))
            );
        };
        let rest: Vec<Type> = cx.operands[2..].iter().map(|f| f.ty.clone()).collect();
        let carried = usize::try_from(self.carried).ok().filter(|c| *c <= rest.len());
        let text = format!("carried = {} with {} operands left", self.carried, rest.len());
        cx.check(carried.is_some(), "repeat.c3", text)?;
        let carried = carried.unwrap_or(0);
        let takes: Vec<Type> = [trips, go.clone()].into_iter().chain(rest.iter().cloned()).collect();
        region::check_inputs(cx, body, &takes, "repeat.c4")?;
        let gives = region::outputs(cx, body)?;
        let kept = gives.first() == Some(&go) && gives.get(1..1 + carried) == Some(&rest[..carried]);
        let text = format!(
            "the region must give a bool[] condition, then {carried} carried values of unchanged type"
        );
        cx.check(kept, "repeat.c5", text)?;
        let mut out: Vec<Fact> = rest[..carried].iter().cloned().map(Fact::from).collect();
        for scan in &gives[1 + carried..] {
            let Some(n) = &self.trip else {
                return Err(cx.fail("E-IR-003", "scans need `trip`, their extent [repeat.c6]"));
            };
            let shape = [n.clone()].into_iter().chain(scan.shape.iter().cloned()).collect();
            out.push(Type::new(scan.dtype, shape).into());
        }
        Ok(out)
    }
    fn lower(&self, _: &LowerCx<'_>) -> Result<Lowering, Diag> {
        Ok(Lowering::Structure)
    }
    fn grad(&self) -> Grad<Self> {
        Grad::NotDifferentiable("a loop keeps no record of its iterations")
    }
}
