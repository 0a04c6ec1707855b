//! What the cases came to, as docs/conformance.md, and how that is judged. suite.tsv names the cases: kind, name, tier.

use crate::case::Outcome;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// A case and what became of it.
pub struct Row {
    pub kind: String,
    pub name: String,
    pub tier: Tier,
    pub fixed: Outcome,
    pub dynamic: Outcome,
}

/// A group of cases that ask for the same part of ONNX.
pub type Tier = String;

/// All cases, not run.
pub fn tiers() -> Vec<Row> {
    include_str!("suite.tsv")
        .lines()
        .filter_map(|l| {
            let mut parts = l.split('\t').map(str::to_string);
            let (kind, name, tier) = (parts.next()?, parts.next()?, parts.next()?);
            Some(Row { kind, name, tier, fixed: Outcome::None, dynamic: Outcome::None })
        })
        .collect()
}

/// Kind of the cases of bug reports.
pub const REPORTED: &str = "reported";

/// All cases of bug reports, not run; as the tier `pass` or the code of the refusal that is right.
pub fn reported() -> Vec<Row> {
    let row = |l: &str| {
        let (name, tier) = l.split_once('\t')?;
        let (kind, name, tier) = (REPORTED.into(), name.into(), tier.into());
        Some(Row { kind, name, tier, fixed: Outcome::None, dynamic: Outcome::None })
    };
    include_str!("reported.tsv").lines().filter_map(row).collect()
}

/// What is not as reported.tsv says.
pub fn judge_reported(rows: &[Row]) -> Result<(), String> {
    let right = |r: &&Row| match (&r.fixed, r.tier.as_str()) {
        (o, "pass") => o.passes() && !matches!(r.dynamic, Outcome::Wrong(_) | Outcome::Crash(_)),
        (Outcome::Refused(why), code) => why.starts_with(code),
        _ => false,
    };
    let wrong = rows.iter().filter(|r| !right(r));
    let lines: Vec<String> = wrong
        .map(|r| {
            format!("{}: {} is right, found {:?}; with symbols {:?}", r.name, r.tier, r.fixed, r.dynamic)
        })
        .collect();
    if lines.is_empty() { Ok(()) } else { Err(lines.join("\n")) }
}

/// Both outcomes of a case as one line of text.
pub fn line(fixed: &Outcome, dynamic: &Outcome) -> String {
    let one = |o: &Outcome| {
        let (what, why) = match o {
            Outcome::Pass => ("pass", ""),
            Outcome::PassFixed(w) => ("fixed", w.as_str()),
            Outcome::Refused(w) => ("refused", w.as_str()),
            Outcome::Wrong(w) => ("wrong", w.as_str()),
            Outcome::Crash(w) => ("crash", w.as_str()),
            Outcome::None => ("none", ""),
        };
        format!("{what}\t{}", why.replace(['\n', '\t', '\r'], " "))
    };
    format!("{}\t{}", one(fixed), one(dynamic))
}

/// What [`line`] wrote.
pub fn read_line(line: &str) -> (Outcome, Outcome) {
    let parts: Vec<&str> = line.split('\t').collect();
    let one = |at: usize| {
        let why = parts.get(at + 1).unwrap_or(&"").to_string();
        match parts.get(at) {
            Some(&"pass") => Outcome::Pass,
            Some(&"fixed") => Outcome::PassFixed(why),
            Some(&"refused") => Outcome::Refused(why),
            Some(&"wrong") => Outcome::Wrong(why),
            Some(&"none") => Outcome::None,
            _ => Outcome::Crash(format!("a worker said {line:?}")),
        }
    };
    (one(0), one(2))
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    cases: usize,
    pass: usize,
    fixed: usize,
    refused: usize,
    wrong: usize,
    crash: usize,
    dynamic_pass: usize,
    dynamic_refused: usize,
    dynamic_wrong: usize,
    none: usize,
}

impl Counts {
    fn add(&mut self, r: &Row) {
        self.cases += 1;
        match r.fixed {
            Outcome::Pass => self.pass += 1,
            Outcome::PassFixed(_) => (self.pass, self.fixed) = (self.pass + 1, self.fixed + 1),
            Outcome::Refused(_) => self.refused += 1,
            Outcome::Wrong(_) => self.wrong += 1,
            Outcome::Crash(_) | Outcome::None => self.crash += 1,
        }
        match r.dynamic {
            Outcome::Pass | Outcome::PassFixed(_) => self.dynamic_pass += 1,
            Outcome::Refused(_) => self.dynamic_refused += 1,
            Outcome::Wrong(_) | Outcome::Crash(_) => self.dynamic_wrong += 1,
            Outcome::None if r.fixed.passes() => self.none += 1,
            Outcome::None => {}
        }
    }

    fn row(&self, name: &str) -> String {
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            self.cases,
            self.pass,
            self.fixed,
            self.refused,
            self.wrong,
            self.crash,
            self.dynamic_pass,
            self.dynamic_refused,
            self.dynamic_wrong,
            self.none,
        )
    }

    /// What a row of the page says.
    fn of(row: &str) -> Option<Counts> {
        let cells: Vec<usize> = row.split('|').filter_map(|c| c.trim().parse().ok()).collect();
        let &[cases, pass, fixed, refused, wrong, crash, dynamic_pass, dynamic_refused, dynamic_wrong, none] =
            &cells[..]
        else {
            return None;
        };
        Some(Counts {
            cases,
            pass,
            fixed,
            refused,
            wrong,
            crash,
            dynamic_pass,
            dynamic_refused,
            dynamic_wrong,
            none,
        })
    }
}

/// The page.
fn page(rows: &[Row]) -> String {
    let mut tiers: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut all = Counts::default();
    for r in rows {
        tiers.entry(&r.tier).or_default().add(r);
        all.add(r);
    }
    let mut out = String::from(
        "# Conformance\n\nMade by `TGC_WRITE=1 cargo test --test conformance`; do not edit. The ONNX backend suite 1.22.0: each case is \
         imported,\nrun by the interpreter and by compiled code on one thread, and both are compared with the stored outputs \
         (relative and\nabsolute 1e-4 and 1e-6 in f32, exact in integers) and with each other (within the error bound). Refused: a \
         diagnostic before\nanything runs. With inputs fixed: the suite feeds operands such as axes and shapes as data; those that \
         must be known are\ngiven with `--const`. With symbols: the cases that pass, with the sizes of their inputs as symbols, each axis its own \
         where that is\naccepted, else equal sizes as one, else the first axis only; a case without an input with sizes has none. The light networks\nhave no stored input (their output does not depend on it) and are run by compiled code only.\n\n\
         | tier | cases | pass | of these with inputs fixed | refused | wrong | crash | with symbols: pass | refused | wrong or crash | none |\n\
         |---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for (name, c) in &tiers {
        let _ = writeln!(out, "{}", c.row(name));
    }
    let _ = writeln!(out, "{}", all.row("all"));
    let fixed = |r: &Row| if let Outcome::Refused(w) = &r.fixed { Some(w.clone()) } else { None };
    let dynamic = |r: &Row| if let Outcome::Refused(w) = &r.dynamic { Some(w.clone()) } else { None };
    reasons(&mut out, "Refused", rows, &fixed);
    reasons(&mut out, "Refused with symbols only", rows, &dynamic);
    out
}

fn reasons(out: &mut String, title: &str, rows: &[Row], why: &dyn Fn(&Row) -> Option<String>) {
    let mut by: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for r in rows {
        if let Some(w) = why(r) {
            by.entry(w).or_default().push(r.name.trim_start_matches("test_"));
        }
    }
    let _ = writeln!(out, "\n## {title}\n");
    for (w, names) in by {
        let _ = writeln!(out, "- {w}: {}", names.join(", "));
    }
}

/// Writes the page if asked to; else it must be what the run found. Wrong results and crashes are never right.
pub fn judge(rows: &[Row], path: &Path) -> Result<(), String> {
    let bad: Vec<String> = rows
        .iter()
        .flat_map(|r| [("", &r.fixed), (", with symbols", &r.dynamic)].map(|(how, o)| (r, how, o)))
        .filter_map(|(r, how, o)| match o {
            Outcome::Wrong(w) => Some(format!("wrong: {} {}{how}: {w}", r.kind, r.name)),
            Outcome::Crash(w) => Some(format!("crash: {} {}{how}: {w}", r.kind, r.name)),
            _ => None,
        })
        .collect();
    if std::env::var_os("TGC_WRITE").is_some() {
        std::fs::write(path, page(rows)).map_err(|e| e.to_string())?;
    }
    if !bad.is_empty() {
        return Err(bad.join("\n"));
    }
    let said = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let found = page(rows);
    if said == found {
        return Ok(());
    }
    let all =
        |page: &str| page.lines().find(|l| l.starts_with("| all ")).and_then(Counts::of).unwrap_or_default();
    let (was, is) = (all(&said), all(&found));
    let line = found.lines().zip(said.lines()).find(|(a, b)| a != b);
    Err(format!(
        "docs/conformance.md says {} and {} passes, this run finds {} and {}; if none is lost, write it anew with TGC_WRITE=1\n{line:?}",
        was.pass, was.dynamic_pass, is.pass, is.dynamic_pass
    ))
}
