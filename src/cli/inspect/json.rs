//! `tgc inspect` as JSON. What must not be here: figures (`inspect`).

use super::{Figures, ProgramFigures, code_bytes, file_bytes, kind, weights_by_type, work};
use serde_json::{Value, json};
use std::path::Path;
use tgc::runtime as rt;

/// The whole artifact.
pub(super) fn artifact(path: &Path, model: &rt::Model, entries: &[Figures<'_>]) -> Value {
    let m = model.manifest();
    let images = m.images.iter().zip(code_bytes(model));
    json!({
        "path": path.display().to_string(),
        "bytes": file_bytes(model),
        "producer": m.producer,
        "options": m.options,
        "verification": m.verification,
        "entries": entries.iter().map(|e| entry(m, e)).collect::<Vec<_>>(),
        "kernels": m.kernels.iter().enumerate().map(|(i, k)| kernel(m, i, k)).collect::<Vec<_>>(),
        "weights": m.weights.iter().map(weight).collect::<Vec<_>>(),
        "weights_by_type": weights_by_type(m)
            .iter()
            .map(|(t, n, bytes)| json!({ "dtype": t, "count": n, "bytes": bytes }))
            .collect::<Vec<_>>(),
        "images": images
            .map(|(i, code)| json!({
                "target": i.target, "arch": i.arch, "features": i.features, "code_bytes": code,
            }))
            .collect::<Vec<_>>(),
    })
}

fn weight(w: &rt::WeightDecl) -> Value {
    json!({ "name": w.name, "dtype": w.dtype.to_string(), "dims": w.dims })
}

fn entry(m: &rt::Manifest, f: &Figures<'_>) -> Value {
    let e = f.entry;
    let ports = |ports: &[rt::Port]| -> Vec<Value> {
        let one = |p: &rt::Port| {
            json!({
                "name": p.name,
                "dtype": p.dtype.to_string(),
                "dims": p.dims.iter().map(|d| d.show(&f.names)).collect::<Vec<_>>(),
                "default": p.default.map(|w| &m.weights[w as usize].name),
            })
        };
        ports.iter().map(one).collect()
    };
    let dims = e
        .symbols
        .iter()
        .zip(&f.syms)
        .map(|(s, v)| json!({ "name": s.name, "lo": s.lo, "hi": s.hi, "named": s.named, "here": v }));
    let guards = e.guards.iter().map(|g| {
        json!({ "pred": g.pred.show(&f.names), "message": g.message, "holds": g.pred.eval(&f.syms).ok() })
    });
    let variants = f.variants.iter().map(|v| {
        let when = v.when.map(|p| p.show(&f.names));
        match &v.body {
            Err(why) => json!({ "when": when, "fails": why }),
            Ok(p) => json!({ "when": when, "program": program(m, f, p) }),
        }
    });
    json!({
        "name": e.name,
        "inputs": ports(&e.inputs),
        "outputs": ports(&e.outputs),
        "dims": dims.collect::<Vec<_>>(),
        "guards": guards.collect::<Vec<_>>(),
        "variants": variants.collect::<Vec<_>>(),
    })
}

fn program(m: &rt::Manifest, f: &Figures<'_>, p: &ProgramFigures<'_>) -> Value {
    let buffer = |b: &rt::Buffer| {
        json!({
            "name": b.name,
            "dtype": b.dtype.to_string(),
            "kind": kind(m, f.entry, b),
            "bytes": b.size.show(&f.names),
            "bytes_here": b.size.eval(&f.syms).ok(),
            "first": b.first,
            "last": b.last,
            "class": b.alias,
        })
    };
    let steps = p.program.segments.iter().enumerate();
    let steps = steps.flat_map(|(i, s)| s.steps.iter().map(move |step| (i, step)));
    json!({
        "launches": p.launches,
        "kernels": p.kernels,
        "copies": p.copies,
        "others": p.others,
        "generated_percent": p.generated(),
        "flops": p.flops,
        "bytes": p.bytes,
        "arena_bytes": p.memory.as_ref().ok().map(|m| m.size),
        "peak_live_bytes": p.memory.as_ref().ok().map(|m| m.peak_live),
        "buffers": p.program.buffers.iter().map(buffer).collect::<Vec<_>>(),
        "steps": steps.map(|(segment, s)| step(m, f, segment, s)).collect::<Vec<_>>(),
    })
}

fn step(m: &rt::Manifest, f: &Figures<'_>, segment: usize, s: &rt::Step) -> Value {
    match s {
        rt::Step::Launch { kernel, args, dims, label, .. } => {
            let (flops, bytes) = work(m, *kernel, dims, &f.syms);
            json!({
                "segment": segment,
                "kind": "launch",
                "kernel": m.kernels[*kernel as usize].name,
                "args": args,
                "dims": dims.iter().map(|d| d.show(&f.names)).collect::<Vec<_>>(),
                "label": label,
                "flops": flops,
                "bytes": bytes,
            })
        }
        rt::Step::Copy { src, dst, bytes } => json!({
            "segment": segment, "kind": "copy", "src": src, "dst": dst, "bytes": bytes.show(&f.names),
        }),
        rt::Step::Opaque { op, args } => {
            json!({ "segment": segment, "kind": "opaque", "op": op, "args": args })
        }
        rt::Step::If { cond, .. } => json!({ "segment": segment, "kind": "if", "cond": cond }),
        rt::Step::Loop { .. } => json!({ "segment": segment, "kind": "loop" }),
    }
}

fn kernel(m: &rt::Manifest, i: usize, k: &rt::KernelDecl) -> Value {
    let names: Vec<String> = (0..k.dims).map(|d| format!("d{d}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let images = m.images.iter().filter_map(|image| {
        let c = image.kernels.iter().find(|c| c.kernel as usize == i)?;
        Some(json!({
            "target": image.target,
            "tiles": c.tiles.show(&names),
            "grain": c.grain.show(&names),
            "scratch": c.scratch.show(&names),
        }))
    });
    json!({
        "name": k.name,
        "args": k.args.iter().map(|a| json!({
            "name": a.name, "dtype": a.dtype.to_string(), "role": super::role(a.role),
        })).collect::<Vec<_>>(),
        "dims": k.dims,
        "flops": k.flops.show(&names),
        "bytes": k.bytes.show(&names),
        "images": images.collect::<Vec<_>>(),
    })
}
