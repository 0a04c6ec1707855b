//! Sizes as values: a dim becomes a chain of Shape and integer arithmetic from the inputs, each expression once a graph.
//! Every such value is `i64[1]`.

use super::build::{Cx, Source, Val, int};
use std::sync::Arc;
use tgc_ir::diag::Diag;
use tgc_ir::types::{Atom, DType, Dim, Pred};

/// Symbols are defined by one another so often at most.
const DEPTH: usize = 64;

impl Cx<'_> {
    /// The size as `i64[1]`.
    pub(super) fn size(&mut self, d: &Dim) -> Result<Val, Diag> {
        self.size_at(d, 0)
    }

    /// The size as `i64[]`.
    pub(super) fn size_scalar(&mut self, d: &Dim) -> Result<Val, Diag> {
        if let Some(c) = d.as_const() {
            return Ok(self.scalar(tgc_ir::scalar::Scalar::from_int(DType::I64, i128::from(c))));
        }
        let v = self.size(d)?;
        let axes = self.ints(&[0], "axes");
        Ok(self.node("Squeeze", &[&v, &axes], Vec::new(), DType::I64))
    }

    /// Sizes as a vector: a constant where all are numbers.
    pub(super) fn size_vector(&mut self, dims: &[Dim], hint: &str) -> Result<Val, Diag> {
        let numbers: Option<Vec<i64>> = dims.iter().map(Dim::as_const).collect();
        if let Some(v) = numbers {
            return Ok(self.ints(&v, hint));
        }
        let (mut parts, mut run) = (Vec::new(), Vec::new());
        for d in dims {
            match d.as_const() {
                Some(c) => run.push(c),
                None => {
                    if !run.is_empty() {
                        parts.push(self.ints(&std::mem::take(&mut run), hint));
                    }
                    parts.push(self.size(d)?);
                }
            }
        }
        if !run.is_empty() {
            parts.push(self.ints(&run, hint));
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        Ok(self.node("Concat", &parts.iter().collect::<Vec<_>>(), vec![int("axis", 0)], DType::I64))
    }

    /// `p` as `bool[]`.
    pub(super) fn condition(&mut self, p: &Pred) -> Result<Val, Diag> {
        let v = self.condition_1(p)?;
        let axes = self.ints(&[0], "axes");
        Ok(self.node("Squeeze", &[&v, &axes], Vec::new(), DType::Bool))
    }

    fn condition_1(&mut self, p: &Pred) -> Result<Val, Diag> {
        let truth = |cx: &mut Self, v: bool| {
            let t = tgc_ir::tensor::Tensor::from_ints(DType::Bool, &[1], &[i64::from(v)]);
            cx.constant(&t, "constant")
        };
        Ok(match p {
            Pred::True => truth(self, true),
            Pred::Eq(a, b) => self.compare("Equal", a, b)?,
            Pred::Le(a, b) => self.compare("LessOrEqual", a, b)?,
            Pred::Not(p) => {
                let v = self.condition_1(p)?;
                self.node("Not", &[&v], Vec::new(), DType::Bool)
            }
            Pred::And(ps) => self.joined("And", ps, true, truth)?,
            Pred::Or(ps) => self.joined("Or", ps, false, truth)?,
            Pred::Broadcastable(a, b) => {
                let one = Dim::from(1);
                let any = [(a, b), (a, &one), (b, &one)].map(|(x, y)| Pred::Eq(x.clone(), y.clone()));
                self.joined("Or", &any, false, truth)?
            }
        })
    }

    fn joined(
        &mut self,
        op: &str,
        ps: &[Pred],
        none: bool,
        truth: impl Fn(&mut Self, bool) -> Val,
    ) -> Result<Val, Diag> {
        let mut all: Option<Val> = None;
        for p in ps {
            let v = self.condition_1(p)?;
            all = Some(match all {
                None => v,
                Some(a) => self.node(op, &[&a, &v], Vec::new(), DType::Bool),
            });
        }
        Ok(all.unwrap_or_else(|| truth(self, none)))
    }

    fn compare(&mut self, op: &str, a: &Dim, b: &Dim) -> Result<Val, Diag> {
        let (a, b) = (self.size(a)?, self.size(b)?);
        Ok(self.node(op, &[&a, &b], Vec::new(), DType::Bool))
    }

    fn size_at(&mut self, d: &Dim, depth: usize) -> Result<Val, Diag> {
        if let Some(c) = d.as_const() {
            return Ok(self.ints(&[c], "size"));
        }
        if let Some(v) = self.sizes.get(d) {
            return Ok(v.clone());
        }
        if depth > DEPTH {
            return Err(self.fail("E-EXP-003", format!("the size `{d}` is nested too deeply")));
        }
        // chains of sizes belong to no node
        let stem = std::mem::take(&mut self.stem);
        let v = match d.as_sym() {
            Some(s) => self.symbol(s, depth),
            None => self.sum(d, depth),
        };
        self.stem = stem;
        let v = v?;
        self.sizes.insert(d.clone(), v.clone());
        Ok(v)
    }

    fn arith(&mut self, op: &str, a: &Val, b: &Val) -> Val {
        self.node(op, &[a, b], Vec::new(), DType::I64)
    }

    fn sum(&mut self, d: &Dim, depth: usize) -> Result<Val, Diag> {
        let mut terms = Vec::new();
        for (coeff, atoms) in d.terms() {
            let mut product: Option<Val> = None;
            for a in atoms {
                let v = self.atom(a, depth)?;
                product = Some(match product {
                    None => v,
                    Some(p) => self.arith("Mul", &p, &v),
                });
            }
            terms.push((coeff, product));
        }
        // what is subtracted comes after something to subtract it from
        terms.sort_by_key(|(c, _)| *c < 0);
        let mut total = match terms.first() {
            Some((c, _)) if *c > 0 => None,
            _ => Some(self.number(d.constant(), d)?),
        };
        let constant_used = total.is_some();
        for (coeff, product) in terms {
            let size = self.number(coeff.abs(), d)?;
            let term = match product {
                None => size,
                Some(p) if coeff.abs() == 1 => p,
                Some(p) => self.arith("Mul", &p, &size),
            };
            total = Some(match total {
                None => term,
                Some(t) => self.arith(if coeff < 0 { "Sub" } else { "Add" }, &t, &term),
            });
        }
        let total = match total {
            Some(t) => t,
            None => self.number(0, d)?,
        };
        if constant_used || d.constant() == 0 {
            return Ok(total);
        }
        let c = self.number(d.constant().abs(), d)?;
        Ok(self.arith(if d.constant() < 0 { "Sub" } else { "Add" }, &total, &c))
    }

    fn number(&mut self, c: i128, d: &Dim) -> Result<Val, Diag> {
        match i64::try_from(c) {
            Ok(c) => Ok(self.ints(&[c], "size")),
            Err(_) => Err(self.fail("E-EXP-003", format!("a number in the size `{d}` is beyond 64 bits"))),
        }
    }

    fn atom(&mut self, a: &Atom, depth: usize) -> Result<Val, Diag> {
        let depth = depth + 1;
        Ok(match a {
            Atom::Sym(s) => self.size_at(&Dim::sym(s), depth)?,
            Atom::Label(_) | Atom::Val(_) => {
                return Err(self.fail("E-EXP-003", format!("`{a}` is not a size")));
            }
            Atom::FloorDiv(x, y) => {
                let negative = self.symbols.range(x).0 < 0;
                let (n, m) = (self.size_at(x, depth)?, self.size_at(y, depth)?);
                // Div truncates; Mod has the sign of the divisor, so this division is exact
                let n = if negative {
                    let rest = self.arith("Mod", &n, &m);
                    self.arith("Sub", &n, &rest)
                } else {
                    n
                };
                self.arith("Div", &n, &m)
            }
            Atom::Min(x, y) | Atom::Max(x, y) => {
                let (n, m) = (self.size_at(x, depth)?, self.size_at(y, depth)?);
                self.arith(if matches!(a, Atom::Min(..)) { "Min" } else { "Max" }, &n, &m)
            }
            Atom::Bcast(x, y) => {
                let (n, m) = (self.size_at(x, depth)?, self.size_at(y, depth)?);
                let one = self.ints(&[1], "size");
                let unit = self.node("Equal", &[&n, &one], Vec::new(), DType::Bool);
                self.node("Where", &[&unit, &m, &n], Vec::new(), DType::I64)
            }
        })
    }

    /// A symbol, read from an input's axis that it is, or solved from one where it is part of the size.
    fn symbol(&mut self, s: &Arc<str>, depth: usize) -> Result<Val, Diag> {
        if let Some(info) = self.symbols.get(s).filter(|i| i.lo == i.hi) {
            let size = info.lo;
            return Ok(self.ints(&[size], "size"));
        }
        let own = Dim::sym(s);
        if let Some(i) = self.sources.iter().position(|x| x.size == own) {
            return Ok(self.axis(i));
        }
        let unknown = Dim::label(0);
        for i in 0..self.sources.len() {
            let is_own = |a: &Atom| matches!(a, Atom::Sym(n) if n == s);
            let size = self.sources[i].size.subst(&|a| is_own(a).then(|| unknown.clone()));
            let Some((factor, rest)) = size.affine(0) else { continue };
            let Some(factor) = factor.as_const().filter(|f| *f != 0) else { continue };
            let all = self.axis(i);
            let rest = self.size_at(&rest, depth + 1)?;
            let part = self.arith("Sub", &all, &rest);
            let factor = self.ints(&[factor], "size");
            return Ok(self.arith("Div", &part, &factor));
        }
        let m = format!("the size `{s}` is not that of an input's axis, nor can it be solved from one");
        Err(self.fail("E-EXP-003", m).help(format!("fix it with --dim {s}=...")))
    }

    fn axis(&mut self, source: usize) -> Val {
        let Source { input, axis, .. } = &self.sources[source];
        let (input, axis) = (input.clone(), *axis as i64);
        if self.opset >= 15 {
            let part = vec![int("start", axis), int("end", axis + 1)];
            return self.node("Shape", &[&input], part, DType::I64);
        }
        let shape = self.node("Shape", &[&input], Vec::new(), DType::I64);
        let at = self.ints(&[axis], "axes");
        self.node("Gather", &[&shape, &at], vec![int("axis", 0)], DType::I64)
    }
}
