//! Weights in memory: processes that run one artifact share its pages.

use crate::models::MINILM;
use crate::support::{artifact, tgc_run};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Ends the process with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// KiB of the mappings of a file in a process.
#[derive(Debug, Default)]
struct Mapped {
    rss: u64,
    shared: u64,
    dirty: u64,
}

fn mapped(child: &Child, file: &Path) -> Mapped {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps", child.id())).unwrap_or_default();
    let name = file.canonicalize().unwrap();
    let (mut out, mut ours) = (Mapped::default(), false);
    for line in text.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if !first.ends_with(':') {
            ours = line.ends_with(&*name.to_string_lossy());
            continue;
        }
        let value: u64 = words.next().and_then(|n| n.parse().ok()).unwrap_or(0);
        match first {
            "Rss:" if ours => out.rss += value,
            "Shared_Clean:" | "Shared_Dirty:" if ours => out.shared += value,
            "Private_Dirty:" if ours => out.dirty += value,
            _ => {}
        }
    }
    out
}

#[test]
fn two_processes_share_the_pages_of_the_weights() {
    let file = artifact(MINILM);
    let size = std::fs::metadata(&file).unwrap().len() / 1024;
    let start = || {
        let mut c = tgc_run();
        c.arg("bench").arg(&file).args(["--random", "1", "--dim", "batch=1", "--dim", "sequence=8"]);
        c.args(["--int-max", "2", "--threads", "1", "--min-time", "60"])
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running(c.spawn().unwrap())
    };
    let mut both = [start(), start()];
    let began = Instant::now();
    loop {
        for p in &mut both {
            assert!(p.0.try_wait().unwrap().is_none(), "tgc-run has ended");
        }
        let found = [mapped(&both[0].0, &file), mapped(&both[1].0, &file)];
        // the embedding's rows are read on demand only
        if found.iter().all(|m| m.rss > size / 4) && began.elapsed() > Duration::from_secs(2) {
            for m in &found {
                assert!(m.shared * 100 >= m.rss * 95, "of {size} KiB: {found:?}");
                assert_eq!(m.dirty, 0, "{found:?}");
            }
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(50), "of {size} KiB: {found:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
