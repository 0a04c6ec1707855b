//! `tgc inspect` as text. What must not be here: figures (`inspect`).

use super::{Figures, ProgramFigures, code_bytes, file_bytes, kind, weights_by_type, work};
use std::fmt::{Result, Write};
use std::path::Path;
use tgc::runtime as rt;

/// The whole artifact.
pub(super) fn artifact(path: &Path, model: &rt::Model, entries: &[Figures<'_>]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, path, model, entries);
    out
}

fn write(out: &mut String, path: &Path, model: &rt::Model, entries: &[Figures<'_>]) -> Result {
    let m = model.manifest();
    writeln!(out, "{}: {} bytes, by {}", path.display(), file_bytes(model), m.producer)?;
    writeln!(out, "  options       {}", m.options)?;
    writeln!(out, "  verification  {}", m.verification)?;
    for (image, code) in m.images.iter().zip(code_bytes(model)) {
        writeln!(out, "  image         {} ({}), {code} bytes of code", image.target, image.arch)?;
    }
    let total: u64 = weights_by_type(m).iter().map(|w| w.2).sum();
    let types: Vec<String> =
        weights_by_type(m).iter().map(|(t, n, b)| format!("{n} of {t} ({b} bytes)")).collect();
    let of = if types.is_empty() { String::new() } else { format!(": {}", types.join(", ")) };
    writeln!(out, "  weights       {total} bytes in {}{of}", m.weights.len())?;
    for e in entries {
        entry(out, m, e)?;
    }
    kernels(out, m)
}

fn entry(out: &mut String, m: &rt::Manifest, f: &Figures<'_>) -> Result {
    let e = f.entry;
    writeln!(out, "\nentry {}", e.name)?;
    for (what, ports) in [("input ", &e.inputs), ("output", &e.outputs)] {
        for p in ports {
            let dims: Vec<String> = p.dims.iter().map(|d| d.show(&f.names)).collect();
            let default =
                p.default.map_or(String::new(), |w| format!("  default {}", m.weights[w as usize].name));
            writeln!(out, "  {what}  {}: {}[{}]{default}", p.name, p.dtype, dims.join(", "))?;
        }
    }
    for (s, v) in e.symbols.iter().zip(&f.syms) {
        let named = if s.named { "" } else { ", not named by the model" };
        writeln!(out, "  dim     {}: {}..={}{named}; here {}", s.name, s.lo, s.hi, v.unwrap_or(0))?;
    }
    for g in &e.guards {
        let holds = if g.pred.eval(&f.syms) == Ok(false) { "  (does not hold here)" } else { "" };
        writeln!(out, "  guard   {}: {}{holds}", g.pred.show(&f.names), g.message)?;
    }
    for v in &f.variants {
        let when = v.when.map_or("otherwise".into(), |p| format!("when {}", p.show(&f.names)));
        let when = if f.variants.len() == 1 { "program".into() } else { format!("program {when}") };
        match &v.body {
            Err(why) => writeln!(out, "{when}: fails: {why}")?,
            Ok(p) => {
                writeln!(out, "{when}")?;
                program(out, m, f, p)?;
            }
        }
    }
    Ok(())
}

fn program(out: &mut String, m: &rt::Manifest, f: &Figures<'_>, p: &ProgramFigures<'_>) -> Result {
    writeln!(
        out,
        "  steps   {}: {} launches of {} kernels, {} copies, {} others; {:.1} % in generated code",
        p.steps(),
        p.launches,
        p.kernels,
        p.copies,
        p.others,
        p.generated()
    )?;
    let show = |n: Option<i64>| n.map_or("unknown".to_string(), |n| n.to_string());
    writeln!(out, "  work    {} operations, {} bytes touched", show(p.flops), show(p.bytes))?;
    match &p.memory {
        Ok(plan) => writeln!(
            out,
            "  arena   {} bytes, {:.3} of the most that lives at once",
            plan.size,
            plan.size as f64 / plan.peak_live.max(1) as f64
        )?,
        Err(e) => writeln!(out, "  arena   unknown: {}", e.to_string().lines().next().unwrap_or_default())?,
    }
    writeln!(out, "  buffers")?;
    for (i, b) in p.program.buffers.iter().enumerate() {
        let class = b.alias.map_or(String::new(), |c| format!("  class {c}"));
        writeln!(
            out,
            "    %{i:<4} {:<24} {:<5} {} bytes  steps {}..={}{class}",
            kind(m, f.entry, b),
            b.dtype.to_string(),
            b.size.show(&f.names),
            b.first,
            b.last
        )?;
    }
    let mut at = 0;
    for (i, segment) in p.program.segments.iter().enumerate() {
        let several = if p.program.segments.len() == 1 { String::new() } else { format!(" of segment {i}") };
        writeln!(out, "  steps{several}")?;
        for b in &segment.binds {
            let name = f.names.get(b.symbol as usize).copied().unwrap_or("?");
            writeln!(out, "    {name} is read from %{}", b.buffer)?;
        }
        for s in &segment.steps {
            step(out, m, f, s, at)?;
            at += 1;
        }
    }
    Ok(())
}

fn step(out: &mut String, m: &rt::Manifest, f: &Figures<'_>, s: &rt::Step, at: usize) -> Result {
    let list = |v: &[u32]| v.iter().map(|b| format!("%{b}")).collect::<Vec<_>>().join(", ");
    match s {
        rt::Step::Launch { kernel, args, dims, label, .. } => {
            let sizes: Vec<String> = dims.iter().map(|d| d.show(&f.names)).collect();
            let sizes = if sizes.is_empty() { String::new() } else { format!(" at ({})", sizes.join(", ")) };
            let (flops, _) = work(m, *kernel, dims, &f.syms);
            let flops = flops.map_or(String::new(), |n| format!(", {n} operations"));
            let place = if label.is_empty() { String::new() } else { format!("  // {label}") };
            writeln!(
                out,
                "    {at:<4} {}({}){sizes}{flops}{place}",
                m.kernels[*kernel as usize].name,
                list(args)
            )
        }
        rt::Step::Copy { src, dst, bytes } => {
            writeln!(out, "    {at:<4} copy %{src} to %{dst}, {} bytes", bytes.show(&f.names))
        }
        rt::Step::Opaque { op, args } => writeln!(out, "    {at:<4} {op}({})", list(args)),
        rt::Step::If { cond, then, otherwise } => {
            writeln!(out, "    {at:<4} if %{cond}: {} steps, otherwise {} steps", then.len(), otherwise.len())
        }
        rt::Step::Loop { body, .. } => writeln!(out, "    {at:<4} loop over {} steps", body.len()),
    }
}

fn kernels(out: &mut String, m: &rt::Manifest) -> Result {
    writeln!(out, "\nkernels: {}", m.kernels.len())?;
    for (i, k) in m.kernels.iter().enumerate() {
        let uses = m
            .entries
            .iter()
            .flat_map(|e| &e.variants)
            .filter_map(|v| v.body.as_ref().ok())
            .flat_map(|p| &p.segments)
            .flat_map(|s| &s.steps)
            .filter(|s| matches!(s, rt::Step::Launch { kernel, .. } if *kernel as usize == i))
            .count();
        let args: Vec<String> =
            k.args.iter().map(|a| format!("{} {}: {}", super::role(a.role), a.name, a.dtype)).collect();
        writeln!(out, "  {}({}), launched by {uses} steps", k.name, args.join(", "))?;
        let names: Vec<String> = (0..k.dims).map(|d| format!("d{d}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        writeln!(out, "    operations {}", k.flops.show(&names))?;
        writeln!(out, "    bytes      {}", k.bytes.show(&names))?;
        for image in &m.images {
            if let Some(c) = image.kernels.iter().find(|c| c.kernel as usize == i) {
                writeln!(
                    out,
                    "    {}: tiles {}; least for a thread {}; scratch {} bytes",
                    image.target,
                    c.tiles.show(&names),
                    c.grain.show(&names),
                    c.scratch.show(&names)
                )?;
            }
        }
    }
    Ok(())
}
