//! Diagnostics: coded messages with a place and a remedy. Every error a user can cause is one of these; how they are
//! drawn on a terminal is the caller's business.

use std::fmt;
use std::sync::Arc;

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The input is at fault, or something is not supported.
    Error,
    /// Worth knowing; the work goes on.
    Warning,
}

/// Byte range in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Where something is: an ONNX node, a Rust source line, a position in text, a graph node.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Loc {
    /// In words, for example "node `Add_3` (Add)" or "model.rs:14 (encoder.layer.3)". Empty when unknown.
    pub place: Arc<str>,
    /// Names of the rewrite rules that made this node from that place, oldest first.
    pub rules: Vec<Arc<str>>,
    /// Position in the text it was parsed from.
    pub span: Option<Span>,
}

impl Loc {
    /// A place in words.
    pub fn new(place: impl AsRef<str>) -> Loc {
        Loc { place: Arc::from(place.as_ref()), ..Loc::default() }
    }

    /// A position in a text.
    pub fn at(span: Span) -> Loc {
        Loc { span: Some(span), ..Loc::default() }
    }
}

/// One diagnostic.
#[derive(Clone, Debug, PartialEq)]
pub struct Diag {
    /// Stable code such as `E-IR-014`.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// What was found and what is allowed.
    pub message: String,
    /// Where.
    pub at: Loc,
    /// More facts, one a line.
    pub notes: Vec<String>,
    /// How to get past it.
    pub help: Option<String>,
}

impl Diag {
    /// An error without place or remedy yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Diag {
        Diag {
            code,
            severity: Severity::Error,
            message: message.into(),
            at: Loc::default(),
            notes: Vec::new(),
            help: None,
        }
    }

    /// A warning without place or remedy yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diag {
        Diag { severity: Severity::Warning, ..Diag::error(code, message) }
    }

    /// Sets the place unless there is one.
    pub fn at(mut self, loc: &Loc) -> Diag {
        if self.at == Loc::default() {
            self.at = loc.clone();
        }
        self
    }

    /// Adds a fact.
    pub fn note(mut self, note: impl Into<String>) -> Diag {
        self.notes.push(note.into());
        self
    }

    /// Sets the remedy.
    pub fn help(mut self, help: impl Into<String>) -> Diag {
        self.help = Some(help.into());
        self
    }

    /// As printed: `error[CODE]: message`, then place, notes and help, a line each. With `text`, a span is shown as
    /// line and column with the line itself.
    pub fn render(&self, text: Option<&str>) -> String {
        let kind = if self.severity == Severity::Error { "error" } else { "warning" };
        let mut out = format!("{kind}[{}]: {}", self.code, self.message);
        if let (Some(span), Some(text)) = (self.at.span, text) {
            let upto = text.get(..span.start.min(text.len())).unwrap_or("");
            let (line, col) =
                (upto.matches('\n').count() + 1, upto.chars().rev().take_while(|&c| c != '\n').count() + 1);
            let shown = text.lines().nth(line - 1).unwrap_or("");
            let width = text
                .get(span.start..span.end)
                .map_or(1, |s| s.lines().next().unwrap_or("").chars().count())
                .max(1);
            out += &format!(
                "\n  --> line {line}, column {col}\n   | {shown}\n   | {}{}",
                " ".repeat(col - 1),
                "^".repeat(width)
            );
        }
        if !self.at.place.is_empty() {
            out += &format!("\n  at: {}", self.at.place);
        }
        if !self.at.rules.is_empty() {
            out += &format!("\n  made by: {}", self.at.rules.join(", "));
        }
        for n in &self.notes {
            out += &format!("\n  note: {n}");
        }
        if let Some(h) = &self.help {
            out += &format!("\n  help: {h}");
        }
        out
    }
}

impl fmt::Display for Diag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(None))
    }
}

impl std::error::Error for Diag {}
