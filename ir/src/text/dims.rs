//! Reading of symbolic integers and of conditions over them, with bounds on their size.

use super::cursor::{Cursor, RANK};
use super::lexer::Token;
use crate::diag::Diag;
use crate::types::{Dim, Pred};

/// Most terms of one dim in text, and of the product of a type's dims before like terms are merged.
const TERMS: usize = 256;

/// Most atoms in one dim, inner ones too.
const ATOMS: usize = 1024;

/// Greatest coefficient or constant a dim in text may come to.
const COEFFICIENT: u128 = 1 << 80;

impl<'t> Cursor<'t> {
    /// A dim: sums, differences and products of numbers, symbols, `#label`, `$value`, `floordiv(a, b)`, `min(a, b)`,
    /// `max(a, b)`, `bcast(a, b)` and parentheses.
    pub fn dim(&mut self) -> Result<Dim, Diag> {
        self.nested(|c| {
            let mut sum = if c.eat('-') { -c.product()? } else { c.product()? };
            loop {
                sum = match c.peek() {
                    Token::Punct('+') => {
                        c.next();
                        sum + c.product()?
                    }
                    Token::Punct('-') => {
                        c.next();
                        sum - c.product()?
                    }
                    _ => return Ok(sum),
                };
                c.bounded(&sum)?;
            }
        })
    }

    fn product(&mut self) -> Result<Dim, Diag> {
        let mut p = self.factor()?;
        while self.eat('*') {
            let f = self.factor()?;
            if terms(&p).saturating_mul(terms(&f)) > 4 * TERMS {
                return Err(self.too_large());
            }
            p = p * f;
            self.bounded(&p)?;
        }
        Ok(p)
    }

    fn factor(&mut self) -> Result<Dim, Diag> {
        match self.peek() {
            Token::Number(_) => Ok(Dim::from(self.int::<i64>("a 64-bit integer")?)),
            Token::Str(_) => Ok(Dim::sym(&self.string("a symbol")?)),
            Token::Punct('#') => {
                self.next();
                Ok(Dim::label(self.int("a label number")?))
            }
            Token::Punct('$') => {
                self.next();
                Ok(Dim::val(self.int("a value number")?))
            }
            Token::Punct('(') => {
                self.next();
                let d = self.dim()?;
                self.expect(')')?;
                Ok(d)
            }
            Token::Ident(name) => {
                self.next();
                match name {
                    "floordiv" => {
                        let start = self.span();
                        let (a, d) = self.two()?;
                        if d.as_const().is_some_and(|c| c < 1) {
                            let at = crate::diag::Loc::at(self.span_since(start));
                            return Err(Diag::error(
                                "E-TXT-010",
                                format!("division by {d}; a divisor is at least 1"),
                            )
                            .at(&at));
                        }
                        Ok(a.floordiv(&d))
                    }
                    "min" => self.two().map(|(a, b)| a.dmin(&b)),
                    "max" => self.two().map(|(a, b)| a.dmax(&b)),
                    "bcast" => self.two().map(|(a, b)| a.bcast(&b)),
                    name => Ok(Dim::sym(name)),
                }
            }
            _ => Err(self.wanted("a dim (a number, a symbol, floordiv, min, max or bcast)")),
        }
    }

    fn two(&mut self) -> Result<(Dim, Dim), Diag> {
        self.expect('(')?;
        let a = self.dim()?;
        self.expect(',')?;
        let b = self.dim()?;
        self.expect(')')?;
        Ok((a, b))
    }

    fn bounded(&self, d: &Dim) -> Result<(), Diag> {
        let number = |v: i128| v.unsigned_abs() <= COEFFICIENT;
        if terms(d) <= TERMS
            && number(d.constant())
            && d.terms().all(|(c, a)| number(c) && a.len() <= 16)
            && small(d)
        {
            Ok(())
        } else {
            Err(self.too_large())
        }
    }

    fn too_large(&self) -> Diag {
        self.fail("E-TXT-003", format!("this dim is too large (allowed: {TERMS} terms of 16 factors)"))
    }

    /// A condition: `true`, `eq(a, b)`, `le(a, b)`, `broadcastable(a, b)`, `and(...)`, `or(...)`, `not(p)`.
    pub fn pred(&mut self) -> Result<Pred, Diag> {
        self.nested(|c| {
            let start = c.position();
            let what = "a condition (true, eq, le, broadcastable, and, or, not)";
            Ok(match c.ident(what)? {
                "true" => Pred::True,
                "eq" => c.two().map(|(a, b)| Pred::Eq(a, b))?,
                "le" => c.two().map(|(a, b)| Pred::Le(a, b))?,
                "broadcastable" => c.two().map(|(a, b)| Pred::Broadcastable(a, b))?,
                "and" => {
                    c.expect('(')?;
                    Pred::And(c.list(')', Cursor::pred)?)
                }
                "or" => {
                    c.expect('(')?;
                    Pred::Or(c.list(')', Cursor::pred)?)
                }
                "not" => {
                    c.expect('(')?;
                    let p = c.pred()?;
                    c.expect(')')?;
                    Pred::Not(Box::new(p))
                }
                _ => {
                    c.back_to(start);
                    return Err(c.wanted(what));
                }
            })
        })
    }
}

/// Terms of a dim, its constant among them.
fn terms(d: &Dim) -> usize {
    d.terms().count() + usize::from(d.constant() != 0)
}

/// False for a dim with so many atoms that working with it could take long.
pub(crate) fn small(d: &Dim) -> bool {
    let mut n = 0usize;
    d.leaves(&mut |_| n += 1);
    n <= ATOMS
}

/// Refuses a shape with too many axes, or whose number of elements would be a formula of too many terms.
pub(crate) fn check_product(shape: &[Dim]) -> Result<(), String> {
    if shape.len() > RANK {
        return Err(format!("{} axes; at most {RANK} are allowed", shape.len()));
    }
    let product =
        shape.iter().try_fold(1usize, |p, d| p.checked_mul(terms(d).max(1)).filter(|p| *p <= 16 * TERMS));
    let atoms = shape.iter().all(small);
    if product.is_some() && atoms {
        Ok(())
    } else {
        Err("the number of elements is too long a formula".into())
    }
}
