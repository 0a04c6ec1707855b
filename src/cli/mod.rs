//! The command line: arguments, dispatch, diagnostics on stderr and exit codes.

mod build;
mod check;
mod crash;
mod diff;
mod export;
mod inspect;
mod opt;
mod reduce;
mod zoo;

use clap::{Args, Parser, Subcommand};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tgc::ir::diag::{Diag, Severity};
use tgc::ir::module::Module;
use tgc::{ConstOption, DimOption, LoadOptions};

/// Ahead-of-time tensor compiler: an ONNX or .tgir model in, one native artifact out, run by tgc-run.
#[derive(Parser)]
#[command(name = "tgc", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List everything that keeps a model from being built: every blocker at once, with place and remedy.
    Check(check::CheckArgs),
    /// Compile a model to an artifact (or print what it is compiled to).
    Build(build::BuildArgs),
    /// Write a model as an ONNX file.
    Export(export::ExportArgs),
    /// Say what an artifact does, step by step, and in how much memory.
    Inspect(inspect::InspectArgs),
    /// Compare two models or artifacts: interfaces, content, and results on random inputs. Exit code 1 if they differ.
    Diff(diff::DiffArgs),
    /// Run passes over textual IR and print the result.
    Opt(opt::OptArgs),
    /// Make a model that fails small: one whose compiled code and interpreter disagree on random inputs, or that does not
    /// build.
    Reduce(reduce::ReduceArgs),
    /// Write a well-known model with random weights as .tgir, for trials and benchmarks.
    Zoo(zoo::ZooArgs),
}

/// The model to read.
#[derive(Args, Clone)]
struct ModelArgs {
    /// ONNX file, or .tgir text (its weights in the .safetensors file beside it).
    model: PathBuf,
    /// Value or range of a symbolic dim: batch=8, batch=1..64 (inclusive). Repeatable.
    #[arg(long = "dim", value_name = "NAME=LO..HI")]
    dims: Vec<DimOption>,
    /// Value of an input, which then is a constant and no input any more: k=3, axes=[0, -1]. For operands that must be known,
    /// such as axes, shapes and scales. Repeatable.
    #[arg(long = "const", value_name = "INPUT=VALUE")]
    constants: Vec<ConstOption>,
}

impl ModelArgs {
    fn load(&self) -> Result<Module, Failure> {
        let (module, warnings) = tgc::load(
            &self.model,
            &LoadOptions { dims: self.dims.clone(), constants: self.constants.clone() },
        )
        .map_err(|d| Failure::of_file(d, &self.model))?;
        report(&warnings, None);
        Ok(module)
    }
}

/// Why a command ends without success.
enum Failure {
    /// The input is at fault.
    Input(Vec<Diag>),
    /// Diagnostics with spans into this text.
    Text(Vec<Diag>, String),
    /// Arguments that do not go together.
    Usage(&'static str),
    /// An error of the file system, in words.
    Io(String),
    /// Diagnostics of the runtime.
    Runtime(tgc::runtime::Error),
    /// What was compared differs; all is said.
    Differ,
}

impl Failure {
    /// Diagnostics of a model file; those of a `.tgir` text are drawn against it.
    fn of_file(diags: Vec<Diag>, path: &Path) -> Failure {
        let is_text = path.is_file() && path.extension().is_some_and(|e| e == "tgir");
        match is_text.then(|| std::fs::read_to_string(path)) {
            Some(Ok(text)) => Failure::Text(diags, text),
            _ => Failure::Input(diags),
        }
    }
}

impl From<Vec<Diag>> for Failure {
    fn from(d: Vec<Diag>) -> Failure {
        Failure::Input(d)
    }
}

/// Runs the command named by the arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    crash::guard(|| {
        let result = match &cli.command {
            Command::Check(a) => check::run(a),
            Command::Build(a) => build::run(a),
            Command::Export(a) => export::run(a),
            Command::Inspect(a) => inspect::run(a),
            Command::Diff(a) => diff::run(a),
            Command::Opt(a) => opt::run(a),
            Command::Reduce(a) => reduce::run(a),
            Command::Zoo(a) => zoo::run(a),
        };
        match result {
            Ok(()) => ExitCode::SUCCESS,
            Err(Failure::Differ) => ExitCode::from(1),
            Err(Failure::Input(d)) => fail(&d, None),
            Err(Failure::Text(d, text)) => fail(&d, Some(&text)),
            Err(Failure::Usage(m)) => {
                eprintln!("error: {m}\n\nFor more information, try '--help'.");
                ExitCode::from(2)
            }
            Err(Failure::Runtime(e)) => {
                eprintln!("{e}");
                ExitCode::from(1)
            }
            Err(Failure::Io(m)) => {
                eprintln!("error[E-CLI-003]: {m}");
                ExitCode::from(1)
            }
        }
    })
}

fn fail(diags: &[Diag], text: Option<&str>) -> ExitCode {
    if let Some(d) = diags.iter().find(|d| matches!(d.code, "E-BUG" | "E-CPU-009")) {
        return crash::report(&d.message);
    }
    report(diags, text);
    let n = diags.iter().filter(|d| d.severity == Severity::Error).count();
    eprintln!("{n} error{}", if n == 1 { "" } else { "s" });
    // a build that computes something else than its model is a bug of tgc
    ExitCode::from(if diags.iter().any(|d| d.code == "E-VERIFY-001") { 3 } else { 1 })
}

fn report(diags: &[Diag], text: Option<&str>) {
    for d in diags {
        eprintln!("{}\n", plain(&d.render(text)));
    }
}

/// Text for a terminal: what names of a model hold besides letters must not steer it.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.is_control() && !matches!(c, '\n' | '\t') {
            true => out.extend(c.escape_default()),
            false => out.push(c),
        }
    }
    out
}

/// Prints a result. A reader that has gone away is no fault of ours: the rest is dropped.
fn print(text: &str) -> Result<(), Failure> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    match out.write_all(plain(text).as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::Io(format!("the result cannot be printed: {e}")))
        }
        _ => Ok(()),
    }
}

/// Refuses an output that would take the place of a file that is read.
fn keep(output: Option<&Path>, inputs: &[&Path]) -> Result<(), Failure> {
    let Some(out) = output.and_then(|o| std::fs::canonicalize(o).ok()) else { return Ok(()) };
    match inputs.iter().any(|i| std::fs::canonicalize(i).is_ok_and(|i| i == out)) {
        true => Err(Failure::Usage(
            "the output would take the place of a file that is read; give it another name",
        )),
        false => Ok(()),
    }
}

/// Writes through a temporary file in the same folder, so that an old file is never lost to a failure.
fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let fault = |e: std::io::Error| Failure::Io(format!("{} cannot be written: {e}", path.display()));
    if std::fs::metadata(path).is_ok_and(|m| !m.is_file()) {
        // a device or a pipe is written to, never replaced; a directory is refused by the system
        return std::fs::write(path, bytes).map_err(fault);
    }
    let mut tmp = path.file_name().map(|n| n.to_os_string()).unwrap_or_default();
    tmp.push(format!(".{}.tmp", std::process::id()));
    let tmp = path.with_file_name(tmp);
    std::fs::write(&tmp, bytes).and_then(|()| std::fs::rename(&tmp, path)).map_err(|e| {
        // the temporary file is ours; the error that matters is the first one
        let _ = std::fs::remove_file(&tmp);
        fault(e)
    })
}
