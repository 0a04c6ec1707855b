//! The side of the tests: starts the other process and asks it. `TGC_GUEST` is its command (words separated by spaces),
//! `TGC_GUEST_TARGETS` the targets whose code it runs; without the first there is none, and tests run code of this machine.

use crate::call::{Call, Outcome};
use crate::wire::{Answer, Array, Request};
use std::io::BufReader;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;

/// A running process; it ends when this is dropped.
pub struct Guest {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

/// Processes that nobody uses now.
static IDLE: Mutex<Vec<Guest>> = Mutex::new(Vec::new());

/// The targets to test in a guest; none without one.
pub fn targets() -> Vec<String> {
    if std::env::var_os("TGC_GUEST").is_none() {
        return Vec::new();
    }
    let targets = std::env::var("TGC_GUEST_TARGETS").unwrap_or_else(|_| "aarch64".to_string());
    targets.split_whitespace().map(str::to_string).collect()
}

impl Guest {
    /// One that is idle, or a new one. Fails where none can be started.
    pub fn take() -> Result<Guest, String> {
        if let Some(idle) = IDLE.lock().ok().and_then(|mut i| i.pop()) {
            return Ok(idle);
        }
        let command = std::env::var("TGC_GUEST").map_err(|_| "TGC_GUEST is not set".to_string())?;
        let mut words = command.split_whitespace();
        let mut c = Command::new(words.next().unwrap_or_default());
        c.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = c.spawn().map_err(|e| format!("TGC_GUEST={command}: {e}"))?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let from = from.ok_or_else(|| format!("TGC_GUEST={command}: no output"))?;
        Ok(Guest { child, to, from: BufReader::new(from) })
    }

    /// Keeps the process for the next that takes one.
    pub fn give_back(self) {
        if let Ok(mut idle) = IDLE.lock() {
            idle.push(self);
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, String> {
        let sent = self.to.as_mut().map(|to| request.send(to));
        match (sent, Answer::receive(&mut self.from)) {
            (Some(Ok(())), Ok(Some(Answer::Failed(why)))) => Err(why),
            (Some(Ok(())), Ok(Some(answer))) => Ok(answer),
            (sent, received) => {
                let why = [sent.and_then(Result::err), received.err()];
                let why: Vec<String> = why.into_iter().flatten().map(|e| e.to_string()).collect();
                let _ = self.child.kill();
                let end = self.child.wait().map(|s| s.to_string()).unwrap_or_default();
                Err(format!("the guest ended: {end} {}", why.join(", ")))
            }
        }
    }

    fn done(&mut self, request: &Request) -> Result<(), String> {
        match self.ask(request)? {
            Answer::Done => Ok(()),
            other => Err(format!("an answer to another question: {other:?}")),
        }
    }

    /// Gives it code.
    pub fn load(&mut self, code: &[u8]) -> Result<(), String> {
        self.done(&Request::Load(code.to_vec()))
    }

    /// Runs a kernel of the code.
    pub fn call(&mut self, call: Call) -> Result<Outcome, String> {
        match self.ask(&Request::Call(call))? {
            Answer::Buffers(b) => Ok(Ok(b)),
            Answer::Site(s) => Ok(Err(s as i32)),
            other => Err(format!("an answer to another question: {other:?}")),
        }
    }

    /// Gives it an artifact.
    pub fn open(&mut self, artifact: &[u8]) -> Result<(), String> {
        self.done(&Request::Open(artifact.to_vec()))
    }

    /// Runs an entry of the artifact.
    pub fn run(&mut self, entry: &str, threads: u64, inputs: Vec<Array>) -> Result<Vec<Array>, String> {
        match self.ask(&Request::Run { entry: entry.to_string(), threads, inputs })? {
            Answer::Arrays(a) => Ok(a),
            other => Err(format!("an answer to another question: {other:?}")),
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        drop(self.to.take());
        // It ends when its input does; one that hangs is ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
