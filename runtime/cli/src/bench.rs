//! `tgc-run bench`: how long loading, the first result and a run take, and in how much memory. What must not be here:
//! where inputs come from; times of single steps.

use std::fmt::Write;
use std::time::{Duration, Instant};

use tgc_runtime::{Model, Session, Tensor, plan_program};

use crate::args::Bench;
use crate::fault::{MEASURE, Result, fault, of_runtime};
use crate::inputs::{self, Inputs};
use crate::json::Json;
use crate::run;

/// A timing spans at least this much, so that reading the clock does not show.
const BATCH: Duration = Duration::from_micros(100);
/// Runs that are not timed go on for this long at most.
const WARM_UP: Duration = Duration::from_millis(200);

/// What was measured.
struct Figures {
    artifact: u64,
    load: Duration,
    first_result: Duration,
    /// Seconds of one run, ascending: one number a timing.
    times: Vec<f64>,
    /// Runs in a timing.
    batch: u32,
    memory: u64,
    /// Bytes of the arena, a part of `memory`.
    arena: Option<u64>,
    peak_rss: Option<u64>,
}

/// Measures the model; returns what goes to stdout.
pub(crate) fn bench(args: &Bench) -> Result<String> {
    let began = Instant::now();
    let model = Model::open(&args.call.model).map_err(of_runtime)?;
    let load = began.elapsed();
    let mut session = run::session(&model, &args.call)?;
    // Making the inputs is no part of the way to the first result.
    let made = Instant::now();
    let inputs = inputs::complete(&args.call, &args.random, session.entry())?;
    let making = made.elapsed();
    let mut outputs = session.run_owned(&inputs.named()).map_err(of_runtime)?;
    let first_result = began.elapsed().saturating_sub(making);
    let (times, batch) = measure(args, &mut session, &inputs, &mut outputs)?;
    let figures = Figures {
        artifact: std::fs::metadata(&args.call.model).map_or(0, |m| m.len()),
        load,
        first_result,
        times,
        batch,
        memory: session.memory(),
        arena: arena(&session, &inputs),
        peak_rss: peak_rss(),
    };
    if args.json {
        return Ok(format!("{}\n", json(args, &model, &session, &inputs, &figures)));
    }
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text(&mut out, args, &model, &session, &inputs, &figures);
    Ok(out)
}

/// Times runs into outputs made before; gives seconds a run, ascending, and how many runs a timing has.
fn measure(
    args: &Bench,
    session: &mut Session,
    inputs: &Inputs,
    outputs: &mut [(String, Tensor)],
) -> Result<(Vec<f64>, u32)> {
    let given = inputs.in_order(session.entry());
    fixed_outputs(session, outputs)?;
    let mut into: Vec<&mut [u8]> = outputs.iter_mut().map(|(_, t)| t.bytes_mut()).collect();
    let mut time = |batch: u32| -> Result<Duration> {
        let began = Instant::now();
        for _ in 0..batch {
            session.run(&given, &mut into).map_err(of_runtime)?;
        }
        Ok(began.elapsed())
    };
    let least = Duration::from_secs_f64(args.min_time);
    let (began, mut batch) = (Instant::now(), 1u32);
    let mut last = time(batch)?;
    while began.elapsed() < WARM_UP.min(least) || last < BATCH {
        if last < BATCH {
            batch = batch.saturating_mul(2);
        }
        last = time(batch)?;
    }
    let mut times = Vec::with_capacity(1 << 16);
    let began = Instant::now();
    while times.len() < args.runs as usize || began.elapsed() < least {
        times.push(time(batch)?.as_secs_f64() / f64::from(batch));
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok((times, batch))
}

/// The outputs of the first run are used again and again: their sizes must not depend on data.
pub(crate) fn fixed_outputs(session: &Session, outputs: &[(String, Tensor)]) -> Result<()> {
    let n = session.entry().outputs.len();
    if outputs.len() == n && (0..n).all(|i| session.output_shape(i).is_some()) {
        return Ok(());
    }
    let what = "the sizes of its outputs depend on data, so that outputs cannot be made before a run";
    Err(fault(MEASURE, what, "measure an entry whose output sizes follow from its input sizes"))
}

impl Figures {
    /// The time that this share of the timings does not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let last = self.times.len().saturating_sub(1);
        self.times.get((last as f64 * share).round() as usize).copied().unwrap_or(f64::NAN)
    }

    fn mean(&self) -> f64 {
        self.times.iter().sum::<f64>() / self.times.len() as f64
    }
}

/// Bytes of temporaries at the sizes measured.
fn arena(session: &Session, inputs: &Inputs) -> Option<u64> {
    let syms: Vec<Option<i64>> = inputs.dims.iter().map(|d| i64::try_from(d.1).ok()).collect();
    plan_program(session.entry(), session.program()?, &syms).ok().map(|p| p.size)
}

/// The most memory this process has had in use, as the system counts it.
fn peak_rss() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
}

pub(crate) fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

fn json(args: &Bench, model: &Model, session: &Session, inputs: &Inputs, f: &Figures) -> Json {
    let us = |s: f64| Json::Real((s * 1e9).round() / 1e3);
    let ms = |d: Duration| Json::Real(d.as_nanos() as f64 / 1e6);
    let target = model.image().map_or(Json::Null, |i| Json::text(&i.target));
    let mut map = vec![
        ("model", Json::text(args.call.model.display().to_string())),
        ("entry", Json::text(&session.entry().name)),
        ("image", target),
        ("threads", Json::number(threads(args.call.threads) as u64)),
        ("dims", dims_json(inputs)),
        ("random_inputs", Json::list(&inputs.made, Json::text)),
        ("artifact_bytes", Json::number(f.artifact)),
        ("load_ms", ms(f.load)),
        ("first_result_ms", ms(f.first_result)),
    ];
    map.extend([
        ("median_us", us(f.quantile(0.5))),
        ("min_us", us(f.quantile(0.0))),
        ("p90_us", us(f.quantile(0.9))),
        ("mean_us", us(f.mean())),
        ("timings", Json::number(f.times.len() as u64)),
        ("runs_per_timing", Json::number(f.batch)),
        ("memory_bytes", Json::number(f.memory)),
        ("arena_bytes", f.arena.map_or(Json::Null, Json::number)),
        ("peak_rss_bytes", f.peak_rss.map_or(Json::Null, Json::number)),
    ]);
    Json::Map(map)
}

/// The dims with their sizes.
pub(crate) fn dims_json(inputs: &Inputs) -> Json {
    Json::list(&inputs.dims, |(name, size, chosen)| {
        Json::Map(vec![
            ("name", Json::text(name)),
            ("size", Json::number(*size)),
            ("given", Json::Flag(!chosen)),
        ])
    })
}

fn text(
    out: &mut String,
    args: &Bench,
    model: &Model,
    session: &Session,
    inputs: &Inputs,
    f: &Figures,
) -> std::fmt::Result {
    let target = model.image().map_or("", |i| i.target.as_str());
    let n = threads(args.call.threads);
    writeln!(
        out,
        "{}: entry {}, {n} thread{}, image {target}",
        args.call.model.display(),
        session.entry().name,
        if n == 1 { "" } else { "s" }
    )?;
    inputs_text(out, inputs, args.random.random, args.random.int_max)?;
    writeln!(out, "  artifact      {}", size(f.artifact))?;
    writeln!(out, "  load          {}", time(f.load.as_secs_f64()))?;
    writeln!(out, "  first result  {} (load, bind and run)", time(f.first_result.as_secs_f64()))?;
    let several = if f.batch == 1 { String::new() } else { format!(" of {} runs each", f.batch) };
    writeln!(out, "  median        {}  ({} timings{several})", time(f.quantile(0.5)), f.times.len())?;
    writeln!(out, "  min           {}", time(f.quantile(0.0)))?;
    writeln!(out, "  p90           {}", time(f.quantile(0.9)))?;
    writeln!(out, "  mean          {}", time(f.mean()))?;
    let arena = f.arena.map_or(String::new(), |a| format!(" (the arena: {})", size(a)));
    writeln!(out, "  memory        {} for temporaries, scratch and states{arena}", size(f.memory))?;
    if let Some(peak) = f.peak_rss {
        writeln!(out, "  peak RSS      {}", size(peak))?;
    }
    Ok(())
}

/// How the inputs came about.
pub(crate) fn inputs_text(out: &mut String, inputs: &Inputs, seed: u64, bound: u64) -> std::fmt::Result {
    let show = |chosen: bool| {
        let some = inputs.dims.iter().filter(|d| d.2 == chosen).map(|(n, v, _)| format!("{n}={v}"));
        some.collect::<Vec<_>>().join(", ")
    };
    let (given, chosen) = (show(false), show(true));
    if !given.is_empty() {
        writeln!(out, "  dims          {given}")?;
    }
    if !chosen.is_empty() {
        writeln!(out, "  not given     {chosen}: the smallest allowed; --dim NAME=SIZE gives another")?;
    }
    if !inputs.made.is_empty() {
        writeln!(out, "  random        {} (seed {seed})", inputs.made.join(", "))?;
    }
    if inputs.integers {
        writeln!(out, "                integers are uniform in 0..{bound}; --int-max N gives another bound")?;
    }
    Ok(())
}

/// A time with its unit.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        s if s < 1e-3 => format!("{:.3} us", s * 1e6),
        s if s < 1.0 => format!("{:.3} ms", s * 1e3),
        s => format!("{s:.3} s"),
    }
}

/// Bytes with their unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        b if b < 10 << 10 => format!("{b} bytes"),
        b if b < 10 << 20 => format!("{:.1} KiB", b as f64 / 1024.0),
        b => format!("{:.1} MiB", b as f64 / 1_048_576.0),
    }
}
