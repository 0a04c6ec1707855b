//! `tgc-run profile`: the time of every step of a run, beside what the machine can do. What must not be here: how the
//! machine is measured (limits.rs), whole runs (bench.rs).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use tgc_runtime::{Manifest, Model, Session, Step, StepTime};

use crate::args::{By, Profile};
use crate::bench::{self, dims_json, inputs_text, time};
use crate::fault::{Result, UNWRITABLE, of_file, of_runtime};
use crate::inputs::{self, Inputs};
use crate::json::Json;
use crate::limits::{self, Limits};
use crate::run;

/// What the runs of one step, or of one kernel's steps, came to.
#[derive(Clone, Debug, Default)]
struct Row {
    name: String,
    label: String,
    calls: u64,
    time: Duration,
    /// Over all calls; `None` if it is not known of one.
    flops: Option<f64>,
    bytes: Option<f64>,
    workers: usize,
}

/// All runs.
struct Measured {
    /// By segment and step.
    steps: BTreeMap<(usize, usize), Row>,
    runs: u32,
    /// All runs together, from call to return.
    time: Duration,
    /// The steps of the last run, and when it began.
    last: Vec<StepTime>,
    began: Instant,
}

/// Measures the model's steps; returns what goes to stdout.
pub(crate) fn profile(args: &Profile) -> Result<String> {
    if let Some(path) = &args.trace {
        inputs::keep(&args.call, path)?;
    }
    let threads = bench::threads(args.call.threads);
    let limits = limits::measure(threads);
    let model = Model::open(&args.call.model).map_err(of_runtime)?;
    let mut session = run::session(&model, &args.call)?;
    let inputs = inputs::complete(&args.call, &args.random, session.entry())?;
    let mut measured = measure(args, &mut session, &inputs)?;
    name(&mut measured, model.manifest(), &session);
    if let Some(path) = &args.trace {
        let text = format!("{}\n", trace(&measured));
        std::fs::write(path, text)
            .map_err(|e| of_file(UNWRITABLE, path, e, "check the folder and its permissions"))?;
    }
    let rows = rows(&measured, args.by);
    if args.json {
        let head = vec![
            ("model", Json::text(args.call.model.display().to_string())),
            ("entry", Json::text(&session.entry().name)),
            ("threads", Json::number(threads as u64)),
            ("dims", dims_json(&inputs)),
        ];
        return Ok(format!("{}\n", json(head, &rows, &measured, &limits)));
    }
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = text(&mut out, args, &session, &inputs, &rows, &measured, &limits);
    Ok(out)
}

fn measure(args: &Profile, session: &mut Session, inputs: &Inputs) -> Result<Measured> {
    let mut outputs = session.run_owned(&inputs.named()).map_err(of_runtime)?;
    bench::fixed_outputs(session, &outputs)?;
    let given = inputs.in_order(session.entry());
    let mut into: Vec<&mut [u8]> = outputs.iter_mut().map(|(_, t)| t.bytes_mut()).collect();
    // Warm up, and let the list of steps grow to its size.
    let mut last: Vec<StepTime> = Vec::new();
    for _ in 0..3 {
        last.clear();
        session.profile(&given, &mut into, &mut |s| last.push(*s)).map_err(of_runtime)?;
    }
    let mut steps: BTreeMap<(usize, usize), Row> = BTreeMap::new();
    let (start, least) = (Instant::now(), Duration::from_secs_f64(args.min_time));
    let (mut runs, mut time, mut began) = (0, Duration::ZERO, start);
    while runs < args.runs || start.elapsed() < least {
        last.clear();
        began = Instant::now();
        session.profile(&given, &mut into, &mut |s| last.push(*s)).map_err(of_runtime)?;
        time += began.elapsed();
        runs += 1;
        for s in &last {
            let fresh = || Row { flops: Some(0.0), bytes: Some(0.0), ..Row::default() };
            steps
                .entry((s.segment, s.step))
                .or_insert_with(fresh)
                .add(1, s.time, s.flops, s.bytes, s.workers);
        }
    }
    Ok(Measured { steps, runs, time, last, began })
}

impl Row {
    fn add(&mut self, calls: u64, time: Duration, flops: Option<u64>, bytes: Option<u64>, workers: usize) {
        self.calls += calls;
        self.time += time;
        self.flops = self.flops.zip(flops).map(|(a, b)| a + b as f64);
        self.bytes = self.bytes.zip(bytes).map(|(a, b)| a + b as f64);
        self.workers = self.workers.max(workers);
    }

    fn join(&mut self, other: &Row) {
        self.calls += other.calls;
        self.time += other.time;
        self.flops = self.flops.zip(other.flops).map(|(a, b)| a + b);
        self.bytes = self.bytes.zip(other.bytes).map(|(a, b)| a + b);
        self.workers = self.workers.max(other.workers);
    }

    /// Per second.
    fn rate(&self, amount: Option<f64>) -> Option<f64> {
        amount.map(|a| a / self.time.as_secs_f64()).filter(|r| r.is_finite())
    }
}

/// Gives the rows the names of kernels and of places in the user's model.
fn name(measured: &mut Measured, m: &Manifest, session: &Session) {
    let Some(program) = session.program() else { return };
    for (&(segment, step), row) in &mut measured.steps {
        (row.name, row.label) = match &program.segments[segment].steps[step] {
            Step::Launch { kernel, label, .. } => (m.kernels[*kernel as usize].name.clone(), label.clone()),
            Step::Copy { src, dst, .. } => {
                let name = |b: &u32| program.buffers[*b as usize].name.as_str();
                ("copy".into(), format!("{} to {}", name(src), name(dst)))
            }
            Step::Opaque { op, .. } => (op.clone(), String::new()),
            Step::If { .. } => ("if".into(), String::new()),
            Step::Loop { .. } => ("loop".into(), String::new()),
        };
    }
}

/// Steps in their order, or kernels by name.
fn rows(measured: &Measured, by: By) -> Vec<Row> {
    if by == By::Step {
        return measured.steps.values().cloned().collect();
    }
    let mut kernels: BTreeMap<&str, (usize, Row)> = BTreeMap::new();
    for step in measured.steps.values() {
        let (n, row) = kernels.entry(&step.name).or_insert_with(|| (0, Row::default()));
        *n += 1;
        match *n {
            1 => *row = step.clone(),
            n => {
                row.join(step);
                row.label = format!("{n} steps");
            }
        }
    }
    kernels.into_values().map(|(_, row)| row).collect()
}

/// A share in percent, where both are known.
fn percent(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    part.zip(whole).map(|(p, w)| 100.0 * p / w).filter(|p| p.is_finite())
}

fn json(head: Vec<(&'static str, Json)>, rows: &[Row], m: &Measured, limits: &Limits) -> Json {
    let known = |x: Option<f64>| x.map_or(Json::Null, |x| Json::Real((x * 1e3).round() / 1e3));
    let all: f64 = rows.iter().map(|r| r.time.as_secs_f64()).sum();
    let row = |r: &Row| {
        let (flops, bytes) = (r.rate(r.flops), r.rate(r.bytes));
        let each = |x: Option<f64>| x.map(|x| x / r.calls as f64);
        Json::Map(vec![
            ("kernel", Json::text(&r.name)),
            ("label", Json::text(&r.label)),
            ("calls", Json::number(r.calls)),
            ("total_us", known(Some(r.time.as_secs_f64() * 1e6))),
            ("share_percent", known(percent(Some(r.time.as_secs_f64()), Some(all)))),
            ("workers", Json::number(r.workers as u64)),
            ("flops_per_call", known(each(r.flops))),
            ("bytes_per_call", known(each(r.bytes))),
            ("gflops_per_s", known(flops.map(|f| f / 1e9))),
            ("gbytes_per_s", known(bytes.map(|b| b / 1e9))),
            ("fma_peak_percent", known(percent(flops, limits.flops))),
            ("read_rate_percent", known(percent(bytes, Some(limits.bytes)))),
        ])
    };
    let limits = Json::Map(vec![
        ("instructions", Json::text(limits.instructions)),
        ("gflops_per_s", known(limits.flops.map(|f| f / 1e9))),
        ("gbytes_per_s", known(Some(limits.bytes / 1e9))),
    ]);
    let mut map = head;
    map.extend([
        ("limits", limits),
        ("runs", Json::number(m.runs)),
        ("run_us", known(Some(m.time.as_secs_f64() * 1e6 / f64::from(m.runs)))),
        ("rows", Json::list(rows, row)),
    ]);
    Json::Map(map)
}

fn text(
    out: &mut String,
    args: &Profile,
    session: &Session,
    inputs: &Inputs,
    rows: &[Row],
    m: &Measured,
    limits: &Limits,
) -> std::fmt::Result {
    let n = bench::threads(args.call.threads);
    let s = if n == 1 { "" } else { "s" };
    writeln!(out, "{}: entry {}, {n} thread{s}", args.call.model.display(), session.entry().name)?;
    inputs_text(out, inputs, args.random.random, args.random.int_max)?;
    let peak = limits.flops.map_or("unknown".into(), |f| format!("{:.1} GFLOP/s", f / 1e9));
    let read = limits.bytes / 1e9;
    writeln!(out, "  machine       {peak} ({}), {read:.1} GB/s read from memory", limits.instructions)?;
    let all: f64 = rows.iter().map(|r| r.time.as_secs_f64()).sum();
    let runs = f64::from(m.runs);
    writeln!(
        out,
        "  a run         {}, {} of it in steps ({} runs, times being taken)",
        time(m.time.as_secs_f64() / runs),
        time(all / runs),
        m.runs
    )?;
    writeln!(out, "  times and rates are of one run; more than 100 % of the read rate comes from caches\n")?;
    writeln!(
        out,
        "{:>12} {:>6} {:>6} {:>3} {:>9} {:>6} {:>8} {:>6}  kernel  (where)",
        "time", "share", "calls", "thr", "GFLOP/s", "%peak", "GB/s", "%read"
    )?;
    let mut order: Vec<&Row> = rows.iter().collect();
    order.sort_by_key(|r| std::cmp::Reverse(r.time));
    let show = |x: Option<f64>, digits: usize| x.map_or("-".into(), |x| format!("{x:.digits$}"));
    for r in order.iter().take(args.top) {
        let (flops, bytes, spent) = (r.rate(r.flops), r.rate(r.bytes), r.time.as_secs_f64());
        writeln!(
            out,
            "{:>12} {:>5.1}% {:>6} {:>3} {:>9} {:>6} {:>8} {:>6}  {}{}",
            time(spent / runs),
            100.0 * spent / all.max(f64::MIN_POSITIVE),
            r.calls / u64::from(m.runs),
            r.workers,
            show(flops.map(|f| f / 1e9), 2),
            show(percent(flops, limits.flops), 1),
            show(bytes.map(|b| b / 1e9), 2),
            show(percent(bytes, Some(limits.bytes)), 1),
            r.name,
            if r.label.is_empty() { String::new() } else { format!("  ({})", r.label) },
        )?;
    }
    if let Some(rest) = order.get(args.top..).filter(|r| !r.is_empty()) {
        let spent: f64 = rest.iter().map(|r| r.time.as_secs_f64()).sum();
        writeln!(out, "{:>12} {:>5.1}%  {} more", time(spent / runs), 100.0 * spent / all, rest.len())?;
    }
    Ok(())
}

/// The steps of the last run as trace events.
fn trace(m: &Measured) -> Json {
    let us = |d: Duration| Json::Real(d.as_nanos() as f64 / 1e3);
    let event = |s: &StepTime| {
        let row = m.steps.get(&(s.segment, s.step));
        let (name, label) = row.map_or(("", ""), |r| (&r.name, &r.label));
        let amount = |x: Option<u64>| x.map_or(Json::Null, Json::number);
        let about = Json::Map(vec![
            ("where", Json::text(label)),
            ("segment", Json::number(s.segment as u64)),
            ("step", Json::number(s.step as u64)),
            ("flops", amount(s.flops)),
            ("bytes", amount(s.bytes)),
            ("threads", Json::number(s.workers as u64)),
        ]);
        Json::Map(vec![
            ("name", Json::text(name)),
            ("cat", Json::text("step")),
            ("ph", Json::text("X")),
            ("ts", us(s.began.saturating_duration_since(m.began))),
            ("dur", us(s.time)),
            ("pid", Json::number(1)),
            ("tid", Json::number(1)),
            ("args", about),
        ])
    };
    Json::Map(vec![("traceEvents", Json::list(&m.last, event)), ("displayTimeUnit", Json::text("ns"))])
}
