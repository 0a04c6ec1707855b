//! Dims and predicates of the tensor IR as the runtime's formulas over symbol slots.

use tgc_ir::diag::Diag;
use tgc_ir::types::{Atom, Dim, Pred};
use tgc_runtime::{Expr, Pred as RtPred};

/// Formula of a dim; `slot` gives a symbol's position.
pub(crate) fn expr(d: &Dim, slot: &dyn Fn(&str) -> Option<usize>) -> Result<Expr, Diag> {
    let too_big = || Diag::error("E-CG-013", format!("the size formula `{d}` has a factor beyond 64 bits"));
    let int = |v: i128| i64::try_from(v).map(Expr::Const).map_err(|_| too_big());
    let mut sum = Vec::new();
    for (coeff, atoms) in d.terms() {
        let mut product = if coeff == 1 { Vec::new() } else { vec![int(coeff)?] };
        for a in atoms {
            product.push(atom(a, slot)?);
        }
        sum.push(if product.len() == 1 { product.swap_remove(0) } else { Expr::Mul(product) });
    }
    if d.constant() != 0 || sum.is_empty() {
        sum.push(int(d.constant())?);
    }
    Ok(if sum.len() == 1 { sum.swap_remove(0) } else { Expr::Add(sum) })
}

fn atom(a: &Atom, slot: &dyn Fn(&str) -> Option<usize>) -> Result<Expr, Diag> {
    let two = |x: &Dim, y: &Dim| Ok::<_, Diag>((Box::new(expr(x, slot)?), Box::new(expr(y, slot)?)));
    Ok(match a {
        Atom::Sym(s) => match slot(s) {
            Some(i) => Expr::Sym(i as u32),
            None => return Err(Diag::error("E-CG-011", format!("the symbol `{s}` is not declared"))),
        },
        Atom::Label(_) | Atom::Val(_) => {
            return Err(Diag::error(
                "E-CG-012",
                format!("`{a}` stands in a formula that is computed before the run"),
            ));
        }
        Atom::FloorDiv(x, y) => {
            let (x, y) = two(x, y)?;
            Expr::FloorDiv(x, y)
        }
        Atom::Min(x, y) => {
            let (x, y) = two(x, y)?;
            Expr::Min(x, y)
        }
        Atom::Max(x, y) => {
            let (x, y) = two(x, y)?;
            Expr::Max(x, y)
        }
        Atom::Bcast(x, y) => {
            let (x, y) = two(x, y)?;
            Expr::Bcast(x, y)
        }
    })
}

/// Formula of a predicate.
pub(crate) fn pred(p: &Pred, slot: &dyn Fn(&str) -> Option<usize>) -> Result<RtPred, Diag> {
    let list = |v: &[Pred]| v.iter().map(|p| pred(p, slot)).collect::<Result<Vec<_>, _>>();
    Ok(match p {
        Pred::True => RtPred::True,
        Pred::Eq(a, b) => RtPred::Eq(expr(a, slot)?, expr(b, slot)?),
        Pred::Le(a, b) => RtPred::Le(expr(a, slot)?, expr(b, slot)?),
        Pred::Broadcastable(a, b) => RtPred::Broadcastable(expr(a, slot)?, expr(b, slot)?),
        Pred::And(v) => RtPred::And(list(v)?),
        Pred::Or(v) => RtPred::Or(list(v)?),
        Pred::Not(p) => RtPred::Not(Box::new(pred(p, slot)?)),
    })
}
