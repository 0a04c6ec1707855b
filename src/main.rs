//! The `tgc` command. One file a subcommand under `cli/`; exit codes: 0 done, 1 the input is at fault, 2 wrong usage,
//! 3 a bug in tgc.

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
