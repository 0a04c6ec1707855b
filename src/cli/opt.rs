//! `tgc opt`: passes over textual IR.

use super::Failure;
use clap::Args;
use std::path::PathBuf;
use tgc::passes;

#[derive(Args)]
pub struct OptArgs {
    /// .tgir text.
    graph: PathBuf,
    /// Passes to run in this order; all of the pipeline without it. An unknown name lists the valid ones.
    #[arg(long = "pass", value_delimiter = ',', value_name = "A,B")]
    passes: Option<Vec<String>>,
    /// Print the IR after each pass, to stderr.
    #[arg(long)]
    print_after_all: bool,
    /// Print the IR after this pass, to stderr.
    #[arg(long, value_name = "PASS")]
    print_after: Option<String>,
    /// Stop after this pass.
    #[arg(long, value_name = "PASS")]
    stop_after: Option<String>,
    /// Verify before and after each pass.
    #[arg(long)]
    verify_each: bool,
    /// Apply only the first N edits; halve N to find the edit at fault.
    #[arg(long, value_name = "N")]
    bisect: Option<usize>,
    /// Print the time each pass took and which rules fired, to stderr.
    #[arg(long)]
    time: bool,
}

pub fn run(a: &OptArgs) -> Result<(), Failure> {
    let mut module = tgc::ir::weights::load_module(&a.graph).map_err(|d| Failure::of_file(d, &a.graph))?;
    let faults = tgc::ir::verify::verify(&module);
    if !faults.is_empty() {
        return Err(Failure::Input(faults));
    }
    let options = passes::Options {
        passes: a.passes.clone(),
        print_after_all: a.print_after_all,
        print_after: a.print_after.clone(),
        stop_after: a.stop_after.clone(),
        verify_each: a.verify_each,
        bisect: a.bisect,
        sabotage: None,
    };
    let report = passes::run_pipeline(&mut module, &options)?;
    for (pass, text) in &report.texts {
        eprintln!("// after {pass}\n{text}");
    }
    if a.time {
        for (pass, t) in &report.times {
            eprintln!("{pass:<20} {t:?}");
        }
        for (rule, n) in &report.fired {
            eprintln!("fired: {rule} x{n}");
        }
    }
    super::print(&tgc::ir::text::print_module(&module))
}
