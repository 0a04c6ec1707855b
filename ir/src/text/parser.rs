//! Reading of modules: weights, states, and graphs with their signature, dims, guards and variants. Statements are read
//! in `region`.

use super::HASHED_AT_ONCE;
use super::cursor::Cursor;
use super::lexer::Token;
use super::region::{Body, Fail, Outputs, Scope, check_symbols};
use crate::diag::{Diag, Loc, Span};
use crate::graph::{Graph, Guard};
use crate::module::{Entry, Module, State, Variant};
use crate::ops::Input;
use crate::tensor::Tensor;
use crate::types::{Atom, DType, Pred, SymInfo, SymTable, Type};
use indexmap::IndexMap;

/// A module, and the hashes that its text gives for weights kept elsewhere.
pub(crate) struct Parsed {
    pub module: Module,
    pub hashes: IndexMap<String, String>,
}

/// Most errors reported for one text.
const ERRORS: usize = 40;

const ITEMS: [&str; 3] = ["weight", "state", "graph"];

/// Gives a weight by name; the element type is the one the text says, for stores that cannot tell.
type Lookup<'a> = &'a dyn Fn(&str, DType) -> Option<Tensor>;

pub(crate) fn module(text: &str, weights: Lookup<'_>) -> Result<Parsed, Vec<Diag>> {
    let mut c = Cursor::new(text);
    let mut p = Parsed { module: Module::default(), hashes: IndexMap::new() };
    while c.peek() != Token::End && !c.has_errors(ERRORS) {
        let start = c.position();
        let done = match c.peek() {
            Token::Ident("weight") => weight(&mut c, &mut p, weights),
            Token::Ident("state") => state(&mut c, &mut p.module).map_err(Fail::from),
            Token::Ident("graph") => graph(&mut c, &mut p.module),
            _ => Err(c.wanted("`graph`, `weight` or `state`").into()),
        };
        if let Err(fail) = done {
            c.report_fail(fail);
            c.skip_item(start, &ITEMS);
        }
    }
    let errors = c.take_errors();
    if errors.is_empty() { Ok(p) } else { Err(errors) }
}

fn weight(c: &mut Cursor<'_>, p: &mut Parsed, lookup: Lookup<'_>) -> Result<(), Fail> {
    c.expect_word("weight")?;
    let start = c.span();
    let name = c.string("the weight's name in quotes")?;
    let at = Loc::at(start);
    c.expect(':')?;
    let ty = c.ty()?;
    c.expect('=')?;
    let tensor = if c.eat_word("dense") {
        let body = c.span();
        let d = c.dense_body()?;
        d.tensor(&ty, c.span_since(body))?
    } else if c.eat_word("file") {
        c.expect('<')?;
        let hash_at = c.span();
        let hash = c.string("the hash of the weight's bytes in quotes")?;
        if hash.len() != 64 || !hash.bytes().all(|b| b.is_ascii_hexdigit()) {
            let d = Diag::error("E-TXT-010", "a hash is 64 hexadecimal digits (blake3 of the bytes)");
            return Err(d.at(&Loc::at(hash_at)).into());
        }
        c.expect('>')?;
        p.hashes.insert(name.clone(), hash.clone());
        stored(&name, &ty, &hash, lookup).map_err(|d| d.at(&at))?
    } else {
        return Err(c.wanted("`dense<...>` or `file<\"hash\">`").into());
    };
    if p.module.weights.insert(name.clone(), tensor).is_some() {
        return Err(Diag::error("E-TXT-009", format!("weight {name:?} is given twice")).at(&at).into());
    }
    Ok(())
}

fn stored(name: &str, ty: &Type, hash: &str, lookup: Lookup<'_>) -> Result<Tensor, Diag> {
    let fail = |m: String| Diag::error("E-TXT-011", m);
    let t = lookup(name, ty.dtype).ok_or_else(|| {
        fail(format!("the data of weight {name:?} is not at hand"))
            .help("keep the side file (.safetensors) beside the text, under the same name")
    })?;
    if t.ty() != *ty {
        return Err(fail(format!("weight {name:?} is {ty} here and {} in the side file", t.ty())));
    }
    let bytes = t.data.bytes();
    if bytes.len() <= HASHED_AT_ONCE && !blake3::hash(bytes).to_hex().eq_ignore_ascii_case(hash) {
        return Err(fail(format!(
            "the bytes of weight {name:?} in the side file are not those of this text"
        ))
        .help("the two files were not saved together, or one is damaged"));
    }
    Ok(t)
}

fn state(c: &mut Cursor<'_>, m: &mut Module) -> Result<(), Diag> {
    c.expect_word("state")?;
    let at = Loc::at(c.span());
    let name = c.string("the state's name in quotes")?;
    c.expect(':')?;
    let ty = c.ty()?;
    let mut symbols = SymTable::default();
    declare(&ty.shape, &mut symbols);
    check_symbols(&ty.shape, &symbols, c.span())?;
    if m.states.insert(name.clone(), State { ty }).is_some() {
        return Err(Diag::error("E-TXT-009", format!("state {name:?} is given twice")).at(&at));
    }
    Ok(())
}

/// The parts of a graph before its body.
struct Header<'t> {
    name: String,
    inputs: Vec<(&'t str, Input, Span)>,
    outputs: Outputs,
}

fn header<'t>(c: &mut Cursor<'t>) -> Result<Header<'t>, Diag> {
    c.expect_word("graph")?;
    c.expect('@')?;
    let name = c.name("the graph's name")?;
    c.expect('(')?;
    let mut number = 0;
    let inputs = c.list(')', |c| {
        number += 1;
        input(c, number - 1)
    })?;
    c.expect_token(Token::Arrow)?;
    let mut n = 0;
    let mut output = |c: &mut Cursor<'t>| {
        let ty = c.ty()?;
        let named = matches!(c.peek(), Token::Str(_));
        let name = if named { c.string("a name")? } else { format!("y{n}") };
        let state = if c.eat_word("state") { Some(c.string("the state's name in quotes")?) } else { None };
        n += 1;
        Ok((name, ty, state))
    };
    let list = if c.eat('(') { c.list(')', output)? } else { vec![output(c)?] };
    Ok(Header { name, inputs, outputs: Outputs(list) })
}

fn input<'t>(c: &mut Cursor<'t>, number: usize) -> Result<(&'t str, Input, Span), Diag> {
    let span = c.span();
    let Token::Value(value) = c.next() else {
        return Err(Diag::error("E-TXT-001", "an input (`%name: type`) is wanted").at(&Loc::at(span)));
    };
    c.expect(':')?;
    let ty = c.ty()?;
    let numbered = value.starts_with(|c: char| c.is_ascii_digit());
    let name = match c.peek() {
        Token::Str(_) => c.string("a name")?,
        _ if numbered => format!("x{number}"),
        _ => value.to_string(),
    };
    let state = if c.eat_word("state") { Some(c.string("the state's name in quotes")?) } else { None };
    let default = if c.eat_word("default") { Some(c.string("the weight's name in quotes")?) } else { None };
    Ok((value, Input { name, dtype: ty.dtype, shape: ty.shape, state, default }, span))
}

fn graph<'t>(c: &mut Cursor<'t>, m: &mut Module) -> Result<(), Fail> {
    let at = Loc::at(c.span());
    let h = header(c)?;
    let mut symbols = SymTable::default();
    while c.at_word("dim") {
        dim_line(c, &mut symbols, true)?;
    }
    for (_, i, at) in &h.inputs {
        declare(&i.shape, &mut symbols);
        check_symbols(&i.shape, &symbols, *at)?;
    }
    let mut guards = Vec::new();
    while c.at_word("guard") {
        guards.push(guard_line(c, &symbols)?);
    }
    let mut variants = Vec::new();
    while c.at_word("variant") {
        variants.push(variant(c, &h, &symbols)?);
    }
    if c.at_word("dim") || c.at_word("guard") {
        return Err(c.wanted("`{` (the order is: dim lines, guards, variants)").into());
    }
    let body = body(c, &h, symbols, guards, false)?;
    if m.entries.contains_key(&h.name) {
        return Err(Diag::error("E-TXT-009", format!("graph @{} is given twice", h.name)).at(&at).into());
    }
    m.entries.insert(h.name, Entry { variants, body });
    Ok(())
}

/// Inputs declare the symbols of their types.
fn declare(shape: &[crate::types::Dim], symbols: &mut SymTable) {
    for d in shape {
        d.leaves(&mut |a| {
            if let Atom::Sym(s) = a
                && symbols.get(s).is_none()
            {
                symbols.insert(s, SymInfo::default());
            }
        });
    }
}

/// `dim name in lo..hi`, or with `anonymous` at the end.
pub(super) fn dim_line(c: &mut Cursor<'_>, symbols: &mut SymTable, once: bool) -> Result<(), Diag> {
    c.expect_word("dim")?;
    let at = Loc::at(c.span());
    let name = c.name("a symbol")?;
    c.expect_word("in")?;
    let lo: i64 = c.int("a 64-bit integer")?;
    c.expect_token(Token::Dots)?;
    let hi: i64 = c.int("a 64-bit integer")?;
    let named = !c.eat_word("anonymous");
    if once && symbols.get(&name).is_some() {
        return Err(Diag::error("E-TXT-009", format!("dim `{name}` is declared twice")).at(&at));
    }
    symbols.insert(&name, SymInfo { lo, hi, named });
    Ok(())
}

/// `guard condition "why" loc "place"`.
pub(super) fn guard_line(c: &mut Cursor<'_>, symbols: &SymTable) -> Result<Guard, Diag> {
    let start = c.span();
    c.expect_word("guard")?;
    let pred = declared_pred(c, symbols)?;
    let why = if matches!(c.peek(), Token::Str(_)) { c.string("the reason")? } else { String::new() };
    let mut at = super::region::place(c)?;
    at.span = Some(c.span_since(start));
    Ok(Guard { pred, why, at })
}

fn declared_pred(c: &mut Cursor<'_>, symbols: &SymTable) -> Result<Pred, Diag> {
    let start = c.span();
    let pred = c.pred()?;
    let at = c.span_since(start);
    let mut bad = Ok(());
    pred.dims(&mut |d| {
        if bad.is_ok() {
            bad = check_symbols(std::slice::from_ref(d), symbols, at);
        }
    });
    bad.map(|()| pred)
}

fn variant<'t>(c: &mut Cursor<'t>, h: &Header<'t>, symbols: &SymTable) -> Result<Variant, Fail> {
    c.expect_word("variant")?;
    c.expect_word("when")?;
    let when = declared_pred(c, symbols)?;
    if c.eat_word("fails") {
        return Ok(Variant { when, body: Err(c.string("the reason in quotes")?) });
    }
    if c.peek() != Token::Punct('{') {
        return Err(c.wanted("`{` or `fails \"reason\"`").into());
    }
    Ok(Variant { when, body: Ok(body(c, h, symbols.clone(), Vec::new(), true)?) })
}

fn body<'t>(
    c: &mut Cursor<'t>,
    h: &Header<'t>,
    mut symbols: SymTable,
    guards: Vec<Guard>,
    inner: bool,
) -> Result<Graph, Fail> {
    c.expect('{')?;
    while inner && c.at_word("dim") {
        dim_line(c, &mut symbols, false)?;
    }
    let mut g = Graph::new(&h.name);
    g.symbols = symbols;
    guards.into_iter().for_each(|gd| g.guard(gd));
    while inner && c.at_word("guard") {
        let gd = guard_line(c, &g.symbols)?;
        g.guard(gd);
    }
    let mut scope = Scope::default();
    for (value, input, span) in &h.inputs {
        let v = g.input_op(input.clone(), Loc::at(*span));
        scope.define(c, value, Some(v), *span);
    }
    Body { c, g: &mut g, scope, limit: ERRORS, variant: inner }.read(Some(&h.outputs))?;
    Ok(g)
}
