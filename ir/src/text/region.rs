//! Reading of what stands between braces: statements, regions and `return`. A fault in one statement does not hide
//! faults in the others; what depends on a faulty statement is not reported again.

use super::cursor::Cursor;
use super::lexer::Token;
use super::literal::Dense;
use super::near::near;
use crate::diag::{Diag, Loc, Span};
use crate::graph::{Graph, Value};
use crate::ops::{Attr, Attrs, Constant, Op, Weight};
use crate::tensor::Tensor;
use crate::types::{Atom, Dim, SymTable, Type};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Why reading something failed: an error, or one that has been reported already.
pub(super) enum Fail {
    New(Box<Diag>),
    Reported,
}

impl From<Diag> for Fail {
    fn from(d: Diag) -> Fail {
        Fail::New(Box::new(d))
    }
}

/// Names, types and states of an entry's results.
pub(super) struct Outputs(pub Vec<(String, Type, Option<String>)>);

/// Values by name; None for results of a faulty statement.
#[derive(Default)]
pub(super) struct Scope<'t>(BTreeMap<&'t str, Option<Value>>);

impl<'t> Scope<'t> {
    pub(super) fn define(&mut self, c: &mut Cursor<'t>, name: &'t str, value: Option<Value>, at: Span) {
        let was = self.0.insert(name, value);
        if was.is_some() && value.is_some() {
            c.report(Diag::error("E-TXT-006", format!("`%{name}` is defined twice")).at(&Loc::at(at)));
        }
    }

    fn get(&self, name: &str, at: Span) -> Result<Value, Fail> {
        match self.0.get(name) {
            Some(Some(v)) => Ok(*v),
            Some(None) => Err(Fail::Reported),
            None => {
                let mut d =
                    Diag::error("E-TXT-006", format!("`%{name}` is not defined (above, and in this region)"));
                let close = near(name, self.0.keys().copied());
                if !close.is_empty() {
                    d = d.help(format!("defined: %{}", close.join(", %")));
                }
                Err(d.at(&Loc::at(at)).into())
            }
        }
    }
}

impl Cursor<'_> {
    pub(super) fn report_fail(&mut self, f: Fail) {
        if let Fail::New(d) = f {
            self.report(*d);
        }
    }
}

/// Symbols must be declared; labels and values mean nothing in a graph.
pub(super) fn check_symbols(dims: &[Dim], symbols: &SymTable, at: Span) -> Result<(), Diag> {
    let mut bad: Option<Atom> = None;
    for d in dims {
        d.leaves(&mut |a| match a {
            Atom::Sym(s) if symbols.get(s).is_some() => {}
            a => bad = bad.take().or(Some(a.clone())),
        });
    }
    match bad {
        None => Ok(()),
        Some(a @ Atom::Sym(_)) => {
            Err(Diag::error("E-TXT-008", format!("symbol `{a}` is not declared")).at(&Loc::at(at)).help(
                format!("inputs declare the symbols of their types; others need a line `dim {a} in 0..100`"),
            ))
        }
        Some(a) => {
            Err(Diag::error("E-TXT-008", format!("`{a}` has a meaning only inside kernels")).at(&Loc::at(at)))
        }
    }
}

/// `loc "place" via "rule, rule"`, both optional.
pub(super) fn place(c: &mut Cursor<'_>) -> Result<Loc, Diag> {
    let mut loc = Loc::default();
    if c.eat_word("loc") {
        loc.place = Arc::from(c.string("the place in quotes")?);
    }
    if c.eat_word("via") {
        let rules = c.string("the rules in quotes")?;
        loc.rules = rules.split(", ").filter(|r| !r.is_empty()).map(Arc::from).collect();
    }
    Ok(loc)
}

/// What stands after a constant's name.
enum Literal<'t> {
    Dense(Dense<'t>, Span),
    Splat(Dense<'t>, Span),
}

/// A statement as written.
struct Statement<'t> {
    results: Vec<(&'t str, Span)>,
    name: &'t str,
    name_at: Span,
    operands: Vec<(&'t str, Span)>,
    attrs: Attrs,
    attrs_at: Span,
    literal: Option<Literal<'t>>,
    weight: Option<String>,
    regions: Vec<Graph>,
    types: Vec<Type>,
    loc: Loc,
}

/// The inside of one pair of braces, being read into a graph.
pub(super) struct Body<'c, 't> {
    pub c: &'c mut Cursor<'t>,
    pub g: &'c mut Graph,
    pub scope: Scope<'t>,
    pub limit: usize,
    pub variant: bool,
}

impl<'t> Body<'_, 't> {
    /// Statements, `return` and the closing brace. Results are named as `outputs` says, or by number.
    pub(super) fn read(mut self, outputs: Option<&Outputs>) -> Result<(), Fail> {
        let mut faulty = false;
        loop {
            if self.c.has_errors(self.limit) {
                return Err(Fail::Reported);
            }
            match self.c.peek() {
                Token::Ident("return") => break,
                Token::Punct('}') | Token::End if faulty => {
                    self.c.eat('}');
                    return Err(Fail::Reported);
                }
                Token::Value(_) | Token::Ident(_) => {
                    let start = self.c.position();
                    if let Err(f) = self.statement() {
                        faulty = true;
                        self.c.report_fail(f);
                        self.c.skip_statement(start);
                    }
                }
                _ => return Err(self.c.wanted("a statement or `return`").into()),
            }
        }
        self.finish(outputs)?;
        if faulty { Err(Fail::Reported) } else { Ok(()) }
    }

    fn finish(&mut self, outputs: Option<&Outputs>) -> Result<(), Fail> {
        let start = self.c.span();
        self.c.expect_word("return")?;
        let mut given = Vec::new();
        while let Token::Value(name) = self.c.peek() {
            given.push((name, self.c.span()));
            self.c.next();
            if !self.c.eat(',') {
                break;
            }
        }
        let at = self.c.span_since(start);
        self.c.expect('}')?;
        if let Some(o) = outputs
            && o.0.len() != given.len()
        {
            let m = format!("{} values returned, the signature has {}", given.len(), o.0.len());
            return Err(Diag::error("E-TXT-007", m).at(&Loc::at(at)).into());
        }
        for (i, (name, at)) in given.into_iter().enumerate() {
            let v = self.scope.get(name, at)?;
            let Some((out, ty, state)) = outputs.and_then(|o| o.0.get(i)) else {
                self.g.output(&format!("y{i}"), v);
                continue;
            };
            let have = self.g.ty(v).cloned();
            // a variant may know its sizes in another form than the general case
            let same = |t: &Type| t == ty || (self.variant && t.dtype == ty.dtype && t.rank() == ty.rank());
            if !have.as_ref().is_some_and(same) {
                let have = have.map_or("nothing".to_string(), |t| t.to_string());
                let m = format!("`%{name}` is {have}, the signature says {ty}");
                return Err(Diag::error("E-TXT-007", m).at(&Loc::at(at)).into());
            }
            match state {
                Some(s) => self.g.output_state(out, s, v),
                None => self.g.output(out, v),
            }
        }
        Ok(())
    }

    fn statement(&mut self) -> Result<(), Fail> {
        let start = self.c.span();
        let mut results = Vec::new();
        while let Token::Value(name) = self.c.peek() {
            results.push((name, self.c.span()));
            self.c.next();
            if !self.c.eat(',') {
                break;
            }
        }
        let done = self.node(&results, start);
        if done.is_err() {
            for (name, at) in results {
                self.scope.define(self.c, name, None, at);
            }
        }
        done
    }

    fn node(&mut self, results: &[(&'t str, Span)], start: Span) -> Result<(), Fail> {
        let mut s = self.written(results)?;
        s.loc.span = Some(self.c.span_since(start));
        let operands: Vec<Value> =
            s.operands.iter().map(|(n, at)| self.scope.get(n, *at)).collect::<Result<_, _>>()?;
        let op = self.op(&mut s)?;
        let regions = std::mem::take(&mut s.regions);
        let id = self.g.add(op, &operands, regions, s.loc.clone())?;
        let have: Vec<Type> =
            self.g.node(id).map_or(Vec::new(), |n| n.results.iter().map(|r| r.ty.clone()).collect());
        if have != s.types {
            let list = |t: &[Type]| t.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let m = format!("`{}` gives {}, the text says {}", s.name, list(&have), list(&s.types));
            self.c.report(Diag::error("E-TXT-007", m).at(&s.loc));
        }
        for t in &have {
            super::dims::check_product(&t.shape).map_err(|m| Diag::error("E-TXT-003", m).at(&s.loc))?;
        }
        let count = have.len().min(results.len());
        for (i, (name, at)) in results.iter().enumerate() {
            let value = (i < count).then_some(Value { node: id, result: i as u32 });
            self.scope.define(self.c, name, value, *at);
        }
        Ok(())
    }

    fn written(&mut self, results: &[(&'t str, Span)]) -> Result<Statement<'t>, Fail> {
        if !results.is_empty() {
            self.c.expect('=')?;
        }
        let name_at = self.c.span();
        let name = self.c.ident("an op")?;
        if name == "input" || Op::spec_of(name).is_none() {
            let mut d = Diag::error("E-TXT-004", format!("there is no op `{name}`")).at(&Loc::at(name_at));
            let close = near(name, Op::all().iter().copied());
            if !close.is_empty() {
                d = d.help(format!("near: {}", close.join(", ")));
            }
            return Err(d.into());
        }
        let (literal, weight) = self.short_form(name)?;
        let operands = self.operands()?;
        let attrs_at = self.c.span();
        let attrs = self.attrs()?;
        let attrs_at = self.c.span_since(attrs_at);
        let mut regions = Vec::new();
        while self.c.peek() == Token::Punct('{') {
            regions.push(self.region()?);
        }
        let mut types = Vec::new();
        if self.c.eat(':') {
            loop {
                let at = self.c.span();
                let t = self.c.ty()?;
                check_symbols(&t.shape, &self.g.symbols, self.c.span_since(at))?;
                types.push(t);
                if !self.c.eat(',') {
                    break;
                }
            }
        } else if !results.is_empty() {
            return Err(self.c.wanted("`:` and the types of the results").into());
        }
        let loc = place(self.c)?;
        if types.len() != results.len() {
            let m = format!("{} names for {} results", results.len(), types.len());
            return Err(Diag::error("E-TXT-007", m).at(&Loc::at(name_at)).into());
        }
        let results = results.to_vec();
        Ok(Statement {
            results,
            name,
            name_at,
            operands,
            attrs,
            attrs_at,
            literal,
            weight,
            regions,
            types,
            loc,
        })
    }

    /// `constant 0.5`, `constant splat 0.5`, `constant [1, 2]` and `weight "name"`.
    fn short_form(&mut self, name: &str) -> Result<(Option<Literal<'t>>, Option<String>), Diag> {
        if self.c.peek() == Token::Punct('{') {
            return Ok((None, None));
        }
        match name {
            "constant" => {
                let splat = self.c.eat_word("splat");
                let at = self.c.span();
                let d = self.c.dense()?;
                let at = self.c.span_since(at);
                Ok((Some(if splat { Literal::Splat(d, at) } else { Literal::Dense(d, at) }), None))
            }
            "weight" => Ok((None, Some(self.c.string("the weight's name in quotes")?))),
            _ => Ok((None, None)),
        }
    }

    fn operands(&mut self) -> Result<Vec<(&'t str, Span)>, Diag> {
        let one = |c: &mut Cursor<'t>| match c.peek() {
            Token::Value(name) => {
                let at = c.span();
                c.next();
                Ok((name, at))
            }
            _ => Err(c.wanted("an operand (`%name`)")),
        };
        if self.c.eat('(') {
            return self.c.list(')', one);
        }
        let mut out = Vec::new();
        if matches!(self.c.peek(), Token::Value(_)) {
            out.push(one(self.c)?);
            while self.c.eat(',') {
                out.push(one(self.c)?);
            }
        }
        Ok(out)
    }

    fn attrs(&mut self) -> Result<Attrs, Diag> {
        let mut attrs = Attrs::new();
        if self.c.peek() != Token::Punct('{') || self.c.peek_at(1) == Token::Punct('^') {
            return Ok(attrs);
        }
        self.c.next();
        self.c.list('}', |c| {
            let at = c.span();
            let name = c.ident("an attribute's name")?;
            c.expect('=')?;
            let value = c.attr()?;
            if attrs.insert(name.to_string(), value).is_some() {
                return Err(
                    Diag::error("E-TXT-009", format!("attribute `{name}` is given twice")).at(&Loc::at(at))
                );
            }
            Ok(())
        })?;
        Ok(attrs)
    }

    fn op(&self, s: &mut Statement<'t>) -> Result<Op, Diag> {
        let only = |s: &Statement<'t>| match &s.types[..] {
            [t] if s.attrs.is_empty() && s.operands.is_empty() && s.results.len() == 1 => Ok(t.clone()),
            _ => Err(Diag::error("E-TXT-007", format!("`{}` has one result and nothing else", s.name))
                .at(&Loc::at(s.name_at))),
        };
        match (&s.literal, &s.weight) {
            (Some(Literal::Dense(d, at)), _) => {
                Ok(Constant { value: d.tensor(&only(s)?, *at)?, shape: None }.into())
            }
            (Some(Literal::Splat(d, at)), _) => {
                let t = only(s)?;
                let v = d.single(t.dtype, *at)?;
                Ok(Constant { value: Tensor::from_scalars(t.dtype, &[], [v]), shape: Some(t.shape) }.into())
            }
            (None, Some(name)) => {
                let t = only(s)?;
                Ok(Weight { name: name.clone(), dtype: t.dtype, shape: t.shape }.into())
            }
            (None, None) => {
                let at = s.attrs_at;
                self.check_attrs(&s.attrs, s.name, at)?;
                let fail =
                    |m: String| Diag::error("E-TXT-005", format!("`{}`: {m}", s.name)).at(&Loc::at(at));
                match Op::from_attrs(s.name, std::mem::take(&mut s.attrs)) {
                    Some(r) => r.map_err(fail),
                    None => Err(fail("no such op".into())),
                }
            }
        }
    }

    fn check_attrs(&self, attrs: &Attrs, op: &str, at: Span) -> Result<(), Diag> {
        for a in attrs.values() {
            let dims = match a {
                Attr::Dim(d) => std::slice::from_ref(d),
                Attr::Dims(v) => v,
                _ => continue,
            };
            check_symbols(dims, &self.g.symbols, at)?;
            // a list of dims as data is not a shape, so it may be long
            if op != "const_dims" {
                super::dims::check_product(dims).map_err(|m| Diag::error("E-TXT-003", m).at(&Loc::at(at)))?;
            }
        }
        Ok(())
    }

    /// `{ ^(%a: f32[4], ...): statements return %b }`
    fn region(&mut self) -> Result<Graph, Fail> {
        let symbols = self.g.symbols.clone();
        let limit = self.limit;
        let mut inner = Graph::region(&symbols);
        // the closure of `nested` can only give a Diag, so a fault reported inside is kept here
        let mut reported = false;
        self.c.nested(|c| {
            c.expect('{')?;
            c.expect('^')?;
            c.expect('(')?;
            let mut scope = Scope::default();
            let inputs = c.list(')', |c| {
                let at = c.span();
                let Token::Value(name) = c.next() else {
                    return Err(
                        Diag::error("E-TXT-001", "an input (`%name: type`) is wanted").at(&Loc::at(at))
                    );
                };
                c.expect(':')?;
                let ty = c.ty()?;
                check_symbols(&ty.shape, &symbols, c.span_since(at))?;
                Ok((name, ty, at))
            })?;
            c.expect(':')?;
            for (name, ty, at) in inputs {
                let kept = if name.starts_with(|c: char| c.is_ascii_digit()) { "" } else { name };
                let v = inner.input(kept, ty, Loc::at(at));
                scope.define(c, name, Some(v), at);
            }
            while c.at_word("guard") {
                let gd = super::parser::guard_line(c, &symbols)?;
                inner.guard(gd);
            }
            match (Body { c, g: &mut inner, scope, limit, variant: false }).read(None) {
                Ok(()) => Ok(()),
                Err(Fail::New(d)) => Err(*d),
                Err(Fail::Reported) => {
                    reported = true;
                    Ok(())
                }
            }
        })?;
        if reported { Err(Fail::Reported) } else { Ok(inner) }
    }
}
