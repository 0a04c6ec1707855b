//! `tgc zoo`: well-known models with random weights.

use super::{Failure, print};
use clap::Args;
use std::path::PathBuf;
use tgc::ir::diag::Diag;

#[derive(Args)]
pub struct ZooArgs {
    /// The model; without it, all are listed.
    name: Option<String>,
    /// Seed of the weights: the same one gives the same file.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where the .tgir text goes; its weights go beside it as .safetensors. NAME.tgir without it.
    #[arg(short, long)]
    output: Option<PathBuf>,
}

pub fn run(a: &ZooArgs) -> Result<(), Failure> {
    let Some(name) = &a.name else {
        let lines: Vec<String> = tgc::zoo::NAMES.iter().map(|(n, what)| format!("{n:<14} {what}")).collect();
        return print(&(lines.join("\n") + "\n"));
    };
    let Some(program) = tgc::zoo::program(name, a.seed) else {
        let names: Vec<&str> = tgc::zoo::NAMES.iter().map(|n| n.0).collect();
        let d = Diag::error("E-CLI-011", format!("there is no model `{name}`"));
        return Err(Failure::Input(vec![d.help(format!("there are: {}", names.join(", ")))]));
    };
    let path = a.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tgir")));
    if path.extension().is_none_or(|e| e != "tgir") {
        return Err(Failure::Usage("-o takes a file name that ends with .tgir"));
    }
    let saved = program.and_then(|p| p.save(&path));
    saved.map_err(|e| Failure::Input(e.diags().to_vec()))
}
