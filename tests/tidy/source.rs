//! Reading the tree: which files there are, which lines of them are tests, where functions begin and end.
//!
//! A scanner, not a parser: it knows comments, strings and brackets. What is right or wrong is for `rules.rs` to say.

use std::fs;
use std::path::{Path, PathBuf};

/// A text file of the repository, path relative to its root with `/` between parts.
pub struct File {
    pub path: String,
    pub text: String,
}

/// A Rust file, scanned.
pub struct Source {
    pub path: String,
    pub text: String,
    /// The text with comments and the insides of strings blanked; same lines, same columns.
    pub code: String,
    /// Per line: part of test code.
    pub test: Vec<bool>,
    pub generated: bool,
}

/// A function of non-test code.
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// Everything the rules look at.
pub struct Tree {
    pub files: Vec<File>,
    pub sources: Vec<Source>,
}

impl Tree {
    /// Reads the checkout. Works without git: hidden folders other than `.ci` and `.cargo`, and every `target`, are not ours.
    pub fn load(root: &Path) -> Tree {
        let mut paths = Vec::new();
        walk(root, &mut paths);
        paths.sort();
        let files = paths.iter().filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let path = path.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
            Some(File { path, text })
        });
        Tree::new(files.collect())
    }

    /// A tree of the files given.
    pub fn new(files: Vec<File>) -> Tree {
        let rust = files.iter().filter(|f| f.path.ends_with(".rs"));
        let mut sources: Vec<Source> = rust.map(|f| Source::new(&f.path, &f.text)).collect();
        let roots: Vec<String> = sources.iter().flat_map(test_module_files).collect();
        for source in &mut sources {
            let stem = source.path.trim_end_matches(".rs").trim_end_matches("/mod");
            if roots.iter().any(|root| stem == root || stem.starts_with(&format!("{root}/"))) {
                source.test.fill(true);
            }
        }
        Tree { files, sources }
    }

    /// The file at `path`, if there.
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|f| f.path == path)
    }
}

fn walk(folder: &Path, out: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            let hidden = name.starts_with('.') && !matches!(&*name, ".ci" | ".cargo" | ".github");
            if !hidden && !matches!(&*name, "target" | "__pycache__" | "shared") {
                walk(&path, out);
            }
        } else if kind.is_file() && name != "Cargo.lock" {
            out.push(path);
        }
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Source {
        let code = blank(text);
        let lines = text.lines().count();
        let whole = path.split('/').any(|part| matches!(part, "tests" | "benches"));
        let mut test = vec![whole; lines];
        for range in test_ranges(&code) {
            test.iter_mut().take(range.1 + 1).skip(range.0).for_each(|line| *line = true);
        }
        let generated = text.lines().take(5).any(|l| l.contains("@generated"));
        Source { path: path.to_string(), text: text.to_string(), code, test, generated }
    }

    /// Lines of code that are not tests: (index from 0, raw, blanked).
    pub fn live(&self) -> impl Iterator<Item = (usize, &str, &str)> {
        let both = self.text.lines().zip(self.code.lines()).enumerate();
        both.filter(|(i, _)| !self.test[*i]).map(|(i, (raw, code))| (i, raw, code))
    }

    /// Functions with a body outside tests.
    pub fn functions(&self) -> Vec<Function> {
        let mut out = Vec::new();
        for (at, name) in words_after(&self.code, "fn") {
            let line = line_of(&self.code, at);
            let Some(open) = body_start(&self.code, at) else { continue };
            if self.test[line] || !self.code[open..].starts_with('{') {
                continue;
            }
            let end = line_of(&self.code, closing(&self.code, open));
            out.push(Function { name: name.to_string(), line: line + 1, lines: end - line + 1 });
        }
        out
    }
}

/// Positions of the keyword with the identifier that follows it.
fn words_after<'a>(code: &'a str, keyword: &'static str) -> impl Iterator<Item = (usize, &'a str)> {
    words(code).filter(move |(_, w)| *w == keyword).filter_map(|(at, w)| {
        let rest = code[at + w.len()..].strip_prefix(' ')?;
        let end = rest.find(|c: char| !is_ident(c)).unwrap_or(rest.len());
        (end > 0).then(|| (at, &rest[..end]))
    })
}

pub fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// All identifiers and keywords with their positions.
pub fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_ident)?;
        let len = code[start..].find(|c: char| !is_ident(c)).unwrap_or(code.len() - start);
        at = start + len;
        Some((start, &code[start..at]))
    })
}

/// The line, from 0, that a position is on.
pub fn line_of(code: &str, at: usize) -> usize {
    code[..at.min(code.len())].bytes().filter(|b| *b == b'\n').count()
}

/// The `{` or `;` that ends an item's head, seen from inside the head.
fn body_start(code: &str, from: usize) -> Option<usize> {
    let mut depth = 0i32;
    for (i, c) in code[from..].char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            '{' | ';' if depth == 0 => return Some(from + i),
            _ => {}
        }
    }
    None
}

/// The position of the bracket that closes the one at `open`; the end of the text if none does.
pub fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0i32;
    for (i, c) in code[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return open + i;
        }
    }
    code.len()
}

/// Positions of attributes that make the item after them a test, each with the position just after the attribute.
fn test_attributes(code: &str) -> Vec<(usize, usize)> {
    let mut out = Vec::new();
    for (at, _) in code.match_indices("#[") {
        let end = closing(code, at + 1);
        let attribute: String = code[at..end].chars().filter(|c| !c.is_whitespace()).collect();
        let all = attribute.starts_with("#[cfg(all(test,");
        if all || matches!(attribute.as_str(), "#[test" | "#[cfg(test)") {
            out.push((at, (end + 1).min(code.len())));
        }
    }
    out
}

/// The head of the item after an attribute: its start, past further attributes, and the `{` or `;` that ends it.
fn item_after(code: &str, mut at: usize) -> Option<(usize, usize)> {
    loop {
        let start = at + code[at..].find(|c: char| !c.is_whitespace())?;
        if !code[start..].starts_with("#[") {
            return Some((start, body_start(code, start)?));
        }
        at = closing(code, start + 1) + 1;
    }
}

/// First and last line, from 0, of every item that is a test.
fn test_ranges(code: &str) -> Vec<(usize, usize)> {
    let ranges = test_attributes(code).into_iter().filter_map(|(at, after)| {
        let (_, end) = item_after(code, after)?;
        let end = if code[end..].starts_with('{') { closing(code, end) } else { end };
        Some((line_of(code, at), line_of(code, end)))
    });
    ranges.collect()
}

/// For `#[cfg(test)] mod name;`: where that module lies, without `.rs` or `/mod.rs`.
fn test_module_files(source: &Source) -> Vec<String> {
    let (folder, file) = source.path.rsplit_once('/').unwrap_or(("", &source.path));
    let stem = file.trim_end_matches(".rs");
    let base = match stem {
        "mod" | "lib" | "main" => folder.to_string(),
        _ => format!("{folder}/{stem}"),
    };
    let code = &source.code;
    let found = test_attributes(code).into_iter().filter_map(|(_, after)| {
        let (start, end) = item_after(code, after)?;
        let name = code[start..end].trim().rsplit_once("mod ")?.1.trim();
        code[end..].starts_with(';').then(|| format!("{base}/{name}"))
    });
    found.collect()
}

/// Blanks comments and the insides of string and character literals.
pub fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let (skip_open, end, skip_close) = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => (0, line_end(bytes, at), 0),
            b'/' if bytes[at..].starts_with(b"/*") => (0, block_comment_end(bytes, at), 0),
            b'"' => match raw_hashes(bytes, at) {
                Some(hashes) => (1, raw_string_end(bytes, at, hashes), 1 + hashes),
                None => (1, string_end(bytes, at), 1),
            },
            b'\'' => match char_end(bytes, at) {
                Some(end) => (1, end, 1),
                None => (0, at + 1, 1),
            },
            _ => {
                at += 1;
                continue;
            }
        };
        for byte in out.iter_mut().take(end.saturating_sub(skip_close)).skip(at + skip_open) {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end.max(at + 1);
    }
    // Multi-byte characters only occur in comments and literals, or are left whole.
    String::from_utf8_lossy(&out).into_owned()
}

fn line_end(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().position(|b| *b == b'\n').map_or(bytes.len(), |n| at + n)
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if bytes[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    at
}

/// How many `#` stand before the quote of a raw string, or none if it is an ordinary one.
fn raw_hashes(bytes: &[u8], quote: usize) -> Option<usize> {
    let hashes = bytes[..quote].iter().rev().take_while(|b| **b == b'#').count();
    let r = quote.checked_sub(hashes + 1)?;
    let before = r.checked_sub(1).map_or(b' ', |i| bytes[i]);
    let prefix = !is_ident(before as char) || matches!(before, b'b' | b'c');
    (bytes[r] == b'r' && prefix).then_some(hashes)
}

fn raw_string_end(bytes: &[u8], quote: usize, hashes: usize) -> usize {
    let close: Vec<u8> = std::iter::once(b'"').chain(std::iter::repeat_n(b'#', hashes)).collect();
    let inner = quote + 1;
    let found = bytes[inner..].windows(close.len()).position(|w| w == close);
    found.map_or(bytes.len(), |n| inner + n + close.len())
}

fn string_end(bytes: &[u8], quote: usize) -> usize {
    let mut at = quote + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

/// The end of a character literal, or none if the quote starts a lifetime.
fn char_end(bytes: &[u8], quote: usize) -> Option<usize> {
    let first = *bytes.get(quote + 1)?;
    if first == b'\\' {
        let close = bytes[quote + 3..].iter().position(|b| *b == b'\'')?;
        return Some(quote + 3 + close + 1);
    }
    let len = match first {
        0..0x80 => 1,
        0x80..0xe0 => 2,
        0xe0..0xf0 => 3,
        _ => 4,
    };
    (bytes.get(quote + 1 + len) == Some(&b'\'')).then_some(quote + len + 2)
}
