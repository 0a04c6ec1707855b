//! Size formulas and predicates over an entry's symbols, evaluated when a session binds. What must not be here:
//! simplification or proofs (the compiler's) and knowledge of entries or buffers.

use std::fmt::Write;

/// An integer formula. `Sym(i)` is slot `i` of the entry's symbol table (in a kernel's own formulas: of its dims array).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Const(i64),
    /// The value of a symbol.
    Sym(u32),
    /// The sum of all; 0 when empty.
    Add(Vec<Expr>),
    /// The product of all; 1 when empty.
    Mul(Vec<Expr>),
    /// The quotient rounded towards minus infinity; the divisor must be at least 1.
    FloorDiv(Box<Expr>, Box<Expr>),
    /// The smaller.
    Min(Box<Expr>, Box<Expr>),
    /// The larger.
    Max(Box<Expr>, Box<Expr>),
    /// The broadcast of two extents: equal, or one of them is 1.
    Bcast(Box<Expr>, Box<Expr>),
}

/// A condition over symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pred {
    /// Always holds.
    True,
    /// Never holds.
    False,
    /// Both are equal.
    Eq(Expr, Expr),
    /// The first is at most the second.
    Le(Expr, Expr),
    /// Equal, or one of them is 1.
    Broadcastable(Expr, Expr),
    /// All hold.
    And(Vec<Pred>),
    /// At least one holds.
    Or(Vec<Pred>),
    /// Does not hold.
    Not(Box<Pred>),
}

/// Why a formula has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExprError {
    /// A value left the range of i64.
    Overflow,
    /// The symbol in this slot has no value yet.
    Unknown(u32),
    /// A divisor was below 1.
    Divisor(i64),
    /// Two extents cannot be broadcast.
    Broadcast(i64, i64),
}

impl std::fmt::Display for ExprError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ExprError::Overflow => f.write_str("the value does not fit in 64 bits"),
            ExprError::Unknown(s) => write!(f, "symbol {s} has no value yet"),
            ExprError::Divisor(d) => write!(f, "division by {d}, which is below 1"),
            ExprError::Broadcast(a, b) => write!(f, "cannot broadcast {a} with {b}"),
        }
    }
}

fn narrow(v: i128) -> Result<i64, ExprError> {
    i64::try_from(v).map_err(|_| ExprError::Overflow)
}

impl Expr {
    /// The value for these symbol values; every intermediate value must fit in an i64.
    pub fn eval(&self, syms: &[Option<i64>]) -> Result<i64, ExprError> {
        match self {
            Expr::Const(c) => Ok(*c),
            Expr::Sym(s) => syms.get(*s as usize).copied().flatten().ok_or(ExprError::Unknown(*s)),
            Expr::Add(terms) => {
                let mut sum = 0i128;
                for t in terms {
                    sum = sum.checked_add(t.eval(syms)?.into()).ok_or(ExprError::Overflow)?;
                }
                narrow(sum)
            }
            Expr::Mul(factors) => {
                let mut product = 1i128;
                for f in factors {
                    product = product.checked_mul(f.eval(syms)?.into()).ok_or(ExprError::Overflow)?;
                }
                narrow(product)
            }
            Expr::FloorDiv(a, b) => {
                let (a, b) = (a.eval(syms)?, b.eval(syms)?);
                if b < 1 { Err(ExprError::Divisor(b)) } else { Ok(a.div_euclid(b)) }
            }
            Expr::Min(a, b) => Ok(a.eval(syms)?.min(b.eval(syms)?)),
            Expr::Max(a, b) => Ok(a.eval(syms)?.max(b.eval(syms)?)),
            Expr::Bcast(a, b) => match (a.eval(syms)?, b.eval(syms)?) {
                (a, b) if a == b || b == 1 => Ok(a),
                (1, b) => Ok(b),
                (a, b) => Err(ExprError::Broadcast(a, b)),
            },
        }
    }

    /// The formula as text, with symbols by name (`s3` where the table has none).
    pub fn show(&self, names: &[&str]) -> String {
        let mut out = String::new();
        self.write(names, &mut out);
        out
    }

    fn write(&self, names: &[&str], out: &mut String) {
        // Writing to a String cannot fail.
        let _ = match self {
            Expr::Const(c) => write!(out, "{c}"),
            Expr::Sym(s) => match names.get(*s as usize) {
                Some(name) => write!(out, "{name}"),
                None => write!(out, "s{s}"),
            },
            Expr::Add(v) => return list(v, " + ", "0", names, out),
            Expr::Mul(v) => return list(v, "*", "1", names, out),
            Expr::FloorDiv(a, b) => write!(out, "floordiv({}, {})", a.show(names), b.show(names)),
            Expr::Min(a, b) => write!(out, "min({}, {})", a.show(names), b.show(names)),
            Expr::Max(a, b) => write!(out, "max({}, {})", a.show(names), b.show(names)),
            Expr::Bcast(a, b) => write!(out, "bcast({}, {})", a.show(names), b.show(names)),
        };
    }

    /// Calls `f` on every symbol slot used.
    pub(crate) fn each_sym(&self, f: &mut dyn FnMut(u32)) {
        match self {
            Expr::Const(_) => {}
            Expr::Sym(s) => f(*s),
            Expr::Add(v) | Expr::Mul(v) => v.iter().for_each(|e| e.each_sym(f)),
            Expr::FloorDiv(a, b) | Expr::Min(a, b) | Expr::Max(a, b) | Expr::Bcast(a, b) => {
                a.each_sym(f);
                b.each_sym(f);
            }
        }
    }
}

fn list(v: &[Expr], sep: &str, empty: &str, names: &[&str], out: &mut String) {
    if v.is_empty() {
        out.push_str(empty);
    }
    for (i, e) in v.iter().enumerate() {
        if i > 0 {
            out.push_str(sep);
        }
        let nested = matches!(e, Expr::Add(_));
        if nested {
            out.push('(');
        }
        e.write(names, out);
        if nested {
            out.push(')');
        }
    }
}

impl Pred {
    /// Whether the predicate holds; conjunctions and disjunctions stop at the first part that decides them.
    pub fn eval(&self, syms: &[Option<i64>]) -> Result<bool, ExprError> {
        Ok(match self {
            Pred::True => true,
            Pred::False => false,
            Pred::Eq(a, b) => a.eval(syms)? == b.eval(syms)?,
            Pred::Le(a, b) => a.eval(syms)? <= b.eval(syms)?,
            Pred::Broadcastable(a, b) => {
                let (a, b) = (a.eval(syms)?, b.eval(syms)?);
                a == b || a == 1 || b == 1
            }
            Pred::And(v) => {
                for p in v {
                    if !p.eval(syms)? {
                        return Ok(false);
                    }
                }
                true
            }
            Pred::Or(v) => {
                for p in v {
                    if p.eval(syms)? {
                        return Ok(true);
                    }
                }
                false
            }
            Pred::Not(p) => !p.eval(syms)?,
        })
    }

    /// The predicate as text, with symbols by name.
    pub fn show(&self, names: &[&str]) -> String {
        let join = |v: &[Pred], sep: &str| v.iter().map(|p| p.show(names)).collect::<Vec<_>>().join(sep);
        match self {
            Pred::True => "true".into(),
            Pred::False => "false".into(),
            Pred::Eq(a, b) => format!("{} == {}", a.show(names), b.show(names)),
            Pred::Le(a, b) => format!("{} <= {}", a.show(names), b.show(names)),
            Pred::Broadcastable(a, b) => format!("broadcastable({}, {})", a.show(names), b.show(names)),
            Pred::And(v) => format!("({})", join(v, " and ")),
            Pred::Or(v) => format!("({})", join(v, " or ")),
            Pred::Not(p) => format!("not ({})", p.show(names)),
        }
    }

    /// Calls `f` on every symbol slot used.
    pub(crate) fn each_sym(&self, f: &mut dyn FnMut(u32)) {
        match self {
            Pred::True | Pred::False => {}
            Pred::Eq(a, b) | Pred::Le(a, b) | Pred::Broadcastable(a, b) => {
                a.each_sym(f);
                b.each_sym(f);
            }
            Pred::And(v) | Pred::Or(v) => v.iter().for_each(|p| p.each_sym(f)),
            Pred::Not(p) => p.each_sym(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn b(e: Expr) -> Box<Expr> {
        Box::new(e)
    }

    #[test]
    fn values() {
        let syms = [Some(7), None, Some(i64::MAX)];
        let s = |i| Expr::Sym(i);
        assert_eq!(Expr::FloorDiv(b(Expr::Const(-7)), b(Expr::Const(2))).eval(&syms), Ok(-4));
        assert_eq!(Expr::Add(vec![s(0), Expr::Const(3)]).eval(&syms), Ok(10));
        assert_eq!(Expr::Mul(vec![s(0), s(1)]).eval(&syms), Err(ExprError::Unknown(1)));
        assert_eq!(Expr::Mul(vec![s(2), Expr::Const(2)]).eval(&syms), Err(ExprError::Overflow));
        assert_eq!(Expr::Add(vec![s(2), Expr::Const(1)]).eval(&syms), Err(ExprError::Overflow));
        assert_eq!(Expr::Mul(vec![s(2), s(2), s(2), s(2)]).eval(&syms), Err(ExprError::Overflow));
        assert_eq!(Expr::FloorDiv(b(s(0)), b(Expr::Const(0))).eval(&syms), Err(ExprError::Divisor(0)));
        assert_eq!(Expr::Bcast(b(s(0)), b(Expr::Const(1))).eval(&syms), Ok(7));
        assert_eq!(Expr::Bcast(b(Expr::Const(1)), b(s(0))).eval(&syms), Ok(7));
        assert_eq!(Expr::Bcast(b(s(0)), b(Expr::Const(2))).eval(&syms), Err(ExprError::Broadcast(7, 2)));
        assert_eq!(Expr::Sym(9).eval(&syms), Err(ExprError::Unknown(9)));
    }

    #[test]
    fn predicates_stop_when_decided() {
        let unknown = Pred::Eq(Expr::Sym(0), Expr::Const(1));
        assert_eq!(Pred::Or(vec![Pred::True, unknown.clone()]).eval(&[None]), Ok(true));
        assert_eq!(Pred::And(vec![Pred::False, unknown.clone()]).eval(&[None]), Ok(false));
        assert_eq!(Pred::And(vec![Pred::True, unknown]).eval(&[None]), Err(ExprError::Unknown(0)));
    }

    #[test]
    fn text_uses_names() {
        let e = Expr::Mul(vec![Expr::Add(vec![Expr::Sym(0), Expr::Const(1)]), Expr::Sym(1)]);
        assert_eq!(e.show(&["batch"]), "(batch + 1)*s1");
        let p = Pred::Not(Box::new(Pred::Le(e, Expr::Const(4))));
        assert_eq!(p.show(&["batch", "n"]), "not ((batch + 1)*n <= 4)");
    }
}
