//! What can go wrong, as codes with a message and a remedy. What must not be here: printing, exit codes.

use std::fmt;

/// The stable number of a fault; the table of `E-RUN` codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// E-RUN-001: the file is not an artifact.
    NotArtifact,
    /// E-RUN-002: the artifact is of another format or kernel interface version.
    Version,
    /// E-RUN-003: the artifact is damaged: cut short, changed, or inconsistent in itself.
    Damaged,
    /// E-RUN-004: no code image of the artifact runs on this CPU.
    NoImage,
    /// E-RUN-005: the system refuses to map code.
    CodeMap,
    /// E-RUN-006: a file could not be read or written.
    Io,
    /// E-RUN-007: the artifact needs a part of the runtime that is not built yet.
    NotBuilt,
    /// E-RUN-010: there is no entry of this name.
    EntryName,
    /// E-RUN-011: an input is missing, unknown or given twice.
    InputName,
    /// E-RUN-012: an input has another element type.
    InputDtype,
    /// E-RUN-013: an input has another rank.
    InputRank,
    /// E-RUN-014: an input has a size that is not allowed.
    InputDim,
    /// E-RUN-015: a condition of the model does not hold for these sizes.
    Guard,
    /// E-RUN-016: no variant of the model fits these sizes, or the one that does has no program.
    Variant,
    /// E-RUN-017: a size formula has no value.
    Size,
    /// E-RUN-018: more memory is needed than allowed or available.
    Memory,
    /// E-RUN-019: a caller's buffer has a wrong length, alignment or overlaps another.
    CallerBuffer,
    /// E-RUN-020: the model failed on the data it was given.
    Data,
    /// E-RUN-021: worker threads could not be had.
    Threads,
    /// E-RUN-022: the runtime was called in a wrong order, or a tensor was made from inconsistent parts.
    Usage,
}

impl Code {
    /// The code as text: `E-RUN-014`.
    const fn as_str(self) -> &'static str {
        match self {
            Code::NotArtifact => "E-RUN-001",
            Code::Version => "E-RUN-002",
            Code::Damaged => "E-RUN-003",
            Code::NoImage => "E-RUN-004",
            Code::CodeMap => "E-RUN-005",
            Code::Io => "E-RUN-006",
            Code::NotBuilt => "E-RUN-007",
            Code::EntryName => "E-RUN-010",
            Code::InputName => "E-RUN-011",
            Code::InputDtype => "E-RUN-012",
            Code::InputRank => "E-RUN-013",
            Code::InputDim => "E-RUN-014",
            Code::Guard => "E-RUN-015",
            Code::Variant => "E-RUN-016",
            Code::Size => "E-RUN-017",
            Code::Memory => "E-RUN-018",
            Code::CallerBuffer => "E-RUN-019",
            Code::Data => "E-RUN-020",
            Code::Threads => "E-RUN-021",
            Code::Usage => "E-RUN-022",
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One fault: what was found and what is allowed, and how to get past it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Its number.
    pub code: Code,
    /// What was found, what is allowed, where.
    pub message: String,
    /// How to get past it; may be empty.
    pub help: String,
}

/// At least one fault; the first is the one to show when there is room for one only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Every fault found in the phase that failed.
    pub faults: Vec<Fault>,
}

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>, help: impl Into<String>) -> Error {
        Error { faults: vec![Fault { code, message: message.into(), help: help.into() }] }
    }

    pub(crate) fn damaged(what: impl fmt::Display) -> Error {
        Error::new(
            Code::Damaged,
            format!("the artifact is damaged: {what}"),
            "build it again, or copy it again if it was transferred",
        )
    }

    /// The error of these faults, if there are any.
    pub(crate) fn collect(faults: Vec<Fault>) -> Result<(), Error> {
        if faults.is_empty() { Ok(()) } else { Err(Error { faults }) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, fault) in self.faults.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "error[{}]: {}", fault.code, fault.message)?;
            if !fault.help.is_empty() {
                write!(f, "\n  help: {}", fault.help)?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
