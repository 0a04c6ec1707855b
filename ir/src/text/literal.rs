//! Literals: scalars, dense lists and attribute values, read and written.

use super::cursor::{Cursor, RANK};
use super::lexer::Token;
use crate::diag::{Diag, Loc, Span};
use crate::ops::Attr;
use crate::scalar::Scalar;
use crate::tensor::Tensor;
use crate::types::{DType, Dim, Type};
use std::fmt::Write;

/// An element as written; its meaning depends on a type that may come later.
#[derive(Clone, Copy)]
pub(crate) struct Raw<'t> {
    minus: bool,
    token: Token<'t>,
    span: Span,
}

/// Elements in order with the lengths of the lists around them, outermost first; none for a bare element.
pub(crate) struct Dense<'t> {
    elems: Vec<Raw<'t>>,
    shape: Vec<usize>,
}

impl<'t> Cursor<'t> {
    /// A scalar of type `dtype`: `-1.5`, `inf`, `nan`, `true`, `7`, or raw bits `0x3f` for types without arithmetic.
    pub fn scalar(&mut self, dtype: DType) -> Result<Scalar, Diag> {
        self.raw()?.typed(dtype)
    }

    fn raw(&mut self) -> Result<Raw<'t>, Diag> {
        let start = self.span();
        let minus = self.eat('-');
        let token = self.peek();
        match token {
            Token::Number(_) | Token::Ident("inf" | "nan") => {}
            Token::Ident("true" | "false") if !minus => {}
            _ => return Err(self.wanted("a number, `inf`, `nan`, `true` or `false`")),
        }
        self.next();
        Ok(Raw { minus, token, span: self.span_since(start) })
    }

    pub(crate) fn dense(&mut self) -> Result<Dense<'t>, Diag> {
        let mut d = Dense { elems: Vec::new(), shape: Vec::new() };
        if self.eat('[') {
            d.shape = self.dense_list(&mut d.elems)?;
        } else {
            d.elems.push(self.raw()?);
        }
        Ok(d)
    }

    fn dense_list(&mut self, elems: &mut Vec<Raw<'t>>) -> Result<Vec<usize>, Diag> {
        self.nested(|c| {
            let (mut n, mut inner): (usize, Option<Vec<usize>>) = (0, None);
            while !c.eat(']') {
                let here = if c.eat('[') {
                    c.dense_list(elems)?
                } else {
                    elems.push(c.raw()?);
                    Vec::new()
                };
                if inner.as_ref().is_some_and(|i| *i != here) {
                    return Err(c.fail("E-TXT-010", "the inner lists of a dense value must have one length"));
                }
                inner = Some(here);
                n += 1;
                if !c.eat(',') {
                    c.expect(']')?;
                    break;
                }
            }
            let mut shape = vec![n];
            shape.extend(inner.unwrap_or_default());
            Ok(shape)
        })
    }

    /// `dense<...>` with the word already taken, as elements.
    pub(crate) fn dense_body(&mut self) -> Result<Dense<'t>, Diag> {
        self.expect('<')?;
        let d = self.dense()?;
        self.expect('>')?;
        Ok(d)
    }

    /// A value of an attribute.
    pub(crate) fn attr(&mut self) -> Result<Attr, Diag> {
        match self.peek() {
            Token::Str(_) => Ok(Attr::Str(self.string("a string")?)),
            Token::Punct('(') => self.attr_dims(),
            Token::Punct('[') => {
                self.next();
                Ok(Attr::Ints(self.list(']', |c| c.int("a 64-bit integer"))?))
            }
            Token::Ident("dense") => {
                self.next();
                let start = self.span();
                let d = self.dense_body()?;
                self.expect(':')?;
                let ty = self.ty()?;
                Ok(Attr::Tensor(d.tensor(&ty, self.span_since(start))?))
            }
            Token::Ident("true" | "false" | "inf" | "nan") | Token::Number(_) | Token::Punct('-') => {
                self.attr_number()
            }
            Token::Ident(s) if s.parse::<DType>().is_ok() => Ok(Attr::DType(self.dtype()?)),
            _ => {
                Err(self.wanted("a value (3, 0.5, true, \"text\", f32, [1, 2], (n + 1), (n, 4), 1.5 : f32)"))
            }
        }
    }

    fn attr_number(&mut self) -> Result<Attr, Diag> {
        let raw = self.raw()?;
        if self.eat(':') {
            let dtype = self.dtype()?;
            return Ok(Attr::Scalar(raw.typed(dtype)?));
        }
        match raw.token {
            Token::Ident(s @ ("true" | "false")) => Ok(Attr::Bool(s == "true")),
            Token::Number(s) if s.bytes().all(|b| b.is_ascii_digit()) => {
                let v = raw.typed(DType::I64)?;
                Ok(Attr::Int(v.bits as i64))
            }
            _ => Ok(Attr::Float(raw.typed(DType::F64)?.as_f64())),
        }
    }

    fn attr_dims(&mut self) -> Result<Attr, Diag> {
        self.expect('(')?;
        let mut dims = Vec::new();
        while !self.eat(')') {
            dims.push(self.dim()?);
            if self.eat(')') {
                return Ok(match dims.len() {
                    1 => Attr::Dim(dims.swap_remove(0)),
                    _ => Attr::Dims(dims),
                });
            }
            self.expect(',').map_err(|_| self.wanted("`,` or `)`"))?;
        }
        Ok(Attr::Dims(dims))
    }
}

impl Raw<'_> {
    fn typed(self, dtype: DType) -> Result<Scalar, Diag> {
        let at = Loc::at(self.span);
        let bad = |why: String| Err(Diag::error("E-TXT-010", format!("{} {why}", self.token)).at(&at));
        match self.token {
            Token::Ident(w @ ("true" | "false")) if dtype == DType::Bool => Ok(Scalar::bool(w == "true")),
            Token::Ident(w @ ("inf" | "nan")) if dtype.is_float() => {
                let v = if w == "inf" { f64::INFINITY } else { f64::NAN };
                Ok(Scalar::from_f64(dtype, if self.minus { -v } else { v }))
            }
            Token::Number(s) if s.starts_with("0x") => match u64::from_str_radix(&s[2..], 16) {
                Ok(bits)
                    if !dtype.is_float()
                        && dtype.is_storage_only()
                        && dtype.bits() < 64
                        && bits >> dtype.bits() == 0 =>
                {
                    Ok(Scalar { dtype, bits })
                }
                _ => bad(format!(
                    "are not the raw bits of a type without arithmetic that {dtype} would have to be"
                )),
            },
            Token::Number(s) if dtype.is_float() => {
                let text = if self.minus { format!("-{s}") } else { s.to_string() };
                let v = match dtype {
                    // straight to f32, since by way of f64 it would be rounded twice
                    DType::F32 => text.parse::<f32>().ok().map(|v| Scalar::from_f64(dtype, f64::from(v))),
                    _ => text.parse::<f64>().ok().map(|v| Scalar::from_f64(dtype, v)),
                };
                match v {
                    Some(v) if v.as_f64().is_finite() => Ok(v),
                    _ => bad(format!("is too large for {dtype}; write `inf` if that is meant")),
                }
            }
            Token::Number(s) => {
                let v = s.parse::<i128>().ok().map(|v| if self.minus { -v } else { v });
                match (v, int_range(dtype)) {
                    (Some(v), Some((lo, hi))) if (lo..=hi).contains(&v) => Ok(Scalar::from_int(dtype, v)),
                    (_, Some((lo, hi))) => bad(format!("is not one of {dtype} (whole numbers {lo} to {hi})")),
                    (_, None) => bad(format!("is not one of {dtype}")),
                }
            }
            _ => bad(format!("is not one of {dtype}")),
        }
    }
}

fn int_range(dtype: DType) -> Option<(i128, i128)> {
    let signed = dtype.is_signed() || matches!(dtype, DType::I4 | DType::I2);
    let unsigned = dtype.is_unsigned() || matches!(dtype, DType::U4 | DType::U2);
    match (signed, unsigned) {
        (true, _) => Some((-(1 << (dtype.bits() - 1)), (1 << (dtype.bits() - 1)) - 1)),
        (_, true) => Some((0, (1 << dtype.bits()) - 1)),
        _ => None,
    }
}

impl Dense<'_> {
    /// The tensor, if the elements fit `ty` (nested as its shape, or one flat list).
    pub(crate) fn tensor(&self, ty: &Type, at: Span) -> Result<Tensor, Diag> {
        let fail = |m: String| Diag::error("E-TXT-010", m).at(&Loc::at(at));
        let fixed = ty.as_fixed().filter(|s| s.len() <= RANK);
        let shape = fixed.ok_or_else(|| {
            fail(format!("a value with listed elements needs a type with fixed dims, not {ty}"))
        })?;
        let n = shape.iter().try_fold(1usize, |a, &d| a.checked_mul(d));
        let flat = self.shape.len() == 1 && !shape.is_empty();
        let fits = n == Some(self.elems.len()) && (self.elems.is_empty() || flat || self.shape == shape);
        if !fits {
            let have = self.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            return Err(fail(format!("{} elements listed as [{have}] do not fit {ty}", self.elems.len())));
        }
        let elems: Vec<Scalar> = self.elems.iter().map(|e| e.typed(ty.dtype)).collect::<Result<_, _>>()?;
        Ok(Tensor::from_scalars(ty.dtype, &shape, elems))
    }

    /// The only element, as a scalar.
    pub(crate) fn single(&self, dtype: DType, at: Span) -> Result<Scalar, Diag> {
        match (&self.elems[..], &self.shape[..]) {
            ([e], []) => e.typed(dtype),
            _ => Err(Diag::error("E-TXT-010", "one element without brackets is wanted").at(&Loc::at(at))),
        }
    }
}

/// Elements as [`Cursor::dense`] reads them: nested by shape from rank 2 on.
pub(crate) fn print_dense(out: &mut String, t: &Tensor) {
    if t.shape.is_empty() {
        let _ = write!(out, "{}", t.get(0));
        return;
    }
    let n = t.numel();
    if n == 0 {
        out.push_str("[]");
        return;
    }
    for i in 0..n {
        if i > 0 {
            out.push_str(", ");
        }
        // a bracket opens (closes) at each axis whose inner block begins (ends) here
        let mut block = 1;
        let blocks: Vec<usize> = t
            .shape
            .iter()
            .rev()
            .map(|d| {
                block *= d;
                block
            })
            .collect();
        blocks.iter().filter(|b| i % **b == 0).for_each(|_| out.push('['));
        let _ = write!(out, "{}", t.get(i));
        blocks.iter().filter(|b| (i + 1) % **b == 0).for_each(|_| out.push(']'));
    }
}

/// A value as [`Cursor::attr`] reads it.
pub(crate) fn print_attr(out: &mut String, a: &Attr) {
    let list = |out: &mut String, dims: &[Dim]| {
        out.push('(');
        for (i, d) in dims.iter().enumerate() {
            let _ = write!(out, "{}{d}", if i > 0 { ", " } else { "" });
        }
        out.push_str(if dims.len() == 1 { ",)" } else { ")" });
    };
    let _ = match a {
        Attr::Int(v) => write!(out, "{v}"),
        Attr::Float(v) => write!(out, "{}", Scalar::from_f64(DType::F64, *v)),
        Attr::Bool(v) => write!(out, "{v}"),
        Attr::Str(s) => write!(out, "{s:?}"),
        Attr::DType(d) => write!(out, "{d}"),
        Attr::Ints(v) => write!(out, "{v:?}"),
        Attr::Dim(d) if d.as_const().is_some() => write!(out, "{d}"),
        Attr::Dim(d) => write!(out, "({d})"),
        Attr::Dims(v) => {
            list(out, v);
            Ok(())
        }
        Attr::Scalar(s) => write!(out, "{s} : {}", s.dtype),
        Attr::Tensor(t) => {
            out.push_str("dense<");
            print_dense(out, t);
            write!(out, "> : {}", t.ty())
        }
    };
}
