//! The ONNX backend suite, counted: every case imported, run by the interpreter and by compiled code, and compared with
//! the stored outputs, as the files have it and with the sizes of the inputs as symbols. The result is
//! docs/conformance.md, which must be what this run finds: more passes need a new file
//! (`TGC_WRITE=1 cargo test --test conformance`), fewer are a failure, wrong results and crashes always are.
//!
//! Cases run in processes of their own, many after another; one that dies is a crash of the case it was at.
//! Small models of public bug reports of other compilers, with the right answers, are run the same way: reported.tsv says
//! what must become of each.
//!
//! `TGC_CASES=relu,conv` runs only cases whose names contain one of the words and prints what becomes of them.

mod case;
mod report;
mod stored;

use case::{Case, Outcome};
use libtest_mimic::{Arguments, Trial};
use report::Row;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// The process is a worker and reads names of cases.
const WORKER: &str = "TGC_CONFORMANCE_WORKER";
/// No case takes nearly as long.
const LIMIT: Duration = Duration::from_secs(120);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn suite() -> PathBuf {
    let p = root().join("target/models/onnx-suite-1.22.0");
    assert!(p.exists(), "{} is missing: run ./test, which prepares it", p.display());
    p
}

fn main() {
    if std::env::var_os(WORKER).is_some() {
        work();
        return;
    }
    let args = Arguments::from_args();
    if args.list {
        let names = ["suite", "reported"].map(|n| Trial::test(n, || Ok(())));
        libtest_mimic::run(&args, names.into()).exit();
    }
    let trial = Trial::test("suite", || {
        let mut rows = report::tiers();
        let words = std::env::var("TGC_CASES").unwrap_or_default();
        let chosen = |r: &Row| words.split(',').any(|w| r.name.contains(w));
        rows.retain(chosen);
        run_all(&mut rows);
        if !words.is_empty() {
            for r in &rows {
                println!("{} {}: {:?}; with symbols: {:?}", r.kind, r.name, r.fixed, r.dynamic);
            }
            return Ok(());
        }
        report::judge(&rows, &root().join("docs/conformance.md")).map_err(Into::into)
    });
    let reported = Trial::test("reported", || {
        let mut rows = report::reported();
        run_all(&mut rows);
        report::judge_reported(&rows).map_err(Into::into)
    });
    libtest_mimic::run(&args, vec![trial, reported]).exit();
}

/// Runs all rows, in as many processes as there are CPUs.
fn run_all(rows: &mut [Row]) {
    let todo: Mutex<VecDeque<usize>> = Mutex::new((0..rows.len()).collect());
    let names: Vec<(String, String)> = rows.iter().map(|r| (r.kind.clone(), r.name.clone())).collect();
    let found = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(|| {
                let next = || todo.lock().unwrap().pop_front();
                drive(&names, &next, &|i, f, d| found.lock().unwrap().push((i, f, d)));
            });
        }
    });
    for (i, fixed, dynamic) in found.into_inner().unwrap() {
        (rows[i].fixed, rows[i].dynamic) = (fixed, dynamic);
    }
}

/// Feeds one worker process after another.
fn drive(
    names: &[(String, String)],
    next: &dyn Fn() -> Option<usize>,
    done: &dyn Fn(usize, Outcome, Outcome),
) {
    let mut at = next();
    while at.is_some() {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .env(WORKER, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        let reader = std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        while let Some(i) = at {
            let (kind, name) = &names[i];
            let said = match writeln!(stdin, "{kind}\t{name}") {
                Ok(()) => lines.recv_timeout(LIMIT),
                Err(_) => Err(RecvTimeoutError::Disconnected),
            };
            at = match said {
                Ok(line) => {
                    let (fixed, dynamic) = report::read_line(&line);
                    done(i, fixed, dynamic);
                    next()
                }
                Err(e) => {
                    let _ = child.kill();
                    let how = child.wait().map(|s| s.to_string()).unwrap_or_default();
                    let why = match e {
                        RecvTimeoutError::Timeout => format!("no end after {} s", LIMIT.as_secs()),
                        RecvTimeoutError::Disconnected => format!("the process ended: {how}"),
                    };
                    done(i, Outcome::Crash(why), Outcome::None);
                    at = next();
                    break;
                }
            };
        }
        drop(stdin);
        let _ = child.wait();
        let _ = reader.join();
    }
}

/// Reads names of cases, a line each, and writes what becomes of them.
fn work() {
    let suite = suite();
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some((kind, name)) = line.split_once('\t') else { continue };
        let (fixed, dynamic) = match kind {
            "light" => (case::light(&suite, name), Outcome::None),
            report::REPORTED => Case { folder: root().join("tests/data/cases").join(name) }.run(),
            kind => Case { folder: stored::folder(&suite, kind, name) }.run(),
        };
        println!("{}", report::line(&fixed, &dynamic));
    }
}
