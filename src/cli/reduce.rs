//! `tgc reduce`: makes a module for which the compiled code and the interpreter disagree, or that does not build, small.
//! Every attempt runs in a process of its own, so that a crash is a fault like others.

use super::{Failure, ModelArgs};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;
use tgc::Fault;
use tgc::ir::diag::Diag;
use tgc::ir::module::Module;

#[derive(Args)]
pub struct ReduceArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// Where the small module goes (.tgir; big weights beside it). Printed without it.
    #[arg(short, long)]
    output: Option<PathBuf>,
    /// Seed of the inputs.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Only say whether the model fails, and how.
    #[arg(long)]
    check: bool,
}

/// What a checking process prints before the kind of a fault.
const FAULT: &str = "fault: ";

pub fn run(a: &ReduceArgs) -> Result<(), Failure> {
    let module = a.model.load()?;
    if a.check {
        return match tgc::agree(&module, a.seed) {
            Ok(()) => super::print("no fault: the compiled code gives what the interpreter gives\n"),
            Err(f) => super::print(&format!("{FAULT}{}\n{}\n", f.kind, f.text)),
        };
    }
    let trial = Trial::new(a.seed)?;
    let first = trial.fault(&module)?.ok_or_else(|| {
        Failure::Input(vec![
            Diag::error("E-CLI-007", "there is no fault: the compiled code gives what the interpreter gives")
                .help("try another --seed, or --dim NAME=SIZE for the sizes at which it fails"),
        ])
    })?;
    eprintln!("{FAULT}{}\n{}", first.kind, first.text);
    let mut tries = 0;
    let small = tgc::reduce(&module, &mut |m| {
        tries += 1;
        let same = matches!(trial.fault(m), Ok(Some(f)) if f.kind == first.kind);
        if same {
            eprintln!("{} nodes left", m.graphs().map(|g| g.len()).sum::<usize>());
        }
        same
    })?;
    let last = trial.fault(&small)?.map_or(String::new(), |f| f.text);
    eprintln!("after {tries} attempts: {FAULT}{}\n{last}", first.kind);
    match &a.output {
        Some(path) => tgc::ir::weights::save_module(&small, path).map_err(|d| Failure::Input(vec![d])),
        None => super::print(&tgc::ir::text::print_module(&small)),
    }
}

/// Runs modules in other processes, through a file in a folder that goes away with this value.
struct Trial {
    folder: PathBuf,
    seed: u64,
}

impl Trial {
    fn new(seed: u64) -> Result<Trial, Failure> {
        let folder = std::env::temp_dir().join(format!("tgc-reduce-{}", std::process::id()));
        let fault = |e: std::io::Error| Failure::Io(format!("{} cannot be made: {e}", folder.display()));
        std::fs::create_dir_all(&folder).map_err(fault)?;
        Ok(Trial { folder, seed })
    }

    fn fault(&self, module: &Module) -> Result<Option<Fault>, Failure> {
        let path = self.folder.join("g.tgir");
        tgc::ir::weights::save_module(module, &path).map_err(|d| Failure::Input(vec![d]))?;
        let out = std::env::current_exe().and_then(|exe| self.command(&exe, &path).output());
        let out = out.map_err(|e| Failure::Io(format!("the check cannot be started: {e}")))?;
        let said = String::from_utf8_lossy(&out.stdout).into_owned();
        if let Some((kind, text)) = said.strip_prefix(FAULT).and_then(|s| s.split_once('\n')) {
            return Ok(Some(Fault { kind: kind.into(), text: text.trim_end().into() }));
        }
        if out.status.success() {
            return Ok(None);
        }
        // a panic has exit code 3; a signal has none
        let text = String::from_utf8_lossy(&out.stderr).trim_end().to_string();
        Ok(Some(Fault { kind: out.status.to_string(), text }))
    }

    fn command(&self, exe: &Path, model: &Path) -> Command {
        let mut c = Command::new(exe);
        c.arg("reduce").arg("--check").arg("--seed").arg(self.seed.to_string()).arg(model);
        c
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        // it is in the folder for temporary files; that it stays behind hurts nobody
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
