//! Cases in worker processes: the death of one, its memory and its time are those of the case it was at.

use crate::WORKER;
use crate::samples::{self, Held};
use crate::verdict::Verdict;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No case takes more of a CPU's time, in seconds; machine code for a trained model takes most.
const LIMIT: f64 = if cfg!(debug_assertions) { 60.0 } else { 30.0 };
/// No case waits longer, for whatever.
const WAIT: Duration = Duration::from_secs(1200);
/// Memory that a case may use at most, with what the process has from the start.
const MEMORY: u64 = 1 << 30;
/// Address space of a worker in KiB: what asks for more without need dies of it.
const ADDRESSES: u64 = 3 << 20;

/// What became of a case.
pub struct End {
    pub what: String,
    /// A word, or what must not happen.
    pub verdict: Result<String, String>,
    /// The process's greatest memory up to then.
    pub peak: u64,
}

/// Runs all cases, in as many processes as there are CPUs.
pub fn run_all(cases: &[(&str, usize)]) -> Vec<End> {
    let todo: Mutex<VecDeque<usize>> = Mutex::new((0..cases.len()).collect());
    let ends: Mutex<Vec<Option<End>>> = Mutex::new(cases.iter().map(|_| None).collect());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(|| {
                let mut worker = None;
                loop {
                    let Some(i) = todo.lock().unwrap().pop_front() else { break };
                    let (file, n) = cases[i];
                    let end = worker.get_or_insert_with(Worker::start).ask(file, n, LIMIT);
                    if end.verdict.is_err() {
                        // the next case starts afresh
                        worker = None;
                    } else {
                        let _ = std::fs::remove_file(samples::damaged(file, n));
                    }
                    let _ = std::fs::remove_file(samples::damaged(file, n).with_extension("safetensors"));
                    if let Err(why) = &end.verdict {
                        eprintln!("{file}:{n} ({}): {why}", end.what);
                    }
                    ends.lock().unwrap()[i] = Some(end);
                    if (i + 1) % 1000 == 0 {
                        eprintln!("{} of {} cases", i + 1, cases.len());
                    }
                }
            });
        }
    });
    let ends = ends.into_inner().unwrap();
    ends.into_iter().map(|e| e.expect("a worker thread ended early")).collect()
}

/// That each thing which must not happen is noticed.
pub fn notices() -> Result<(), String> {
    let kinds = [
        ("panic", "a panic: "),
        ("death", "the process ended: "),
        ("hang", "no end after "),
        ("memory", " MiB of memory"),
        ("addresses", "the process ended: "),
    ];
    for (kind, words) in kinds {
        let end = Worker::start().ask(&format!("{MISDEED}{kind}"), 0, 2.0);
        match end.verdict {
            Err(why) if why.contains(words) => {}
            other => return Err(format!("{kind} is taken for {other:?}")),
        }
    }
    Ok(())
}

/// Before the name of something that a worker is asked to do wrong.
const MISDEED: &str = "misdeed-";

fn misdeed(kind: &str) -> (String, Result<Verdict, String>) {
    match kind {
        "panic" => panic!("as asked"),
        "death" => std::process::abort(),
        "hang" => loop {
            std::hint::black_box(kind);
        },
        "memory" => _ = std::hint::black_box(vec![1u8; MEMORY as usize + 1]),
        _ => _ = std::hint::black_box(vec![0u8; (ADDRESSES as usize) << 11]),
    }
    (String::new(), Ok(Verdict::Accepted("done")))
}

struct Worker {
    child: Child,
    lines: Receiver<String>,
}

impl Worker {
    fn start() -> Worker {
        let limited = format!("ulimit -v {ADDRESSES}; exec \"$0\"");
        let mut child = Command::new("sh")
            .args(["-c", &limited])
            .arg(std::env::current_exe().unwrap())
            .env(WORKER, "1")
            .env("RAYON_NUM_THREADS", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            let said = stdout.lines().map_while(Result::ok);
            said.take_while(|line| send.send(line.clone()).is_ok()).for_each(drop);
        });
        Worker { child, lines }
    }

    /// What becomes of a case within `limit` seconds of a CPU.
    fn ask(&mut self, file: &str, n: usize, limit: f64) -> End {
        let stdin = self.child.stdin.as_mut().unwrap();
        let said = match writeln!(stdin, "{file}\t{n}").and_then(|()| stdin.flush()) {
            Ok(()) => self.wait(limit),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        };
        let why = match said {
            Ok(line) => return read(&line),
            Err(RecvTimeoutError::Timeout) => format!("no end after {limit} s"),
            Err(RecvTimeoutError::Disconnected) => {
                let how = self.child.wait().map(|s| s.to_string()).unwrap_or_default();
                format!("the process ended: {how}")
            }
        };
        End { what: "damage not told".into(), verdict: Err(why), peak: 0 }
    }
}

impl Worker {
    /// The worker's line, or that it has died or takes too long.
    fn wait(&self, limit: f64) -> Result<String, RecvTimeoutError> {
        let (began, used) = (Instant::now(), cpu_seconds(self.child.id()));
        loop {
            match self.lines.recv_timeout(Duration::from_millis(500)) {
                Err(RecvTimeoutError::Timeout) => {}
                said => return said,
            }
            if cpu_seconds(self.child.id()) - used > limit || began.elapsed() > WAIT {
                return Err(RecvTimeoutError::Timeout);
            }
        }
    }
}

/// The CPU time a process has used; 0 if it is gone.
fn cpu_seconds(process: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) / 100.0
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a worker said: a word or a finding, its peak, the damage.
fn read(line: &str) -> End {
    let mut parts = line.splitn(4, '\t').map(str::to_string);
    let mut next = || parts.next().unwrap_or_default();
    let (kind, peak, said, what) = (next(), next().parse().unwrap_or(0), next(), next());
    let verdict = match kind.as_str() {
        "fine" if peak > MEMORY => Err(format!("{} MiB of memory", peak >> 20)),
        "fine" => Ok(said),
        "finding" => Err(said),
        _ => Err(format!("a worker said {line:?}")),
    };
    End { what, verdict, peak }
}

/// Reads cases, a line each, and says what becomes of them.
pub fn work() {
    let mut held = Held::default();
    static SAID: Mutex<String> = Mutex::new(String::new());
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut said) = SAID.lock() {
            *said = info.to_string();
        }
    }));
    for line in std::io::stdin().lines().map_while(Result::ok) {
        let Some((file, n)) = line.split_once('\t') else { continue };
        let Ok(n) = n.parse() else { continue };
        let run = AssertUnwindSafe(|| match file.strip_prefix(MISDEED) {
            Some(kind) => misdeed(kind),
            None => held.case(file, n),
        });
        let (what, verdict) = catch_unwind(run).unwrap_or_else(|_| {
            let said = SAID.lock().map(|s| s.clone()).unwrap_or_default();
            ("damage not told".into(), Err(format!("a panic: {said}")))
        });
        let (kind, said) = match verdict {
            Ok(v) => ("fine", v.word()),
            Err(why) => ("finding", why),
        };
        let flat = |s: &str| s.replace(['\n', '\t', '\r'], " ");
        println!("{kind}\t{}\t{}\t{}", peak(), flat(&said), flat(&what));
    }
}

/// The most memory this process has had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let kib = line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.map_or(0, |k| k << 10)
}
