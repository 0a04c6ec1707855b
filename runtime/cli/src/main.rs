//! `tgc-run`: runs, measures and describes artifacts. Results go to stdout, notes and errors to stderr. Exit codes: 0 done, 1 the
//! input is at fault (one diagnostic a fault), 2 wrong usage. What must not be here: what runs models (the runtime library).

mod args;
mod bench;
mod describe;
mod fault;
mod inputs;
mod json;
mod limits;
mod npy;
mod npz;
mod profile;
mod run;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let done = match args::Args::parse().command {
        args::Command::Run(run) => run::run(&run),
        args::Command::Bench(bench) => bench::bench(&bench),
        args::Command::Profile(profile) => profile::profile(&profile),
        args::Command::Info(info) => describe::info(&info),
    };
    match done {
        Ok(text) => {
            // A reader that has gone away wants no more text, and no complaint either.
            let _ = std::io::stdout().lock().write_all(plain(&text).as_bytes());
            ExitCode::SUCCESS
        }
        Err(faults) => {
            for f in &faults {
                let _ = writeln!(std::io::stderr(), "{}", plain(&f.to_string()));
            }
            ExitCode::from(1)
        }
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
