//! Parsing of kernels. Shape only: whether a kernel makes sense is the verifier's question.

use crate::kernel::{Arg, Buf, Item, Kernel, Kind, Load, Local, LocalAxis, Mode, Packed, Role, Stage, Store};
use std::sync::Arc;
use tgc_ir::class::{Combine, Reducer};
use tgc_ir::diag::Diag;
use tgc_ir::scalar::{BINARY, ENode, Expr, Scalar, UNARY};
use tgc_ir::text::{Cursor, Token};
use tgc_ir::types::{DType, Dim, Pred};

type Parsed<T> = Result<T, Diag>;

/// Every kernel of a text.
pub fn parse(text: &str) -> Result<Vec<Kernel>, Vec<Diag>> {
    let mut c = Cursor::new(text);
    let mut out = Vec::new();
    while c.peek() != Token::End {
        match kernel(&mut c) {
            Ok(k) => out.push(k),
            Err(d) => {
                let mut all = c.take_errors();
                all.push(d);
                return Err(all);
            }
        }
    }
    match c.take_errors() {
        errors if errors.is_empty() => Ok(out),
        errors => Err(errors),
    }
}

fn punctuated<'t, T>(c: &mut Cursor<'t>, f: impl FnMut(&mut Cursor<'t>) -> Parsed<T>) -> Parsed<Vec<T>> {
    c.expect('[')?;
    c.list(']', f)
}

fn value_name<'t>(c: &mut Cursor<'t>) -> Parsed<&'t str> {
    match c.peek() {
        Token::Value(s) => {
            c.next();
            Ok(s)
        }
        _ => Err(c.wanted("a buffer such as `%x`")),
    }
}

fn label(c: &mut Cursor<'_>) -> Parsed<u32> {
    c.expect('#')?;
    c.int("a label number")
}

fn node_ref(c: &mut Cursor<'_>) -> Parsed<u32> {
    c.expect('$')?;
    c.int("a node number")
}

fn kernel(c: &mut Cursor<'_>) -> Parsed<Kernel> {
    c.expect_word("kernel")?;
    c.expect('@')?;
    let name = c.name("a kernel name")?;
    c.expect('(')?;
    let params = c.list(')', |c| Ok(Arc::from(c.ident("a parameter name")?)))?;
    c.expect('(')?;
    let args = c.list(')', argument)?;
    c.expect_word("grid")?;
    let grid = punctuated(c, Cursor::dim)?;
    c.expect('{')?;
    let mut k = Kernel { name, params, args, grid, locals: Vec::new(), body: Vec::new(), sites: Vec::new() };
    while c.eat_word("local") {
        k.locals.push(local(c)?);
    }
    while c.eat_word("site") {
        let n: usize = c.int("a site number")?;
        if n != k.sites.len() + 1 {
            return Err(c.fail("E-TXT-010", format!("site {n} where site {} comes next", k.sites.len() + 1)));
        }
        k.sites.push(c.string("a message")?);
    }
    k.body = items(c, &k)?;
    Ok(k)
}

fn argument(c: &mut Cursor<'_>) -> Parsed<Arg> {
    let name = value_name(c)?.to_string();
    c.expect(':')?;
    let role = match c.ident("in, out, inout or const")? {
        "in" => Role::In,
        "out" => Role::Out,
        "inout" => Role::InOut,
        "const" => Role::Const,
        other => return Err(c.fail("E-TXT-001", format!("`{other}` is none of in, out, inout, const"))),
    };
    let t = c.ty()?;
    let packed = if c.eat_word("packed") { Some(packed(c)?) } else { None };
    Ok(Arg { name, dtype: t.dtype, dims: t.shape, role, packed })
}

fn packed(c: &mut Cursor<'_>) -> Parsed<Packed> {
    let width = c.int("a panel width")?;
    c.expect_word("axis")?;
    let axis = c.int("an axis")?;
    c.expect_word("order")?;
    let order = punctuated(c, |c| c.int("an axis"))?;
    Ok(Packed { width, axis, order })
}

fn local(c: &mut Cursor<'_>) -> Parsed<Local> {
    let name = value_name(c)?.to_string();
    c.expect(':')?;
    let dtype = c.dtype()?;
    let axes = punctuated(c, |c| match c.ident("tile, full or ring")? {
        "tile" => {
            let grid = c.int("a grid axis")?;
            let lo = if c.eat('-') { c.int("a number of elements")? } else { 0 };
            let hi = if c.eat('+') { c.int("a number of elements")? } else { 0 };
            Ok(LocalAxis::Tile { grid, lo, hi })
        }
        "full" => Ok(LocalAxis::Full(c.dim()?)),
        "ring" => Ok(LocalAxis::Ring(c.int("a number of elements")?)),
        other => Err(c.fail("E-TXT-001", format!("`{other}` is none of tile, full, ring"))),
    })?;
    Ok(Local { name, dtype, axes })
}

/// Stages and loops up to and with the closing brace.
fn items(c: &mut Cursor<'_>, k: &Kernel) -> Parsed<Vec<Item>> {
    c.nested(|c| {
        let mut out = Vec::new();
        while !c.eat('}') {
            if c.eat_word("loop") {
                let var = label(c)?;
                c.expect_word("in")?;
                let lo = c.dim()?;
                if c.next() != Token::Dots {
                    return Err(c.wanted("`..` and the end of the loop"));
                }
                let hi = c.dim()?;
                c.expect('{')?;
                out.push(Item::Loop { var, lo, hi, body: items(c, k)? });
            } else if c.eat_word("stage") {
                out.push(Item::Stage(stage(c, k)?));
            } else {
                return Err(c.wanted("`stage`, `loop` or `}`"));
            }
        }
        Ok(out)
    })
}

fn extents(c: &mut Cursor<'_>) -> Parsed<Vec<(u32, Dim)>> {
    punctuated(c, |c| {
        let l = label(c)?;
        c.expect('<')?;
        Ok((l, c.dim()?))
    })
}

fn stage(c: &mut Cursor<'_>, k: &Kernel) -> Parsed<Stage> {
    let name = c.string("a stage name")?;
    c.expect_word("over")?;
    let over = punctuated(c, label)?;
    let inner = if c.eat_word("inner") { extents(c)? } else { Vec::new() };
    let red = if c.eat_word("red") { extents(c)? } else { Vec::new() };
    let mut kind = match c.ident("map, reduce or contract")? {
        "map" => Kind::Map,
        "reduce" => {
            c.expect_word("lanes")?;
            let empty = Reducer {
                init: Vec::new(),
                step: Expr::default(),
                combine: Expr::default(),
                finish: Expr::default(),
            };
            Kind::Reduce { reducer: empty, lanes: c.int("a number of lanes")? }
        }
        "contract" => {
            c.expect_word("chunk")?;
            Kind::Contract { chunk: c.int("a chunk length")? }
        }
        other => return Err(c.fail("E-TXT-001", format!("`{other}` is none of map, reduce, contract"))),
    };
    let when = if c.eat_word("when") { c.pred()? } else { Pred::True };
    c.expect('{')?;
    if let Kind::Reduce { reducer, .. } = &mut kind {
        c.expect_word("init")?;
        reducer.init.push(typed_scalar(c)?);
        while c.eat(',') {
            reducer.init.push(typed_scalar(c)?);
        }
        reducer.step = braced(c, "step")?;
        reducer.combine = braced(c, "combine")?;
        reducer.finish = braced(c, "finish")?;
    }
    let mut loads = Vec::new();
    while c.eat_word("load") {
        let i: usize = c.int("a load number")?;
        if i != loads.len() {
            return Err(c.fail("E-TXT-010", format!("load {i} where load {} comes next", loads.len())));
        }
        loads.push(load(c, k)?);
    }
    let expr = program(c)?;
    let post = match c.peek() {
        Token::Ident("post") => Some(braced(c, "post")?),
        _ => None,
    };
    let mut stores = Vec::new();
    while c.eat_word("store") {
        stores.push(store(c, k)?);
    }
    c.expect('}')?;
    Ok(Stage { name, when, over, inner, red, kind, loads, expr, post, stores })
}

fn access(c: &mut Cursor<'_>, k: &Kernel) -> Parsed<(Buf, Vec<Dim>)> {
    let name = value_name(c)?;
    let arg = k.args.iter().position(|a| a.name == name).map(|i| Buf::Arg(i as u32));
    let local = || k.locals.iter().position(|l| l.name == name).map(|i| Buf::Local(i as u32));
    let Some(buf) = arg.or_else(local) else {
        return Err(c.fail("E-TXT-006", format!("`%{name}` is neither an argument nor a local")));
    };
    Ok((buf, punctuated(c, Cursor::dim)?))
}

fn load(c: &mut Cursor<'_>, k: &Kernel) -> Parsed<Load> {
    let (from, index) = access(c, k)?;
    let mode = if c.eat_word("fill") {
        let p = c.pred()?;
        Mode::Fill(p, typed_scalar(c)?)
    } else if c.eat_word("trap") {
        let site = c.int("a site number")?;
        Mode::Trap(site, c.pred()?)
    } else {
        Mode::Proved
    };
    Ok(Load { from, index, mode })
}

fn store(c: &mut Cursor<'_>, k: &Kernel) -> Parsed<Store> {
    let (to, index) = access(c, k)?;
    c.expect('=')?;
    let value = c.int("a result number")?;
    let ops = [("add", Combine::Add), ("mul", Combine::Mul), ("min", Combine::Min), ("max", Combine::Max)];
    let op = ops.into_iter().find(|(n, _)| c.eat_word(n)).map_or(Combine::Set, |o| o.1);
    let site = if c.eat_word("site") { c.int("a site number")? } else { 0 };
    Ok(Store { to, index, value, op, site })
}

fn braced(c: &mut Cursor<'_>, word: &str) -> Parsed<Expr> {
    c.expect_word(word)?;
    c.expect('{')?;
    let e = program(c)?;
    c.expect('}')?;
    Ok(e)
}

/// Node lines and the line of results.
fn program(c: &mut Cursor<'_>) -> Parsed<Expr> {
    let mut e = Expr::default();
    while c.peek() == Token::Punct('$') {
        let n = node_ref(c)?;
        if n as usize != e.nodes.len() {
            return Err(c.fail("E-TXT-010", format!("node ${n} where ${} comes next", e.nodes.len())));
        }
        c.expect('=')?;
        let node = node(c)?;
        e.nodes.push(node);
    }
    c.expect_word("result")?;
    if c.peek() == Token::Punct('$') {
        e.roots.push(node_ref(c)?);
        while c.eat(',') {
            e.roots.push(node_ref(c)?);
        }
    }
    Ok(e)
}

fn node(c: &mut Cursor<'_>) -> Parsed<(ENode, DType)> {
    let op = c.ident("an operation")?;
    let node = match op {
        "arg" => ENode::Arg(c.int("an input number")?),
        "const" => {
            let s = typed_scalar(c)?;
            return Ok((ENode::Const(s), s.dtype));
        }
        "dim" => ENode::Dim(c.dim()?),
        "fma" | "select" => {
            let (x, y, z) = (node_ref(c)?, comma_ref(c)?, comma_ref(c)?);
            if op == "fma" { ENode::Fma(x, y, z) } else { ENode::Select(x, y, z) }
        }
        "cast" => ENode::Cast(node_ref(c)?),
        "bitcast" => ENode::Bitcast(node_ref(c)?),
        _ => {
            if let Some((u, _)) = UNARY.iter().find(|u| u.1 == op) {
                ENode::Un(*u, node_ref(c)?)
            } else if let Some((b, _)) = BINARY.iter().find(|b| b.1 == op) {
                ENode::Bin(*b, node_ref(c)?, comma_ref(c)?)
            } else {
                let known = UNARY.iter().map(|u| u.1).chain(BINARY.iter().map(|b| b.1));
                let known = known.chain(["arg", "const", "dim", "fma", "select", "cast", "bitcast"]);
                let help = format!("known: {}", known.collect::<Vec<_>>().join(" "));
                return Err(c.fail("E-TXT-004", format!("unknown operation `{op}`")).help(help));
            }
        }
    };
    c.expect(':')?;
    Ok((node, c.dtype()?))
}

fn comma_ref(c: &mut Cursor<'_>) -> Parsed<u32> {
    c.expect(',')?;
    node_ref(c)
}

/// `VALUE : TYPE`.
fn typed_scalar(c: &mut Cursor<'_>) -> Parsed<Scalar> {
    let minus = c.eat('-');
    let text = match c.peek() {
        Token::Number(s) | Token::Ident(s) => s,
        _ => return Err(c.wanted("a value")),
    };
    c.next();
    c.expect(':')?;
    let dtype = c.dtype()?;
    let text = if minus { format!("-{text}") } else { text.to_string() };
    scalar(dtype, &text).ok_or_else(|| c.fail("E-TXT-010", format!("`{text}` is no {dtype}")))
}

fn scalar(dtype: DType, text: &str) -> Option<Scalar> {
    if dtype == DType::Bool {
        return text.parse().ok().map(Scalar::bool);
    }
    if dtype.is_int() {
        let v: i128 = text.parse().ok()?;
        let s = Scalar::from_int(dtype, v);
        return (s.as_int() == Some(v)).then_some(s);
    }
    if dtype == DType::F32 {
        return text.parse::<f32>().ok().map(|v| Scalar { dtype, bits: u64::from(v.to_bits()) });
    }
    dtype.is_float().then(|| text.parse().ok().map(|v| Scalar::from_f64(dtype, v))).flatten()
}
