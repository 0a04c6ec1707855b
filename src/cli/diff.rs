//! `tgc diff`: two models or artifacts against each other. What must not be here: the comparison (`tgc::diff`).

use super::{Failure, print};
use clap::Args;
use std::path::{Path, PathBuf};
use tgc::{ConstOption, Differences, DimOption, LoadOptions, OutputDiff, Side, Tolerance};

#[derive(Args)]
pub struct DiffArgs {
    /// Artifact, ONNX file or .tgir text. Models are run by the interpreter, artifacts as compiled.
    a: PathBuf,
    /// What to compare it with.
    b: PathBuf,
    /// Value or range of a symbolic dim of the models: batch=8, batch=1..64 (inclusive). Repeatable.
    #[arg(long = "dim", value_name = "NAME=LO..HI")]
    dims: Vec<DimOption>,
    /// Value of an input of the models, which then is a constant and no input any more. Repeatable.
    #[arg(long = "const", value_name = "INPUT=VALUE")]
    constants: Vec<ConstOption>,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Absolute difference allowed in floats. Without it, 1e-4 of an output's greatest element (f16: 1e-2, bf16: 5e-2).
    #[arg(long)]
    atol: Option<f64>,
    /// Difference allowed in relation to B's element, besides.
    #[arg(long, default_value_t = 0.0)]
    rtol: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(a: &DiffArgs) -> Result<(), Failure> {
    let wrong = |v: f64| v.is_nan() || v < 0.0;
    if a.atol.is_some_and(wrong) || wrong(a.rtol) {
        return Err(Failure::Usage("--atol and --rtol take numbers from 0 on"));
    }
    let (x, y) = (side(&a.a, a)?, side(&a.b, a)?);
    let found = tgc::diff(&x, &y, a.seed, Tolerance { absolute: a.atol, relative: a.rtol }, &a.dims)?;
    print(&if a.json { json(&found) } else { text(&found, a) })?;
    if found.same() { Ok(()) } else { Err(Failure::Differ) }
}

fn side(path: &Path, a: &DiffArgs) -> Result<Side, Failure> {
    if let Some(opened) = Side::artifact(path) {
        return opened.map_err(Failure::Runtime);
    }
    let options = LoadOptions { dims: a.dims.clone(), constants: a.constants.clone() };
    let (module, warnings) = tgc::load(path, &options).map_err(|d| Failure::of_file(d, path))?;
    super::report(&warnings, None);
    Ok(Side::Model(Box::new(module)))
}

fn text(d: &Differences, a: &DiffArgs) -> String {
    let mut out = format!("A {}\nB {}\n", a.a.display(), a.b.display());
    for (what, lines) in [("interface", &d.interface), ("content", &d.content), ("refused", &d.refused)] {
        for l in lines {
            out += &format!("{what}: {l}\n");
        }
    }
    for o in &d.outputs {
        out += &format!("{}: output `{}`: ", o.run, o.output);
        out += &match &o.worst {
            None if o.greatest == 0.0 => "equal\n".to_string(),
            None => format!(
                "within tolerance; greatest difference {:.3e} ({:.1e} of the greatest element)\n",
                o.greatest, o.relative
            ),
            Some(w) => format!("{} of {} elements differ; worst {w}\n", o.beyond.0, o.beyond.1),
        };
    }
    if let Some(f) = &d.first {
        out += &format!("first difference in {f}\n");
    }
    out + if d.same() { "no difference\n" } else { "they differ\n" }
}

fn json(d: &Differences) -> String {
    let number = |v: f64| if v.is_finite() { serde_json::json!(v) } else { serde_json::json!(v.to_string()) };
    let output = |o: &OutputDiff| {
        serde_json::json!({
            "run": o.run, "output": o.output, "greatest": number(o.greatest), "relative": number(o.relative),
            "beyond": o.beyond.0, "elements": o.beyond.1, "worst": o.worst,
        })
    };
    let all = serde_json::json!({
        "same": d.same(), "interface": d.interface, "content": d.content, "refused": d.refused,
        "outputs": d.outputs.iter().map(output).collect::<Vec<_>>(), "first": d.first,
    });
    format!("{all:#}\n")
}
