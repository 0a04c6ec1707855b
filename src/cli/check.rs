//! `tgc check`: everything short of machine code, so that a model that passes also builds.

use super::{Failure, ModelArgs};
use clap::Args;
use tgc::BuildOptions;

#[derive(Args)]
pub struct CheckArgs {
    #[command(flatten)]
    model: ModelArgs,
}

pub fn run(a: &CheckArgs) -> Result<(), Failure> {
    let mut module = a.model.load()?;
    let signature: Vec<String> = module.entries.iter().map(|(n, e)| signature(n, e)).collect();
    let lowered = tgc::lower(&mut module, &BuildOptions::default(), &mut |_| {})?;
    let head = format!("{}: builds, {} kernels", a.model.model.display(), lowered.kernels.len());
    super::print(&format!("{head}\n{}\n", signature.join("\n")))
}

/// An entry's inputs, outputs, symbols and guards, a line each.
fn signature(name: &str, e: &tgc::ir::module::Entry) -> String {
    let g = &e.body;
    let mut out = format!("entry {name}");
    for id in g.inputs() {
        if let Some(tgc::ir::ops::Op::Input(i)) = g.op_of(*id) {
            let ty = tgc::ir::types::Type::new(i.dtype, i.shape.clone());
            let default = if i.default.is_some() { " (has a default)" } else { "" };
            out += &format!("\n  input  {}: {ty}{default}", i.name);
        }
    }
    for o in g.outputs() {
        if let Some(ty) = g.ty(o.value) {
            out += &format!("\n  output {}: {ty}", o.name);
        }
    }
    for (s, i) in g.symbols.iter() {
        let hi = if i.hi == tgc::ir::types::DEFAULT_MAX { "any".to_string() } else { i.hi.to_string() };
        out += &format!("\n  dim    {s}: {}..{hi}{}", i.lo, if i.named { "" } else { " (anonymous)" });
    }
    for guard in g.all_guards() {
        out += &format!("\n  guard  {}: {}", guard.pred, guard.why);
    }
    out
}
