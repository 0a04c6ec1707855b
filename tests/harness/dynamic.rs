//! Fixtures of ops with their constant input dims made dynamic: once every axis under a symbol of its own, once equal sizes
//! under one symbol, wherever inference accepts it. At the fixture's own sizes the interpreter and the compiled code must
//! give what the fixture gives.

use crate::execute::Run;
use std::collections::BTreeMap;
use tgc::ir::accuracy::within;
use tgc::ir::diag::Diag;
use tgc::ir::graph::{Graph, Value};
use tgc::ir::interp;
use tgc::ir::module::{Entry, Module};
use tgc::ir::ops::{Input, Op};
use tgc::ir::tensor::{Data, Tensor};
use tgc::ir::types::{Dim, SymInfo};
use tgc::ir::verify::verify;
use tgc::runtime as rt;
use tgc::{BuildOptions, build};

/// Fixtures without an input dim that can become dynamic: all are already, are repeated in an
/// attribute, or belong to a region.
const CONSTANT: [&str; 9] =
    ["cast", "cond", "const_dims", "constant", "fused", "iota", "not", "repeat", "weight"];

/// Fixtures that code generation takes only with sizes that are known to be small.
const BOUNDED: [&str; 1] = ["top_k"];

/// The fixture's runs on its dynamic forms. `stem` names the fixture.
pub fn check(stem: &str, m: &Module, runs: &[Run]) -> Result<(), String> {
    let (mut forms, mut symbols) = (m.clone(), 0);
    forms.entries.clear();
    for (name, e) in m.entries.iter().filter(|(_, e)| e.variants.is_empty()) {
        for (form, own) in [("own", true), ("same", false)] {
            let mut one = m.clone();
            one.entries.clear();
            let (mut body, n) = dynamic(&e.body, own, &mut one);
            symbols += n;
            body.name = format!("{name}_{form}");
            if n > 0 {
                forms.entries.insert(body.name.clone(), Entry { variants: Vec::new(), body });
            }
        }
    }
    if (symbols == 0) != CONSTANT.contains(&stem) {
        return Err(format!(
            "{symbols} dims can become dynamic: compare with the list in tests/harness/dynamic.rs"
        ));
    }
    let mut models = BTreeMap::new();
    for run in runs {
        let want = interp::run_bounded(m, &run.entry, &run.inputs).map_err(|d| d.render(None))?;
        if !models.contains_key(&run.entry) {
            models.insert(&run.entry, compiled(stem, m, &forms, &run.entry)?);
        }
        for form in ["own", "same"].map(|f| format!("{}_{f}", run.entry)) {
            let say = |e: String| {
                let g = forms.entries.get(&form).map(|e| tgc::graph_text(&e.body)).unwrap_or_default();
                format!("{}, made dynamic: {e}\n{g}", run.how)
            };
            if !forms.entries.contains_key(&form) {
                continue;
            }
            let got = interp::run_bounded(&forms, &form, &run.inputs).map_err(|d| say(d.render(None)))?;
            for (i, (w, g)) in want.iter().zip(&got).enumerate() {
                let allowed: Vec<f64> = w.bound.iter().zip(&g.bound).map(|(a, b)| a + b).collect();
                within(&g.tensor, &w.tensor, &allowed).map_err(|e| say(format!("output {i}: {e}")))?;
            }
            let Some(Some(model)) = models.get(&run.entry) else { continue };
            let got = compute(model, &form, &run.inputs).map_err(|e| say(format!("compiled: {e}")))?;
            for (i, (w, g)) in want.iter().zip(got).enumerate() {
                let g = Tensor::from_bytes(w.tensor.dtype, &w.tensor.shape, Data::new(g));
                let g = g.ok_or_else(|| say(format!("compiled: output {i} has another size")))?;
                within(&g, &w.tensor, &w.bound).map_err(|e| say(format!("compiled: output {i}: {e}")))?;
            }
        }
    }
    Ok(())
}

/// An artifact with the forms of an entry; none where code generation refuses the entry as it is, too, or may refuse the forms.
fn compiled(
    stem: &str,
    m: &Module,
    forms: &Module,
    entry: &str,
) -> Result<Option<std::sync::Arc<rt::Model>>, String> {
    let options = BuildOptions { targets: vec!["native".into()], ..BuildOptions::default() };
    let only = |m: &Module, keep: &dyn Fn(&str) -> bool| {
        let mut one = m.clone();
        one.entries.retain(|n, _| keep(n));
        build(&mut one, &options, &mut |_| {}, &|| ())
    };
    let codes = |d: &[Diag]| d.iter().map(|d| d.code).collect::<Vec<_>>();
    let names = ["own", "same"].map(|f| format!("{entry}_{f}"));
    match only(forms, &|n| names.iter().any(|f| f == n)) {
        Ok(artifact) => {
            let bytes = artifact.to_bytes().map_err(|e| e.to_string())?;
            rt::Loader::default().from_bytes(&bytes).map(Some).map_err(|e| e.to_string())
        }
        Err(d) if BOUNDED.contains(&stem) && codes(&d).iter().all(|c| *c == "E-CG-002") => Ok(None),
        Err(d) => match only(m, &|n| n == entry) {
            Err(plain) if codes(&plain).contains(&d[0].code) => Ok(None),
            _ => Err(format!("@{entry}, made dynamic: {}", d[0].render(None))),
        },
    }
}

fn compute(
    model: &std::sync::Arc<rt::Model>,
    entry: &str,
    inputs: &[Tensor],
) -> Result<Vec<Vec<u8>>, rt::Error> {
    let mut session = rt::Session::new(model, entry, &rt::SessionOptions::default())?;
    let mut given = Vec::new();
    for (p, t) in session.entry().inputs.iter().zip(inputs) {
        given.push((p.name.clone(), rt::Tensor::new(p.dtype, &t.shape, t.data.bytes())?));
    }
    let given: Vec<(&str, &rt::Tensor)> = given.iter().map(|(n, t)| (n.as_str(), t)).collect();
    Ok(session.run_owned(&given)?.into_iter().map(|(_, t)| t.bytes().to_vec()).collect())
}

/// The graph with as many input dims dynamic as inference and verifier accept, and the number of its new symbols.
fn dynamic(g: &Graph, own: bool, m: &mut Module) -> (Graph, usize) {
    let mut all: Vec<(usize, usize, i64)> = Vec::new();
    for (i, &id) in g.inputs().iter().enumerate() {
        let Some(Op::Input(input)) = g.op_of(id) else { continue };
        let constant = |(axis, d): (usize, &Dim)| Some((i, axis, d.as_const()?));
        if input.default.is_none() && input.state.is_none() {
            all.extend(input.shape.iter().enumerate().filter_map(constant));
        }
    }
    let mut groups: BTreeMap<(i64, usize, usize), Vec<(usize, usize)>> = BTreeMap::new();
    for (i, axis, size) in all {
        groups.entry(if own { (size, i, axis) } else { (size, 0, 0) }).or_default().push((i, axis));
    }
    let (mut best, mut n) = (g.clone(), 0);
    for places in groups.into_values() {
        let name = best.symbols.fresh("d");
        let accepted = with_symbol(&best, &name, &places).filter(|next| {
            m.entries.insert(next.name.clone(), Entry { variants: Vec::new(), body: next.clone() });
            verify(m).is_empty()
        });
        if let Some(next) = accepted {
            (best, n) = (next, n + 1);
        }
    }
    (best, n)
}

/// The graph made anew with one symbol at these axes of inputs.
fn with_symbol(g: &Graph, name: &str, places: &[(usize, usize)]) -> Option<Graph> {
    let mut out = Graph::new(&g.name);
    out.symbols = g.symbols.clone();
    out.symbols.insert(name, SymInfo { named: true, ..SymInfo::default() });
    g.guards().iter().for_each(|guard| out.guard(guard.clone()));
    let mut at: BTreeMap<Value, Value> = BTreeMap::new();
    let rest = g.topo().into_iter().filter(|id| !g.inputs().contains(id));
    for id in g.inputs().iter().copied().chain(rest) {
        let node = g.node(id)?;
        let new = if let Op::Input(i) = &node.op {
            let mut shape = i.shape.clone();
            let here = g.inputs().iter().position(|x| *x == id)?;
            places.iter().filter(|p| p.0 == here).for_each(|p| shape[p.1] = Dim::sym(name));
            out.input_op(Input { shape, ..i.clone() }, node.loc.clone()).node
        } else {
            let operands: Option<Vec<Value>> = g.operands(id).iter().map(|v| at.get(v).copied()).collect();
            out.add(node.op.clone(), &operands?, node.regions.clone(), node.loc.clone()).ok()?
        };
        for result in 0..node.results.len() as u32 {
            at.insert(Value { node: id, result }, Value { node: new, result });
        }
    }
    for o in g.outputs() {
        o.state.is_none().then_some(())?;
        out.output(&o.name, *at.get(&o.value)?);
    }
    Some(out)
}
