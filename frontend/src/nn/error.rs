//! Errors of traced and eager code: where they go, and how a user sees them. Nothing here computes.
//!
//! Eager code panics at the user's line. While tracing, an op's error is recorded and the op gives a tensor on which
//! further ops are silent, so that one run finds every independent error. A call that must give a plain value ends the
//! trace at once.

use super::trace;
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use tgc_ir::diag::{Diag, Loc};

/// Most errors that one trace reports.
const MOST: usize = 20;

/// Everything found wrong, at least one diagnostic. `Debug` prints the same as `Display`, since that is what `main`
/// prints of an error it returns.
#[derive(Clone, PartialEq)]
pub struct Errors(Vec<Diag>);

impl Errors {
    pub(crate) fn new(mut all: Vec<Diag>) -> Errors {
        let more = all.len().saturating_sub(MOST);
        all.truncate(MOST);
        if more > 0 {
            all.push(Diag::error("E-NN-001", format!("{more} more errors are not shown")));
        }
        Errors(all)
    }

    /// The diagnostics in the order they were found.
    pub fn diags(&self) -> &[Diag] {
        &self.0
    }
}

impl From<Diag> for Errors {
    fn from(d: Diag) -> Errors {
        Errors(vec![d])
    }
}

impl fmt::Display for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(|d| d.to_string()).collect();
        f.write_str(&all.join("\n"))
    }
}

impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Errors {}

/// Unwinds out of a trace that cannot go on; its errors are recorded.
pub(crate) struct TraceEnd;

/// Unwinds to the nearest [`catch`].
struct Caught(Diag);

thread_local! {
    static CATCHING: Cell<usize> = const { Cell::new(0) };
}

/// Runs eager code; an error of a tensor operation inside is given instead of a panic. Other panics pass through.
pub fn catch<R>(f: impl FnOnce() -> R) -> Result<R, Errors> {
    let depth = trace::depth();
    CATCHING.set(CATCHING.get() + 1);
    let result = catch_unwind(AssertUnwindSafe(f));
    CATCHING.set(CATCHING.get() - 1);
    result.map_err(|payload| match payload.downcast::<Caught>() {
        Ok(c) => {
            trace::cut(depth);
            Errors::from(c.0)
        }
        Err(other) => resume_unwind(other),
    })
}

/// Reports an error of an operation: recorded while tracing, else a panic at the user's line.
#[track_caller]
pub(crate) fn report(d: Diag, at: &'static Location<'static>) {
    if trace::is_tracing() {
        trace::record(d, at);
    } else {
        end(d, at)
    }
}

/// [`report`] for a call that cannot go on: also ends the trace.
#[track_caller]
pub(crate) fn end(d: Diag, at: &'static Location<'static>) -> ! {
    let caught = CATCHING.get() > 0 && !trace::is_tracing();
    if !caught && trace::record(d.clone(), at) {
        resume_unwind(Box::new(TraceEnd))
    }
    let d = d.at(&Loc::new(format!("{}:{}", at.file(), at.line())));
    if caught {
        resume_unwind(Box::new(Caught(d)))
    }
    // not a fault of ours: how eager code stops at the user's line, as documented
    panic!("{d}")
}
