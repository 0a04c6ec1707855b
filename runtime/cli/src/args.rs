//! The command line. What must not be here: what the commands do.

use std::path::PathBuf;

use clap::{Args as Group, Parser, Subcommand, ValueEnum};

/// Runs, measures and describes artifacts written by `tgc build`.
#[derive(Parser)]
#[command(name = "tgc-run", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run an artifact on inputs from files.
    Run(Run),
    /// Measure an artifact: load, first result, time of a run, memory.
    Bench(Bench),
    /// Measure the steps of an artifact, and compare them with what the machine can do.
    Profile(Profile),
    /// Say what is in an artifact.
    Info(Info),
}

/// What is run, on which inputs, with what.
#[derive(Group)]
pub(crate) struct Call {
    /// The artifact.
    pub(crate) model: PathBuf,
    /// An input: its name and an .npy file. Repeatable.
    #[arg(long, value_name = "NAME=FILE.npy", value_parser = input)]
    pub(crate) input: Vec<(String, PathBuf)>,
    /// Inputs by name from an .npz file.
    #[arg(long, value_name = "FILE.npz")]
    pub(crate) inputs: Option<PathBuf>,
    /// Threads; the CPUs this process may use if not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
    /// The entry to run; may be left out if there is one only, or one called `forward`.
    #[arg(long)]
    pub(crate) entry: Option<String>,
    /// The most memory for temporaries and states, such as 512M or 1G.
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) mem_limit: Option<u64>,
}

/// How inputs that are not in files are made.
#[derive(Group)]
pub(crate) struct Random {
    /// Seed of the random inputs; inputs that files give are not made.
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub(crate) random: u64,
    /// Size of a dim of the random inputs: batch=8. Others get the smallest size allowed, from 1 on. Repeatable.
    #[arg(long, value_name = "NAME=SIZE", value_parser = dim)]
    pub(crate) dim: Vec<(String, u64)>,
    /// Random integers are uniform in 0..N: give what the model's tables allow.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) int_max: u64,
}

#[derive(Group)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) call: Call,
    /// Where the outputs go: one .npz file, or a folder that gets an .npy file each. Without, their summaries are printed.
    #[arg(short, long, value_name = "FILE.npz|DIR/", value_parser = output)]
    pub(crate) output: Option<Output>,
}

#[derive(Group)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) call: Call,
    #[command(flatten)]
    pub(crate) random: Random,
    /// The least number of timings. A timing is one run, or several in a row where one is too short to time.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// The least time to measure for, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) min_time: f64,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Group)]
pub(crate) struct Profile {
    #[command(flatten)]
    pub(crate) call: Call,
    #[command(flatten)]
    pub(crate) random: Random,
    /// The least number of runs.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: u32,
    /// The least time to run for, in seconds.
    #[arg(long, value_name = "S", default_value_t = 1.0, value_parser = seconds)]
    pub(crate) min_time: f64,
    /// What a row of the table is: a step of the program, or a kernel with all steps that launch it.
    #[arg(long, value_enum, default_value_t = By::Step)]
    pub(crate) by: By,
    /// Rows to print, those that take longest first.
    #[arg(long, value_name = "N", default_value_t = 25)]
    pub(crate) top: usize,
    /// Also write the steps of one run in the trace event format that browsers and Perfetto show.
    #[arg(long, value_name = "FILE.json")]
    pub(crate) trace: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, ValueEnum)]
pub(crate) enum By {
    Step,
    Kernel,
}

#[derive(Group)]
pub(crate) struct Info {
    /// The artifact.
    pub(crate) model: PathBuf,
    /// Also compare all weights with their checksums.
    #[arg(long)]
    pub(crate) check: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Output {
    Npz(PathBuf),
    Folder(PathBuf),
}

fn input(text: &str) -> Result<(String, PathBuf), String> {
    match text.rsplit_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok((name.into(), file.into())),
        _ => Err("write it as NAME=FILE.npy".into()),
    }
}

fn dim(text: &str) -> Result<(String, u64), String> {
    let parts = text.rsplit_once('=').filter(|(name, _)| !name.is_empty());
    let parsed = parts.and_then(|(name, size)| Some((name.to_string(), size.parse().ok()?)));
    parsed.ok_or_else(|| "write it as NAME=SIZE, such as batch=8".into())
}

fn seconds(text: &str) -> Result<f64, String> {
    let parsed = text.parse().ok().filter(|s| (0.0..=86400.0).contains(s));
    parsed.ok_or_else(|| "write a number of seconds up to a day, such as 0.5".into())
}

fn output(text: &str) -> Result<Output, String> {
    let path = PathBuf::from(text);
    if text.ends_with('/') || path.is_dir() {
        Ok(Output::Folder(path))
    } else if path.extension().is_some_and(|e| e == "npz") {
        Ok(Output::Npz(path))
    } else {
        Err("give a file that ends in .npz, or a folder that ends in /".into())
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => Some(1u64),
        "K" | "KiB" => Some(1 << 10),
        "M" | "MiB" => Some(1 << 20),
        "G" | "GiB" => Some(1 << 30),
        "T" | "TiB" => Some(1 << 40),
        _ => None,
    };
    let count = digits.parse::<u64>().ok();
    let total = count.zip(unit).and_then(|(n, u)| n.checked_mul(u));
    total.ok_or_else(|| "write a number of bytes with K, M, G or T, such as 512M".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes("12"), Ok(12));
        assert_eq!(bytes("512M"), Ok(512 << 20));
        assert_eq!(bytes("1GiB"), Ok(1 << 30));
        for wrong in ["", "G", "1.5G", "-1", "1X", "99999999999T"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn inputs_and_outputs_have_a_form() {
        assert_eq!(input("a=b=c.npy"), Ok(("a=b".into(), "c.npy".into())));
        assert!(input("a").is_err() && input("=a").is_err() && input("a=").is_err());
        assert_eq!(output("x.npz"), Ok(Output::Npz("x.npz".into())));
        assert_eq!(output("x/"), Ok(Output::Folder("x/".into())));
        assert!(output("x.npy").is_err());
        assert_eq!(dim("a=b=3"), Ok(("a=b".into(), 3)));
        assert!(dim("a").is_err() && dim("=3").is_err() && dim("a=-1").is_err());
        assert!(seconds("nan").is_err() && seconds("-1").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        <Args as clap::CommandFactory>::command().debug_assert();
    }
}
