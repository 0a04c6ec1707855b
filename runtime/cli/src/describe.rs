//! `tgc-run info`: what an artifact says, as text or JSON. What must not be here: rules about artifacts (the runtime's).

use std::fmt::Write;
use std::path::Path;

use tgc_runtime::{
    ArgDecl, DType, Entry, Guard, Image, KernelDecl, Loader, Manifest, Model, Port, Program, Role, Step,
    Symbol, Variant, host_features,
};

use crate::args::Info;
use crate::fault::{Result, of_runtime};
use crate::json::Json;

/// Describes the artifact; returns what goes to stdout.
pub(crate) fn info(args: &Info) -> Result<String> {
    let model = Loader { inspect: true, ..Loader::default() }.open(&args.model).map_err(of_runtime)?;
    if args.check {
        model.check_weights().map_err(of_runtime)?;
    }
    if args.json {
        return Ok(format!("{}\n", json(&model, args.check)));
    }
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text(&mut out, &args.model, &model, args.check);
    Ok(out)
}

fn names(e: &Entry) -> Vec<&str> {
    e.symbols.iter().map(|s| s.name.as_str()).collect()
}

fn dims(p: &Port, names: &[&str]) -> Vec<String> {
    p.dims.iter().map(|d| d.show(names)).collect()
}

/// The image this machine would run.
fn fitting(m: &Manifest) -> Option<usize> {
    let have = host_features();
    let fits = |i: &Image| i.features.iter().all(|f| have.contains(&f.as_str()));
    m.images.iter().position(|i| i.arch == std::env::consts::ARCH && fits(i))
}

fn code_sizes(model: &Model) -> Vec<u64> {
    model.sections().iter().filter(|s| s.kind == "code").map(|s| s.len).collect()
}

fn section(model: &Model, kind: &str) -> u64 {
    model.sections().iter().filter(|s| s.kind == kind).map(|s| s.len).sum()
}

fn file_len(model: &Model) -> u64 {
    model.sections().iter().map(|s| s.offset + s.len).max().unwrap_or(0)
}

/// Launches, copies and others among the steps.
fn step_counts(p: &Program) -> [usize; 3] {
    let mut counts = [0; 3];
    for s in p.segments.iter().flat_map(|s| &s.steps) {
        counts[match s {
            Step::Launch { .. } => 0,
            Step::Copy { .. } => 1,
            Step::Opaque { .. } | Step::If { .. } | Step::Loop { .. } => 2,
        }] += 1;
    }
    counts
}

fn text(out: &mut String, path: &Path, model: &Model, checked: bool) -> std::fmt::Result {
    let m = model.manifest();
    writeln!(out, "{}: tgc artifact, {} bytes", path.display(), file_len(model))?;
    writeln!(out, "  producer      {}", m.producer)?;
    writeln!(out, "  options       {}", m.options)?;
    writeln!(out, "  verification  {}", m.verification)?;
    for e in &m.entries {
        entry_text(out, m, e)?;
    }
    for s in &m.states {
        writeln!(out, "state {}: {} {:?}", s.name, s.dtype, s.dims)?;
    }
    let fits = fitting(m);
    writeln!(out, "images, best first")?;
    for (i, (image, len)) in m.images.iter().zip(code_sizes(model)).enumerate() {
        let here = if fits == Some(i) { "  <- runs on this machine" } else { "" };
        writeln!(out, "  {} ({}): {len} bytes of code{here}", image.target, image.arch)?;
        writeln!(out, "    needs {}", image.features.join(" "))?;
    }
    if fits.is_none() {
        writeln!(out, "  none of them runs on this machine")?;
    }
    writeln!(out, "kernels: {}", m.kernels.len())?;
    for k in &m.kernels {
        let args: Vec<String> =
            k.args.iter().map(|a| format!("{} {}: {}", role(a.role), a.name, a.dtype)).collect();
        writeln!(out, "  {}({}; {} dims)", k.name, args.join(", "), k.dims)?;
    }
    let state = if checked { ", all match their checksums" } else { "" };
    writeln!(out, "weights: {}, {} bytes{state}", m.weights.len(), section(model, "weights"))?;
    for w in &m.weights {
        writeln!(out, "  {} {} {:?}", w.name, w.dtype, w.dims)?;
    }
    Ok(())
}

fn entry_text(out: &mut String, m: &Manifest, e: &Entry) -> std::fmt::Result {
    let names = names(e);
    writeln!(out, "entry {}", e.name)?;
    for (kind, ports) in [("input ", &e.inputs), ("output", &e.outputs)] {
        for p in ports {
            let default =
                p.default.map_or(String::new(), |w| format!("  default {}", m.weights[w as usize].name));
            writeln!(out, "  {kind}  {}: {} [{}]{default}", p.name, p.dtype, dims(p, &names).join(", "))?;
        }
    }
    for s in &e.symbols {
        let from = if s.named { "" } else { "  (not named by the model)" };
        writeln!(out, "  dim     {}: {}..={}{from}", s.name, s.lo, s.hi)?;
    }
    for g in &e.guards {
        writeln!(out, "  guard   {}: {}", g.pred.show(&names), g.message)?;
    }
    for v in &e.variants {
        let when = v.when.as_ref().map_or(String::new(), |p| format!(" when {}", p.show(&names)));
        match &v.body {
            Err(why) => writeln!(out, "  variant{when}: fails: {why}")?,
            Ok(p) => {
                let [launches, copies, others] = step_counts(p);
                let (segments, buffers) = (p.segments.len(), p.buffers.len());
                writeln!(
                    out,
                    "  variant{when}: {segments} segments, {launches} launches, {copies} copies, {others} others, \
                     {buffers} buffers"
                )?;
            }
        }
    }
    Ok(())
}

fn role(r: Role) -> &'static str {
    match r {
        Role::In => "in",
        Role::Out => "out",
        Role::InOut => "inout",
        Role::Const => "const",
    }
}

fn json(model: &Model, checked: bool) -> Json {
    let m = model.manifest();
    let fits = fitting(m);
    let images = m.images.iter().zip(code_sizes(model)).enumerate().map(|(i, (image, len))| {
        Json::Map(vec![
            ("target", Json::text(&image.target)),
            ("arch", Json::text(&image.arch)),
            ("features", Json::list(&image.features, Json::text)),
            ("code_bytes", Json::number(len)),
            ("runs_here", Json::Flag(fits == Some(i))),
        ])
    });
    let tensor = |name: &str, dtype: DType, dims: &[u64]| {
        Json::Map(vec![
            ("name", Json::text(name)),
            ("dtype", Json::text(dtype.to_string())),
            ("dims", Json::list(dims.iter().copied(), Json::number)),
        ])
    };
    Json::Map(vec![
        ("bytes", Json::number(file_len(model))),
        ("producer", Json::text(&m.producer)),
        ("options", Json::text(&m.options)),
        ("verification", Json::text(&m.verification)),
        ("entries", Json::list(&m.entries, |e| entry_json(m, e))),
        ("states", Json::list(&m.states, |s| tensor(&s.name, s.dtype, &s.dims))),
        ("images", Json::List(images.collect())),
        ("kernels", Json::list(&m.kernels, kernel_json)),
        ("weights", Json::list(&m.weights, |w| tensor(&w.name, w.dtype, &w.dims))),
        ("weights_bytes", Json::number(section(model, "weights"))),
        ("weights_checked", Json::Flag(checked)),
    ])
}

fn kernel_json(k: &KernelDecl) -> Json {
    let arg = |a: &ArgDecl| {
        Json::Map(vec![
            ("name", Json::text(&a.name)),
            ("dtype", Json::text(a.dtype.to_string())),
            ("role", Json::text(role(a.role))),
        ])
    };
    let hash: String = k.text_hash.iter().map(|b| format!("{b:02x}")).collect();
    Json::Map(vec![
        ("name", Json::text(&k.name)),
        ("args", Json::list(&k.args, arg)),
        ("dims", Json::number(k.dims)),
        ("text_hash", Json::text(hash)),
    ])
}

fn entry_json(m: &Manifest, e: &Entry) -> Json {
    let names = names(e);
    let port = |p: &Port| {
        Json::Map(vec![
            ("name", Json::text(&p.name)),
            ("dtype", Json::text(p.dtype.to_string())),
            ("dims", Json::list(dims(p, &names), Json::text)),
            ("default", p.default.map_or(Json::Null, |w| Json::text(&m.weights[w as usize].name))),
        ])
    };
    let symbol = |s: &Symbol| {
        Json::Map(vec![
            ("name", Json::text(&s.name)),
            ("lo", Json::number(s.lo)),
            ("hi", Json::number(s.hi)),
            ("named", Json::Flag(s.named)),
        ])
    };
    let guard = |g: &Guard| {
        Json::Map(vec![("pred", Json::text(g.pred.show(&names))), ("message", Json::text(&g.message))])
    };
    let variant = |v: &Variant| {
        let when = v.when.as_ref().map_or(Json::Null, |p| Json::text(p.show(&names)));
        match &v.body {
            Err(why) => Json::Map(vec![("when", when), ("fails", Json::text(why))]),
            Ok(p) => {
                let [launches, copies, others] = step_counts(p).map(|n| Json::number(n as u64));
                Json::Map(vec![
                    ("when", when),
                    ("segments", Json::number(p.segments.len() as u64)),
                    ("launches", launches),
                    ("copies", copies),
                    ("others", others),
                    ("buffers", Json::number(p.buffers.len() as u64)),
                ])
            }
        }
    };
    Json::Map(vec![
        ("name", Json::text(&e.name)),
        ("inputs", Json::list(&e.inputs, port)),
        ("outputs", Json::list(&e.outputs, port)),
        ("dims", Json::list(&e.symbols, symbol)),
        ("guards", Json::list(&e.guards, guard)),
        ("variants", Json::list(&e.variants, variant)),
    ])
}
