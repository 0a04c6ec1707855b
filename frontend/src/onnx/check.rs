//! Collects every reason why a model cannot be imported, so that all are told at once. Reasons of one kind are grouped.
//! Nothing here reads a model.

use crate::limits::{MAX_DIAGS, MAX_PLACES};
use std::collections::BTreeMap;
use tgc_ir::diag::Diag;

/// Ends the import of one node or part: with a diagnostic, or silently because one has been given already.
#[derive(Debug)]
pub(crate) struct Stop(Option<Box<Diag>>);

/// Result of importing a part.
pub(crate) type Res<T> = Result<T, Stop>;

impl From<Diag> for Stop {
    fn from(d: Diag) -> Stop {
        Stop(Some(Box::new(d)))
    }
}

impl Stop {
    /// The reason has been reported.
    pub(crate) fn reported() -> Stop {
        Stop(None)
    }

    /// The diagnostic.
    pub(crate) fn into_diag(self) -> Diag {
        self.0.map_or_else(|| Diag::error("E-BUG", "a reason that has been reported is not kept"), |d| *d)
    }

    /// Changes the diagnostic, if there is one.
    pub(crate) fn map(self, f: impl FnOnce(Diag) -> Diag) -> Stop {
        Stop(self.0.map(|d| Box::new(f(*d))))
    }
}

/// All that was found.
#[derive(Default)]
pub(crate) struct Report {
    errors: Vec<Diag>,
    dropped: usize,
    unsupported: BTreeMap<(String, String), (Vec<String>, usize)>,
    pub(crate) warnings: Vec<Diag>,
}

impl Report {
    /// Adds an error.
    pub(crate) fn error(&mut self, d: Diag) {
        if self.errors.len() < MAX_DIAGS {
            self.errors.push(d);
        } else {
            self.dropped += 1;
        }
    }

    /// Adds the reason for a stop.
    pub(crate) fn stop(&mut self, s: Stop) {
        if let Some(d) = s.0 {
            self.error(*d);
        }
    }

    /// Adds a warning.
    pub(crate) fn warn(&mut self, d: Diag) {
        if self.warnings.len() < MAX_DIAGS {
            self.warnings.push(d);
        }
    }

    /// Notes an operator that cannot be imported; `why` says what is known of it.
    pub(crate) fn unsupported(&mut self, op: String, why: String, place: &str) {
        let (places, count) = self.unsupported.entry((op, why)).or_default();
        *count += 1;
        if places.len() < MAX_PLACES {
            places.push(place.to_string());
        }
    }

    /// True when nothing was wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.unsupported.is_empty()
    }

    /// Every error: unsupported operators first, one diagnostic a kind.
    pub(crate) fn into_errors(self) -> Vec<Diag> {
        let mut out = Vec::new();
        for ((op, why), (places, count)) in self.unsupported {
            let plural = if count == 1 { "" } else { "s" };
            let mut d = Diag::error(
                "E-ONNX-006",
                format!("operator {op} is not supported ({count} node{plural}): {why}"),
            );
            let more = count - places.len();
            for p in places {
                d = d.note(p);
            }
            if more > 0 {
                d = d.note(format!("and {more} more"));
            }
            out.push(d.help(
                "export the model so that it does without this operator (`tgc check` lists all of them), \
                 or add the operator: docs/add-an-op.md",
            ));
        }
        out.extend(self.errors);
        if self.dropped > 0 {
            out.push(Diag::error("E-ONNX-017", format!("{} more errors are not shown", self.dropped)));
        }
        out
    }
}
