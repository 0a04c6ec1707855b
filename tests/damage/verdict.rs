//! What may become of a damaged file, and how it is said in a line.

use tgc::ir::diag::Diag;

/// A permitted end.
pub enum Verdict {
    /// A diagnostic with this code.
    Refused(String),
    /// It is a right file of another kind now, and was used so far.
    Accepted(&'static str),
}

impl Verdict {
    /// One word or a few, to count by.
    pub fn word(&self) -> String {
        match self {
            Verdict::Refused(code) => code.clone(),
            Verdict::Accepted(how) => (*how).to_string(),
        }
    }
}

/// What must not happen.
pub fn finding<T>(why: &str) -> Result<T, String> {
    Err(why.to_string())
}

/// The first code of a compiler's diagnostics. They must be there, speak, and not blame tgc.
pub fn refused(diags: &[Diag]) -> Result<Verdict, String> {
    let bug = |d: &&Diag| {
        let blames = |n: &String| n.contains("bug of tgc");
        matches!(d.code, "E-BUG" | "E-CPU-009") || d.notes.iter().any(blames)
    };
    if let Some(d) = diags.iter().find(bug) {
        return Err(format!("a bug of tgc is reported: {}", d.render(None)));
    }
    match diags.first() {
        None => finding("refused without a diagnostic"),
        Some(_) if diags.iter().any(|d| d.code.is_empty() || d.message.is_empty()) => {
            finding("a diagnostic without code or words")
        }
        Some(d) => Ok(Verdict::Refused(d.code.to_string())),
    }
}
