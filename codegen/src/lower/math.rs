//! Math lowering: scalar programs with transcendental functions, 16-bit floats and integer powers become programs of
//! primitive operations only (arithmetic, fma, sqrt, min and max, comparisons, bits, shifts, select, casts that every
//! target has). Branch-free, so that they vectorise; the kernel interpreter and every code generator run the same
//! program and so agree to the bit.
//!
//! Accuracy over all inputs, denormals and huge arguments too, as measured by this module's tests: f32 at most 2 ulp,
//! f64 at most 4. 16-bit floats compute in f32 and round once. Not built, refused by name: `rem`, `mod` on f64.

mod bits;
mod double;
mod half;
mod power;
mod single;
mod trig;

#[cfg(test)]
mod tests;

use crate::kernel::{Item, Kernel, Kind, Stage};
use tgc_ir::diag::{Diag, Loc};
use tgc_ir::scalar::{Bin, ENode, Expr, Scalar, Un};
use tgc_ir::types::{Atom, DType, Dim};

/// An operation that has no lowering yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    /// Operation and type, such as `mod on f64`.
    pub what: String,
}

impl From<Unsupported> for Diag {
    fn from(u: Unsupported) -> Diag {
        Diag::error("E-CG-010", format!("{} cannot be compiled yet", u.what))
            .help("compute it in f32, or outside of the model")
    }
}

/// The same program in primitive operations.
pub(crate) fn lower_math(e: &Expr) -> Result<Expr, Unsupported> {
    lower(e).map(|l| l.0)
}

/// Lowers every scalar program of a kernel in place.
pub(crate) fn lower_kernel(k: &mut Kernel) -> Result<(), Diag> {
    let name = k.name.clone();
    items(&mut k.body, &name)
}

fn items(body: &mut [Item], name: &str) -> Result<(), Diag> {
    for item in body {
        match item {
            Item::Loop { body, .. } => items(body, name)?,
            Item::Stage(s) => {
                let place = Loc::new(format!("kernel {name}, stage {:?}", s.name));
                stage(s).map_err(|u| Diag::from(u).at(&place))?;
            }
        }
    }
    Ok(())
}

fn stage(s: &mut Stage) -> Result<(), Unsupported> {
    let (expr, at) = lower(&s.expr)?;
    s.expr = expr;
    let moved = |d: &Dim| {
        d.subst(&|a| match a {
            Atom::Val(n) => at.get(*n as usize).map(|n| Dim::val(*n)),
            _ => None,
        })
    };
    s.loads.iter_mut().for_each(|l| l.index = l.index.iter().map(moved).collect());
    s.stores.iter_mut().for_each(|st| st.index = st.index.iter().map(moved).collect());
    if let Some(p) = &mut s.post {
        *p = lower_math(p)?;
    }
    if let Kind::Reduce { reducer: r, .. } = &mut s.kind {
        for e in [&mut r.step, &mut r.combine, &mut r.finish] {
            *e = lower_math(e)?;
        }
    }
    Ok(())
}

fn is_half(d: DType) -> bool {
    matches!(d, DType::F16 | DType::BF16)
}

/// What is not primitive in a program, in words.
pub(crate) fn unlowered(e: &Expr) -> Option<String> {
    e.nodes.iter().find_map(|(node, dtype)| {
        let from = node.operands().first().map_or(*dtype, |a| e.dtype(*a));
        (!primitive(node, from, *dtype)).then(|| match node {
            ENode::Un(op, _) => format!("{} on {from}", op.name()),
            ENode::Bin(op, ..) => format!("{} on {from}", op.name()),
            ENode::Cast(_) => format!("cast of {from} to {dtype}"),
            _ => format!("fma on {from}"),
        })
    })
}

fn primitive(node: &ENode, from: DType, to: DType) -> bool {
    match node {
        ENode::Arg(_) | ENode::Const(_) | ENode::Dim(_) | ENode::Select(..) | ENode::Bitcast(_) => true,
        ENode::Un(op, _) => {
            !is_half(from) && !matches!(op, Un::Exp | Un::Log | Un::Tanh | Un::Erf | Un::Sin | Un::Cos)
        }
        ENode::Bin(op, ..) => {
            let float = from.is_float() && matches!(op, Bin::Rem | Bin::Mod);
            !is_half(from) && !float && *op != Bin::Pow
        }
        ENode::Fma(..) => !is_half(from),
        ENode::Cast(_) => {
            let pair = (from, to);
            let halves = is_half(from) || is_half(to);
            !halves || matches!(pair, (DType::F16, DType::F32) | (DType::F32, DType::F16))
        }
    }
}

/// The lowered program and where each node of `e` went.
fn lower(e: &Expr) -> Result<(Expr, Vec<u32>), Unsupported> {
    let mut b = Build::default();
    let mut at: Vec<u32> = Vec::with_capacity(e.nodes.len());
    for (node, dtype) in &e.nodes {
        let from = node.operands().first().map_or(*dtype, |a| e.dtype(*a));
        let node = node.map_operands(|o| at[o as usize]);
        let n = if primitive(&node, from, *dtype) {
            b.e.push(node, *dtype)
        } else {
            match node {
                ENode::Un(op, a) => b.unary(op, from, a)?,
                ENode::Bin(op, x, y) => b.binary(op, from, x, y)?,
                ENode::Fma(x, y, z) => b.half_fma(from, x, y, z),
                ENode::Cast(a) => b.half_cast(from, *dtype, a),
                other => b.e.push(other, *dtype),
            }
        };
        at.push(n);
    }
    b.e.roots = e.roots.iter().map(|r| at[*r as usize]).collect();
    Ok((b.e, at))
}

/// Builds the lowered program; short names, since the functions are long sums of products.
#[derive(Default)]
struct Build {
    e: Expr,
}

impl Build {
    fn unary(&mut self, op: Un, d: DType, a: u32) -> Result<u32, Unsupported> {
        if is_half(d) {
            return self.half_unary(op, d, a);
        }
        let double = d == DType::F64;
        Ok(match op {
            Un::Exp if double => self.exp64(a),
            Un::Exp => self.exp32(a),
            Un::Log if double => self.log64(a),
            Un::Log => self.log32(a),
            Un::Tanh if double => self.tanh64(a),
            Un::Tanh => self.tanh32(a),
            Un::Erf if double => self.erf64(a),
            Un::Erf => self.erf32(a),
            Un::Sin if double => self.sin64(a, false),
            Un::Cos if double => self.sin64(a, true),
            Un::Sin => self.sin32(a, false),
            Un::Cos => self.sin32(a, true),
            _ => self.e.un(op, a),
        })
    }

    fn binary(&mut self, op: Bin, d: DType, x: u32, y: u32) -> Result<u32, Unsupported> {
        if is_half(d) {
            return self.half_binary(op, d, x, y);
        }
        Ok(match (op, d) {
            (Bin::Pow, DType::F32) => self.pow32(x, y),
            (Bin::Pow, DType::F64) => self.pow64(x, y),
            (Bin::Pow, _) => self.int_pow(d, x, y),
            (Bin::Rem, DType::F32) => self.rem32(x, y),
            (Bin::Mod, DType::F32) => self.mod32(x, y),
            _ => return Err(Unsupported { what: format!("{} on {d}", op.name()) }),
        })
    }

    fn add(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Add, a, b)
    }

    fn sub(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Sub, a, b)
    }

    fn mul(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Mul, a, b)
    }

    fn div(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Div, a, b)
    }

    fn fma(&mut self, a: u32, b: u32, c: u32) -> u32 {
        self.e.fma(a, b, c)
    }

    fn neg(&mut self, a: u32) -> u32 {
        self.e.un(Un::Neg, a)
    }

    fn abs(&mut self, a: u32) -> u32 {
        self.e.un(Un::Abs, a)
    }

    fn lt(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Lt, a, b)
    }

    fn eq(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Eq, a, b)
    }

    fn and(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::And, a, b)
    }

    fn or(&mut self, a: u32, b: u32) -> u32 {
        self.e.bin(Bin::Or, a, b)
    }

    fn not(&mut self, a: u32) -> u32 {
        self.e.un(Un::Not, a)
    }

    fn select(&mut self, c: u32, a: u32, b: u32) -> u32 {
        self.e.select(c, a, b)
    }

    /// A constant of the type of node `like`.
    fn num(&mut self, like: u32, v: f64) -> u32 {
        self.e.num(like, v)
    }

    fn int(&mut self, d: DType, v: i128) -> u32 {
        self.e.constant(Scalar::from_int(d, v))
    }

    /// `c[0] + c[1] x + ..` by Horner's rule.
    fn poly(&mut self, x: u32, c: &[f64]) -> u32 {
        let mut coefficients = c.iter().rev();
        let mut p = self.num(x, coefficients.next().copied().unwrap_or(0.0));
        for c in coefficients {
            let c = self.num(x, *c);
            p = self.fma(p, x, c);
        }
        p
    }
}
