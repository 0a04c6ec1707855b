//! Faults as the command prints them. What must not be here: finding them.

use std::fmt;
use std::path::Path;

/// One diagnostic.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    code: String,
    message: String,
    help: String,
}

pub(crate) type Result<T> = std::result::Result<T, Vec<Fault>>;

/// E-RUN-101: a tensor file cannot be read.
pub(crate) const UNREADABLE: &str = "E-RUN-101";
/// E-RUN-102: a tensor file is not what its name says, or is damaged.
pub(crate) const MALFORMED: &str = "E-RUN-102";
/// E-RUN-103: a tensor file holds elements that no model takes.
pub(crate) const ELEMENTS: &str = "E-RUN-103";
/// E-RUN-104: results cannot be written.
pub(crate) const UNWRITABLE: &str = "E-RUN-104";
/// E-RUN-105: results have names that cannot all be files of one folder.
pub(crate) const NAMES: &str = "E-RUN-105";

/// E-RUN-106: inputs cannot be made with the sizes asked for.
pub(crate) const SIZES: &str = "E-RUN-106";
/// E-RUN-107: the model cannot be measured.
pub(crate) const MEASURE: &str = "E-RUN-107";

pub(crate) fn fault(code: &'static str, message: impl Into<String>, help: impl Into<String>) -> Vec<Fault> {
    vec![Fault { code: code.to_string(), message: message.into(), help: help.into() }]
}

/// A fault of a file, its name put first.
pub(crate) fn of_file(
    code: &'static str,
    path: &Path,
    what: impl fmt::Display,
    help: impl Into<String>,
) -> Vec<Fault> {
    fault(code, format!("{}: {what}", path.display()), help)
}

impl Fault {
    /// The same, of a file whose name is put first.
    pub(crate) fn of(self, path: &Path) -> Fault {
        Fault { message: format!("{}: {}", path.display(), self.message), ..self }
    }
}

/// What the runtime found, in the same form.
pub(crate) fn of_runtime(error: tgc_runtime::Error) -> Vec<Fault> {
    let each = error.faults.into_iter();
    each.map(|f| Fault { code: f.code.to_string(), message: f.message, help: f.help }).collect()
}

/// Something worth knowing that is no fault, to stderr.
pub(crate) fn note(text: &str) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), format!("note: {text}\n").as_bytes());
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error[{}]: {}", self.code, self.message)?;
        if self.help.is_empty() { Ok(()) } else { write!(f, "\n  help: {}", self.help) }
    }
}
