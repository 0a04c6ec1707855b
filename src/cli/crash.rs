//! What happens when tgc itself is at fault: a dump file, a message that names it, exit code 3.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;

static LAST: Mutex<String> = Mutex::new(String::new());

/// Runs `f`; a panic becomes exit code 3 with a dump file in the folder for temporary files.
pub fn guard(f: impl FnOnce() -> ExitCode) -> ExitCode {
    std::panic::set_hook(Box::new(|info| {
        if let Ok(mut last) = LAST.lock() {
            *last = info.to_string();
        }
    }));
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(code) => code,
        Err(_) => report(&LAST.lock().map(|s| s.clone()).unwrap_or_default()),
    }
}

/// Writes the dump of a bug, says where it is, and gives exit code 3.
pub fn report(what: &str) -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let path = std::env::temp_dir().join(format!("tgc-crash-{}.txt", std::process::id()));
    let text = format!("tgc {}\ncommand: {}\n{what}\n", env!("CARGO_PKG_VERSION"), args.join(" "));
    let dump = match std::fs::write(&path, text) {
        Ok(()) => format!("details are in {}", path.display()),
        Err(e) => format!("the dump could not be written: {e}"),
    };
    let short = what.lines().take(2).collect::<Vec<_>>().join("\n  ");
    eprintln!(
        "error[E-BUG]: a bug in tgc, not in your model\n  {short}\n  {dump}\n  help: please report it with that file"
    );
    ExitCode::from(3)
}
