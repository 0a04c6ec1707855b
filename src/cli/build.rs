//! `tgc build`: model to artifact, or to the text of a stage on the way.

use super::{Failure, ModelArgs, write_file};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::time::Duration;
use tgc::{BuildOptions, Stage, Verify};

#[derive(Args)]
pub struct BuildArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Where the result goes. Text goes to stdout without it.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// CPU to compile for: native, x86-64-v2, x86-64-v3, x86-64-v4 or aarch64, with +feature (x86-64-v4+avx512vnni,
    /// aarch64+dotprod). Repeatable: a fat artifact, whose loader takes the first image that the machine can run.
    #[arg(long = "target", value_name = "CPU", default_value = "native")]
    targets: Vec<String>,
    /// What to write.
    #[arg(long, value_enum, default_value = "artifact")]
    emit: Emit,
    /// Kernels in this file (as printed by --emit kernels) replace the generated ones of the same name and signature.
    #[arg(long, value_name = "FILE")]
    kernels: Option<PathBuf>,
    /// Compile threads; 0 is one for each core. The artifact does not depend on it.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Verify the graph after each pass.
    #[arg(long)]
    verify_each: bool,
    /// Run the artifact on random inputs, at several sizes of the dynamic dims, and compare with the interpreter. A difference
    /// ends the build and names the pass, or the kernel, that is at fault. What was compared, and what was not, is recorded in
    /// the artifact. Alone, --verify means `always`.
    #[arg(long, value_enum, default_value = "auto", num_args = 0..=1, require_equals = true, default_missing_value = "always")]
    verify: VerifyArg,
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum VerifyArg {
    /// Within a budget of operations, so that small models are verified and large ones in part or not; not with --kernels.
    Auto,
    /// However long it takes; nothing to compare is an error.
    Always,
    /// Not at all.
    Never,
}

#[derive(Clone, Copy, ValueEnum, PartialEq)]
enum Emit {
    /// The artifact that tgc-run runs.
    Artifact,
    /// The optimized graph as .tgir text.
    Ir,
    /// The kernels as text.
    Kernels,
    /// Each kernel's schedule and LLVM IR for the first target.
    Llvm,
    /// Each kernel's schedule and assembly for the first target.
    Asm,
}

pub fn run(a: &BuildArgs) -> Result<(), Failure> {
    let dims: Vec<String> =
        a.model.dims.iter().map(|d| format!("--dim {}={}..{}", d.name, d.lo, d.hi)).collect();
    let constants = a.model.constants.iter().map(|c| format!("--const {}={}", c.name, c.value));
    let targets: Vec<String> = a.targets.iter().map(|t| format!("--target {t}")).collect();
    let options = BuildOptions {
        targets: a.targets.clone(),
        jobs: a.jobs,
        kernels: a.kernels.clone(),
        verify_each: a.verify_each,
        verify: match a.verify {
            VerifyArg::Auto => Verify::Auto,
            VerifyArg::Always => Verify::Always,
            VerifyArg::Never => Verify::Never,
        },
        sabotage: None,
        record: targets.into_iter().chain(dims).chain(constants).collect::<Vec<_>>().join(" "),
    };
    if a.emit == Emit::Artifact && a.output.is_none() {
        return Err(Failure::Usage(
            "-o FILE is needed for an artifact; the other kinds of --emit print without it",
        ));
    }
    if a.verify == VerifyArg::Always && a.emit != Emit::Artifact {
        return Err(Failure::Usage("--verify runs the artifact: it goes with no other --emit"));
    }
    let read: Vec<&std::path::Path> =
        a.kernels.iter().map(|k| k.as_path()).chain([a.model.model.as_path()]).collect();
    super::keep(a.output.as_deref(), &read)?;
    let bar = progress();
    bar.set_message("reading the model");
    let mut module = a.model.load()?;
    let mut at = |s: Stage| {
        bar.set_message(match s {
            Stage::Optimize => "optimizing the graph",
            Stage::Lower => "generating kernels",
            Stage::Compile(kernels) => {
                bar.set_length(kernels as u64);
                bar.set_style(style("{spinner} {msg} {wide_bar} {pos}/{len} ({elapsed})"));
                "compiling kernels"
            }
            Stage::Verify => "verifying",
        })
    };
    let text = match a.emit {
        Emit::Ir => {
            tgc::optimize(&mut module, &options)?;
            tgc::ir::text::print_module(&module)
        }
        Emit::Kernels => {
            let lowered = tgc::lower(&mut module, &options, &mut at)?;
            let texts: Vec<String> = lowered.kernels.iter().map(tgc::codegen::kernel::text::print).collect();
            texts.join("\n")
        }
        Emit::Llvm | Emit::Asm => {
            let lowered = tgc::lower(&mut module, &options, &mut at)?;
            tgc::code_text(&lowered, &options, a.emit == Emit::Asm)?
        }
        Emit::Artifact => {
            let artifact = tgc::build(&mut module, &options, &mut at, &|| bar.inc(1))?;
            let Some(path) = &a.output else { return Ok(()) };
            bar.set_style(style(SPINNER));
            bar.set_message("writing the artifact");
            artifact.write(path).map_err(Failure::Runtime)?;
            bar.finish_and_clear();
            let size = std::fs::metadata(path).map(|m| m.len()).unwrap_or(0);
            eprintln!("{}: {size} bytes", path.display());
            eprintln!("{}", artifact.verification());
            return Ok(());
        }
    };
    bar.finish_and_clear();
    match &a.output {
        Some(path) => write_file(path, text.as_bytes()),
        None => super::print(&text),
    }
}

/// While nothing can be counted.
const SPINNER: &str = "{spinner} {msg} ({elapsed})";

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Progress on stderr; silent when stderr is not a terminal.
fn progress() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    bar.set_style(style(SPINNER));
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
