//! `peers ENGINE MODEL ...`: one engine on one model in one process. Loads, runs once, warms up, then times runs; prints
//! one JSON line. The same loop for all engines, so that only the engines differ. What must not be here: the engines.

mod npy;
mod onnxruntime;
mod openvino;
mod tract;

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use npy::Array;

/// What may go wrong in an engine; told as it comes.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// A loaded model with its inputs set.
pub(crate) trait Engine {
    /// One inference, into memory that earlier runs used too where the engine can do so.
    fn run(&mut self) -> Result<()>;
    /// What the first run gave, in the model's order.
    fn outputs(&mut self) -> Result<Vec<Array>>;
}

/// The command line.
pub(crate) struct Job {
    pub(crate) model: PathBuf,
    pub(crate) threads: usize,
    pub(crate) library: PathBuf,
    pub(crate) inputs: Vec<(String, Array)>,
    /// Sizes of the model's named dims, for engines that take them by name.
    pub(crate) dims: Vec<(String, i64)>,
    seconds: f64,
    save: Option<PathBuf>,
}

const USAGE: &str = "usage: peers onnxruntime|openvino|tract MODEL.onnx --input NAME=FILE.npy [--dim NAME=N] \
                     [--threads N] [--seconds S] [--library FILE] [--save DIR]";

fn job(mut args: impl Iterator<Item = String>) -> Result<Job> {
    let mut job = Job {
        model: args.next().ok_or(USAGE)?.into(),
        threads: 1,
        library: PathBuf::new(),
        inputs: Vec::new(),
        dims: Vec::new(),
        seconds: 2.0,
        save: None,
    };
    while let Some(option) = args.next() {
        let value = args.next().ok_or(USAGE)?;
        let pair = || value.split_once('=').ok_or(USAGE);
        match option.as_str() {
            "--input" => job.inputs.push((pair()?.0.into(), Array::read(pair()?.1.as_ref())?)),
            "--dim" => job.dims.push((pair()?.0.into(), pair()?.1.parse()?)),
            "--threads" => job.threads = value.parse()?,
            "--seconds" => job.seconds = value.parse()?,
            "--library" => job.library = value.into(),
            "--save" => job.save = Some(value.into()),
            _ => return Err(USAGE.into()),
        }
    }
    Ok(job)
}

/// Shortest time worth reading the clock for: runs below it are timed in batches.
const TICK: f64 = 100e-6;

/// Sorted times of one run, in seconds: at least 10, and as many as fit into the time given.
fn warm(engine: &mut dyn Engine, seconds: f64) -> Result<Vec<f64>> {
    let (start, mut n) = (Instant::now(), 0u32);
    while n < 3 || start.elapsed() < Duration::from_millis(300) {
        engine.run()?;
        n += 1;
    }
    let batch = (TICK * f64::from(n) / start.elapsed().as_secs_f64()).ceil().max(1.0) as u32;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 10 || start.elapsed().as_secs_f64() < seconds {
        let t = Instant::now();
        for _ in 0..batch {
            engine.run()?;
        }
        times.push(t.elapsed().as_secs_f64() / f64::from(batch));
    }
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// The greatest resident size of this process so far, in bytes.
fn peak_rss() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn measure() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or(USAGE)?;
    let job = job(args)?;
    let start = Instant::now();
    let mut engine: Box<dyn Engine> = match name.as_str() {
        "onnxruntime" => Box::new(onnxruntime::load(&job)?),
        "openvino" => Box::new(openvino::load(&job)?),
        "tract" => Box::new(tract::load(&job)?),
        _ => return Err(USAGE.into()),
    };
    let load = start.elapsed();
    engine.run()?;
    let first = start.elapsed();
    if let Some(dir) = &job.save {
        std::fs::create_dir_all(dir)?;
        for (i, array) in engine.outputs()?.iter().enumerate() {
            array.write(&dir.join(format!("{i}.npy")))?;
        }
    }
    let times = warm(engine.as_mut(), job.seconds)?;
    let at = |percent: usize| times[times.len() * percent / 100] * 1e6;
    println!(
        r#"{{"load_ms": {}, "first_result_ms": {}, "median_us": {}, "min_us": {}, "p90_us": {}, "peak_rss_bytes": {}}}"#,
        load.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        at(50),
        at(0),
        at(90),
        peak_rss()?
    );
    Ok(())
}

fn main() -> std::process::ExitCode {
    match measure() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e:#}");
            std::process::ExitCode::FAILURE
        }
    }
}
