//! Where several files must tell the same story: the op table, its files and fixtures; the pages that show a real commit.

use std::path::Path;
use std::process::Command;

use crate::source::{Tree, blank, closing, is_ident};

const TABLE: &str = "ir/src/ops/mod.rs";
pub const PAGES: &[(&str, usize)] = &[("docs/add-an-op.md", 3), ("docs/add-a-pass.md", 8)];

/// The rows of the op table: file name and struct name. None if there is no table yet.
pub fn op_rows(tree: &Tree) -> Option<Vec<(String, String)>> {
    let code = blank(&tree.file(TABLE)?.text);
    let mut rows = Vec::new();
    for (at, name) in code.match_indices("op_table!") {
        let open = at + name.len() + code[at + name.len()..].find(['{', '(', '['])?;
        let body = code[open + 1..closing(&code, open)].to_string();
        for row in body.split([',', ';', '\n']) {
            let Some((file, item)) = row.trim().split_once("::") else { continue };
            let item: String = item.trim().chars().take_while(|c| is_ident(*c)).collect();
            let file = file.trim().rsplit(|c: char| !is_ident(c)).next().unwrap_or_default();
            if !file.is_empty() && item.starts_with(|c: char| c.is_uppercase()) {
                rows.push((file.to_string(), item));
            }
        }
    }
    (!rows.is_empty()).then_some(rows)
}

/// `LayerNorm` -> `layer_norm`.
pub fn snake(name: &str) -> String {
    let mut out = String::new();
    for (index, c) in name.chars().enumerate() {
        if c.is_uppercase() && index > 0 {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

/// One spelling: text name, file, struct and fixture of every op agree, and no op file is left out of the table.
pub fn op_table(tree: &Tree) -> Vec<String> {
    let Some(rows) = op_rows(tree) else { return Vec::new() };
    let mut bad = Vec::new();
    for (file, item) in &rows {
        if *file != snake(item) {
            bad.push(format!("{TABLE}: {file}::{item}: the file of {item} is to be called {}", snake(item)));
        }
        for path in [format!("ir/src/ops/{file}.rs"), format!("tests/ops/{file}.tgir")] {
            if tree.file(&path).is_none() {
                bad.push(format!("{path}: missing for op {item}"));
            }
        }
    }
    for file in tree.files.iter().filter(|f| f.path.starts_with("tests/ops/") && f.path.ends_with(".tgir")) {
        let name = file.path.trim_start_matches("tests/ops/").trim_end_matches(".tgir");
        // refused graphs lie in a folder of their own, several an op
        let op = name.strip_prefix("fail/").and_then(|n| n.rsplit_once("_c")).map_or(name, |(op, _)| op);
        if !rows.iter().any(|(row, _)| row == op) {
            bad.push(format!("{}: there is no op of that name in the table", file.path));
        }
    }
    bad
}

/// The real commit a page shows: its subject and the files it touched.
pub struct Example {
    pub subject: String,
    pub files: Vec<String>,
}

/// Reads the page's fenced block marked `commit`: the subject on its first line, then one file a line.
pub fn example(page: &str) -> Option<Example> {
    let mut lines = page.lines().skip_while(|l| l.trim() != "```commit").skip(1);
    let subject = lines.next()?.trim().to_string();
    let files =
        lines.take_while(|l| l.trim() != "```").map(|l| l.trim().to_string()).filter(|l| !l.is_empty());
    Some(Example { subject, files: files.collect() })
}

/// Compares the pages with the history; the second list says what could not be compared, and why.
pub fn pages(root: &Path, tree: &Tree) -> (Vec<String>, Vec<String>) {
    let (mut bad, mut skipped) = (Vec::new(), Vec::new());
    for (page, limit) in PAGES {
        let Some(file) = tree.file(page) else {
            skipped.push(format!("{page}: not there"));
            continue;
        };
        let Some(example) = example(&file.text) else {
            bad.push(format!(
                "{page}: shows no commit (a fenced block marked `commit`: subject, then files)"
            ));
            continue;
        };
        if example.files.is_empty() || example.files.len() > *limit {
            bad.push(format!("{page}: {} files, at most {limit} are to be needed", example.files.len()));
        }
        for listed in example.files.iter().filter(|f| !root.join(f).is_file()) {
            bad.push(format!("{page}: {listed} does not exist"));
        }
        match commit_files(root, &example.subject) {
            Some(touched) => bad.extend(differences(page, &example, &touched)),
            None => {
                skipped.push(format!("{page}: no commit {:?} in the history that is here", example.subject))
            }
        }
    }
    (bad, skipped)
}

/// Snapshots follow from fixtures and are not counted.
pub fn differences(page: &str, example: &Example, touched: &[String]) -> Vec<String> {
    let counted = touched.iter().filter(|f| !f.ends_with(".snap"));
    let unlisted = counted
        .filter(|f| !example.files.contains(f))
        .map(|f| format!("{page}: the commit also touched {f}"));
    let untouched = example
        .files
        .iter()
        .filter(|f| !touched.contains(f))
        .map(|f| format!("{page}: the commit did not touch {f}"));
    unlisted.chain(untouched).collect()
}

/// The files of the newest commit with exactly this subject.
fn commit_files(root: &Path, subject: &str) -> Option<Vec<String>> {
    let git = |args: &[&str]| {
        let done = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        done.status.success().then(|| String::from_utf8_lossy(&done.stdout).into_owned())
    };
    let log = git(&["log", "--format=%H %s", "--fixed-strings", &format!("--grep={subject}")])?;
    let hash = log.lines().find_map(|l| l.split_once(' ').filter(|(_, s)| *s == subject))?.0.to_string();
    let listing = git(&["show", "--format=", "--name-only", &hash])?;
    Some(listing.lines().filter(|l| !l.is_empty()).map(str::to_string).collect())
}
