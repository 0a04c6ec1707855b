//! Binding: symbols get values from input shapes; ranges and guards are checked, with messages that name the input, the
//! axis, what was found and what is allowed. Nothing runs here.

use super::index::dim_error;
use crate::diag::{Diag, Loc};
use crate::graph::{Graph, Guard};
use crate::ops::Op;
use crate::types::{Atom, Dim, DimError, SymTable};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Values of symbols.
pub type Bindings = BTreeMap<Arc<str>, i64>;

/// Where a symbol's value was read, in words.
type Origins = BTreeMap<Arc<str>, String>;

/// Binds the symbols of an entry to input shapes (one an input, in order) and checks sizes, ranges and all guards whose
/// symbols are known.
pub fn bind(graph: &Graph, shapes: &[Vec<usize>]) -> Result<Bindings, Diag> {
    let b = solve(graph, shapes)?;
    check_guards(&graph.all_guards(), &b, None)?;
    Ok(b)
}

struct Given<'a> {
    name: &'a str,
    dims: &'a [Dim],
    sizes: &'a [usize],
    loc: Loc,
}

fn place(g: &Given<'_>, axis: usize) -> String {
    format!("input `{}`, axis {axis}", g.name)
}

/// Symbols from input shapes, with sizes and ranges checked, guards not.
pub(crate) fn solve(graph: &Graph, shapes: &[Vec<usize>]) -> Result<Bindings, Diag> {
    let ids = graph.inputs();
    if ids.len() != shapes.len() {
        let msg = format!("{} inputs given, `{}` takes {}", shapes.len(), graph.name, ids.len());
        return Err(
            Diag::error("E-RUN-001", msg).help("give every input once, in the order of the signature")
        );
    }
    let mut given = Vec::new();
    for (&id, sizes) in ids.iter().zip(shapes) {
        let Some(Op::Input(op)) = graph.op_of(id) else { continue };
        let g = Given { name: &op.name, dims: &op.shape, sizes, loc: graph.loc(id) };
        if g.dims.len() != g.sizes.len() {
            let msg = format!("input `{}` has shape {sizes:?}; its rank must be {}", g.name, g.dims.len());
            return Err(Diag::error("E-RUN-003", msg)
                .at(&g.loc)
                .help(format!("the signature says {}", list(g.dims))));
        }
        given.push(g);
    }
    let (mut b, mut from) = (Bindings::new(), Origins::new());
    for g in &given {
        plain_symbols(g, &mut b, &mut from)?;
    }
    while given
        .iter()
        .map(|g| expressions(g, &mut b, &mut from))
        .collect::<Result<Vec<_>, _>>()?
        .contains(&true)
    {}
    for g in &given {
        sizes_agree(g, &b, &from)?;
    }
    for (name, v) in &b {
        check_range(&graph.symbols, name, *v, from.get(name).map_or("", |f| f))?;
    }
    Ok(b)
}

fn list(dims: &[Dim]) -> String {
    let v: Vec<String> = dims.iter().map(Dim::to_string).collect();
    format!("[{}]", v.join(", "))
}

fn plain_symbols(g: &Given<'_>, b: &mut Bindings, from: &mut Origins) -> Result<(), Diag> {
    for (axis, (d, &size)) in g.dims.iter().zip(g.sizes).enumerate() {
        let Some(s) = d.as_sym() else { continue };
        let size = size as i64;
        match b.get(s) {
            None => {
                b.insert(s.clone(), size);
                from.insert(s.clone(), place(g, axis));
            }
            Some(&v) if v == size => {}
            Some(&v) => {
                let at = from.get(s).cloned().unwrap_or_default();
                let msg = format!("{} has size {size}, but dim `{s}` is {v} ({at})", place(g, axis));
                return Err(Diag::error("E-RUN-004", msg)
                    .at(&g.loc)
                    .help(format!("axes that share `{s}` must have one size")));
            }
        }
    }
    Ok(())
}

/// Solves `c * symbol + k = size` for symbols that no axis names alone; true if one was found.
fn expressions(g: &Given<'_>, b: &mut Bindings, from: &mut Origins) -> Result<bool, Diag> {
    let mut found = false;
    for (axis, (d, &size)) in g.dims.iter().zip(g.sizes).enumerate() {
        let rest = d.subst(&|a| match a {
            Atom::Sym(s) => b.get(s).map(|&v| Dim::from(v)),
            Atom::Label(_)
            | Atom::Val(_)
            | Atom::FloorDiv(..)
            | Atom::Min(..)
            | Atom::Max(..)
            | Atom::Bcast(..) => None,
        });
        let terms: Vec<_> = rest.terms().collect();
        let [(c, [Atom::Sym(s)])] = terms[..] else { continue };
        let left = size as i128 - rest.constant();
        if left % c != 0 {
            let msg = format!("{} has size {size}, which is not of the form `{d}`", place(g, axis));
            return Err(Diag::error("E-RUN-004", msg)
                .at(&g.loc)
                .help(format!("give a size that is `{d}` for a whole `{s}`")));
        }
        let v = i64::try_from(left / c).map_err(|_| dim_error(&DimError::Overflow(d.to_string())))?;
        b.insert(s.clone(), v);
        from.insert(s.clone(), place(g, axis));
        found = true;
    }
    Ok(found)
}

fn sizes_agree(g: &Given<'_>, b: &Bindings, from: &Origins) -> Result<(), Diag> {
    for (axis, (d, &size)) in g.dims.iter().zip(g.sizes).enumerate() {
        let want = match d.eval(&leaf(b)) {
            Ok(v) => v,
            Err(DimError::Unbound(s)) => {
                let msg = format!("{}: its size `{d}` does not determine {s}", place(g, axis));
                return Err(Diag::error("E-RUN-006", msg)
                    .at(&g.loc)
                    .help("some input needs an axis whose dim is that symbol alone"));
            }
            Err(e) => return Err(dim_error(&e).at(&g.loc).note(place(g, axis))),
        };
        if want != size as i64 {
            let mut diag =
                Diag::error("E-RUN-004", format!("{} has size {size}; allowed: {want}", place(g, axis)));
            if d.as_const().is_none() {
                diag.message += &format!(" (`{d}`)");
                d.leaves(&mut |a| {
                    if let Atom::Sym(s) = a
                        && let (Some(v), Some(f)) = (b.get(s), from.get(s))
                    {
                        diag.notes.push(format!("`{s}` is {v} ({f})"));
                    }
                });
            }
            return Err(diag.at(&g.loc).help(format!("the signature says {}", list(g.dims))));
        }
    }
    Ok(())
}

/// Checks a symbol's value against its declared range.
pub(crate) fn check_range(symbols: &SymTable, name: &str, v: i64, from: &str) -> Result<(), Diag> {
    let info = symbols.get(name).cloned().unwrap_or_default();
    if v < info.lo || v > info.hi {
        let msg = format!("dim `{name}` is {v} ({from}); allowed: {}..{}", info.lo, info.hi);
        return Err(Diag::error("E-RUN-005", msg)
            .help(format!("give a size in range, or widen it with --dim {name}=LO..HI")));
    }
    Ok(())
}

/// Checks guards whose symbols all have values; with `only`, those that mention that symbol.
pub(crate) fn check_guards(guards: &[Guard], b: &Bindings, only: Option<&str>) -> Result<(), Diag> {
    for g in guards {
        if let Some(s) = only {
            let mut hit = false;
            g.pred.dims(&mut |d| hit |= d.any_leaf(|a| matches!(a, Atom::Sym(x) if **x == *s)));
            if !hit {
                continue;
            }
        }
        let mut diag = match g.pred.eval(&leaf(b)) {
            // bound later, by a bind_dim node, and checked there
            Ok(true) | Err(DimError::Unbound(_)) => continue,
            Ok(false) => Diag::error("E-RUN-007", format!("the sizes given violate `{}`: {}", g.pred, g.why)),
            Err(e) => dim_error(&e).note(format!("in the condition `{}`: {}", g.pred, g.why)),
        };
        let mut seen = Vec::new();
        g.pred.dims(&mut |d| {
            d.leaves(&mut |a| {
                if let Atom::Sym(s) = a
                    && let Some(v) = b.get(s)
                    && !seen.contains(s)
                {
                    seen.push(s.clone());
                    diag.notes.push(format!("`{s}` is {v}"));
                }
            });
        });
        return Err(diag.at(&g.at).help("give inputs whose sizes satisfy the condition"));
    }
    Ok(())
}

/// Values of symbols as dims ask for them.
pub(crate) fn leaf(b: &Bindings) -> impl Fn(&Atom) -> Option<i64> + '_ {
    |a| match a {
        Atom::Sym(s) => b.get(s).copied(),
        Atom::Label(_)
        | Atom::Val(_)
        | Atom::FloorDiv(..)
        | Atom::Min(..)
        | Atom::Max(..)
        | Atom::Bcast(..) => None,
    }
}
