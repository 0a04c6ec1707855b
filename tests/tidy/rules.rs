//! The rules over source text, and the numbers behind them. Each returns its violations, one line apiece: place, then fault.

use crate::manifests::manifests;
use crate::source::{Source, Tree, closing, is_ident, line_of, words};

pub const FILE_LINES: usize = 800;
pub const FUNCTION_LINES: usize = 120;
/// A crate fails when it has this many places that can panic outside tests.
pub const PANICS: usize = 5;

/// Plain `pub` items a crate aims at; a fifth more fails.
pub const PUB_ITEMS: &[(&str, usize)] =
    &[("tgc-ir", 250), ("tgc-frontend", 20), ("tgc-passes", 40), ("tgc-codegen", 60), ("tgc-runtime", 60)];

/// Where `unsafe` may stand: kernel calls, executable mappings, shared buffers and the pool in the runtime; the vector loops
/// that measure the machine; the C interface, whose callers give pointers; inkwell's pointer arithmetic; the mmapped weight store.
const UNSAFE: &[&str] = &[
    "runtime/src/abi.rs",
    "runtime/src/load.rs",
    "runtime/src/exec.rs",
    "runtime/src/threads.rs",
    "runtime/cli/src/limits.rs",
    "runtime/capi/src/exports.rs",
    "runtime/capi/src/pointers.rs",
    "codegen/src/cpu/",
    "ir/src/weights.rs",
];

/// Words that only one place of the repository may know.
const PRIVATE: &[(&str, &str)] = &[("petgraph", "ir/src/graph"), ("inkwell", "codegen/src/cpu/")];

/// File names that say nothing about what is inside.
const NAMELESS: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc"];

/// Paths of one machine, and registries: neither belongs in a file. Joined, so that this file does not hold them.
const FORBIDDEN: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/t", "mp/"),
    concat!("arti", "factory"),
    concat!("py", "pi.org"),
    concat!("pythonho", "sted"),
    concat!("index.cra", "tes.io"),
    concat!("registry.np", "mjs"),
];

/// Sources with live code, generated ones left out.
fn written(tree: &Tree) -> impl Iterator<Item = &Source> {
    tree.sources.iter().filter(|s| !s.generated)
}

/// Non-test lines of every source that has any.
pub fn file_lengths(tree: &Tree) -> Vec<(usize, &str)> {
    let lengths = written(tree).map(|s| (s.test.iter().filter(|t| !**t).count(), s.path.as_str()));
    lengths.filter(|(n, _)| *n > 0).collect()
}

/// Length, place and name of every non-test function.
pub fn function_lengths(tree: &Tree) -> Vec<(usize, String)> {
    let all = written(tree).flat_map(|s| {
        s.functions().into_iter().map(|f| (f.lines, format!("{}:{} fn {}", s.path, f.line, f.name)))
    });
    all.collect()
}

pub fn long_files(tree: &Tree) -> Vec<String> {
    let long = file_lengths(tree).into_iter().filter(|(n, _)| *n > FILE_LINES);
    long.map(|(n, path)| format!("{path}: {n} lines outside tests, at most {FILE_LINES}")).collect()
}

pub fn long_functions(tree: &Tree) -> Vec<String> {
    let long = function_lengths(tree).into_iter().filter(|(n, _)| *n > FUNCTION_LINES);
    long.map(|(n, place)| format!("{place}: {n} lines, at most {FUNCTION_LINES}")).collect()
}

pub fn module_docs(tree: &Tree) -> Vec<String> {
    let documented = |text: &str| {
        let mut lines = text.lines().map(str::trim);
        lines
            .find(|l| l.starts_with("//!") || !(l.is_empty() || l.starts_with("//") || l.starts_with("#!")))
            .is_some_and(|l| l.starts_with("//!"))
    };
    let bare = tree.sources.iter().filter(|s| !documented(&s.text));
    bare.map(|s| format!("{}: no //! comment that says what lives here", s.path)).collect()
}

/// `ir` and `runtime` are read by others: the compiler itself must refuse an undocumented public item there.
pub fn public_docs(tree: &Tree) -> Vec<String> {
    let enforced = |text: &str| text.lines().any(|l| l.starts_with("#![deny(") && l.contains("missing_docs"));
    let roots = ["ir/src/lib.rs", "runtime/src/lib.rs"].into_iter();
    let lax = roots.filter_map(|path| tree.file(path)).filter(|f| !enforced(&f.text));
    lax.map(|f| format!("{}: needs #![deny(missing_docs)]", f.path)).collect()
}

pub fn file_names(tree: &Tree) -> Vec<String> {
    let nameless = tree
        .sources
        .iter()
        .filter(|s| s.path.trim_end_matches(".rs").split('/').any(|part| NAMELESS.contains(&part)));
    nameless.map(|s| format!("{}: name the file by the noun it defines", s.path)).collect()
}

/// The crate a path belongs to: the one whose folder is the longest prefix.
fn crate_of<'a>(crates: &'a [(String, String)], path: &str) -> &'a str {
    let inside =
        crates.iter().filter(|(folder, _)| folder.is_empty() || path.starts_with(&format!("{folder}/")));
    inside.max_by_key(|(folder, _)| folder.len()).map_or("", |(_, name)| name)
}

fn crates(tree: &Tree) -> Vec<(String, String)> {
    manifests(tree).into_iter().map(|m| (m.folder, m.name)).collect()
}

/// Plain `pub` items outside tests, per crate of the budget; fields and re-exports are not items, the traced-model
/// front end (`frontend/src/nn`) is not counted.
pub fn pub_items(tree: &Tree) -> Vec<(&'static str, usize, usize)> {
    let crates = crates(tree);
    let count = |name: &str| {
        let ours = written(tree)
            .filter(|s| crate_of(&crates, &s.path) == name && !s.path.starts_with("frontend/src/nn/"));
        let all = ours.flat_map(|s| s.live()).filter(|(_, _, code)| is_pub_item(code)).count();
        if name == "tgc-ir" { all - op_structs(tree) } else { all }
    };
    PUB_ITEMS.iter().map(|(name, aim)| (*name, count(name), *aim)).collect()
}

/// Structs of the op table: each is one row, and rows have a ceiling of their own.
fn op_structs(tree: &Tree) -> usize {
    let ops = written(tree).filter(|s| s.path.starts_with("ir/src/ops/"));
    let code = ops.flat_map(|s| s.live()).map(|(_, _, code)| code.trim_start());
    code.filter(|c| c.starts_with("pub struct ") && c.trim_end().ends_with('{')).count()
}

fn is_pub_item(code: &str) -> bool {
    let Some(rest) = code.trim_start().strip_prefix("pub ") else { return false };
    let keyword = rest.split(|c: char| !is_ident(c)).next().unwrap_or_default();
    let items = [
        "const", "static", "fn", "struct", "enum", "trait", "type", "mod", "unsafe", "async", "extern",
        "union",
    ];
    items.contains(&keyword)
}

pub fn pub_budget(tree: &Tree) -> Vec<String> {
    let over = pub_items(tree).into_iter().filter(|(_, count, aim)| *count > aim + aim / 5);
    over.map(|(name, count, aim)| format!("{name}: {count} pub items, aim {aim}, at most {}", aim + aim / 5))
        .collect()
}

/// A place of live code that can panic: crate, place, the call, and whether a comment there gives the reason.
pub struct Panic {
    pub krate: String,
    pub place: String,
    pub call: &'static str,
    pub reason: bool,
}

/// `unwrap`, `expect` with a message, and the panicking macros in live code.
pub fn panics(tree: &Tree) -> Vec<Panic> {
    let crates = crates(tree);
    let mut out = Vec::new();
    for source in written(tree) {
        let raw: Vec<&str> = source.text.lines().collect();
        for (at, call) in panic_calls(&source.code) {
            let line = line_of(&source.code, at);
            if source.test[line] {
                continue;
            }
            out.push(Panic {
                krate: crate_of(&crates, &source.path).to_string(),
                place: format!("{}:{}", source.path, line + 1),
                call,
                reason: has_reason(&raw, line),
            });
        }
    }
    out
}

fn panic_calls(code: &str) -> Vec<(usize, &'static str)> {
    let mut out = Vec::new();
    for call in [".unwrap()", ".expect(", "panic!", "unreachable!", "todo!", "unimplemented!"] {
        for (at, _) in code.match_indices(call) {
            let before = code[..at].chars().next_back().unwrap_or(' ');
            let whole_word = call.starts_with('.') || !is_ident(before);
            if whole_word && (call != ".expect(" || is_result_expect(code, at)) {
                out.push((at, call));
            }
        }
    }
    out
}

/// Tells `Option::expect("why")` from a parser's own `self.expect(Token::X)?`.
fn is_result_expect(code: &str, at: usize) -> bool {
    let open = at + ".expect".len();
    let argument = code[open + 1..].trim_start();
    let after = code.get(closing(code, open) + 1..).unwrap_or_default().trim_start();
    let message = argument.starts_with('"') || argument.starts_with("&format!");
    message && !after.starts_with('?') && !code[..at].ends_with("self")
}

/// A comment on the line, or lines of comment right above its statement.
fn has_reason(raw: &[&str], line: usize) -> bool {
    let comment = |l: &str| l.contains("// ") && !l.trim_start().starts_with("///");
    let starts_statement = |l: &str| {
        let l = l.trim();
        l.is_empty() || l.ends_with([';', '{', '}', ','])
    };
    if comment(raw[line]) {
        return true;
    }
    for above in raw[..line].iter().rev().take(6) {
        if comment(above) {
            return true;
        }
        if starts_statement(above) {
            return false;
        }
    }
    false
}

pub fn panic_rule(tree: &Tree) -> Vec<String> {
    let all = panics(tree);
    let mut bad = Vec::new();
    for panic in &all {
        if panic.call == "todo!" || panic.call == "unimplemented!" {
            bad.push(format!(
                "{}: {}: what is not built is a diagnostic, not a panic",
                panic.place, panic.call
            ));
        } else if !panic.reason {
            bad.push(format!(
                "{}: {} without a comment that says why it cannot happen",
                panic.place, panic.call
            ));
        }
    }
    for (_, name) in crates(tree) {
        let places: Vec<&str> = all.iter().filter(|p| p.krate == name).map(|p| p.place.as_str()).collect();
        if places.len() >= PANICS {
            bad.push(format!(
                "{name}: {} places that can panic, fewer than {PANICS} allowed: {}",
                places.len(),
                places.join(" ")
            ));
        }
    }
    bad
}

/// Lines with the keyword `unsafe`, integration tests left out.
pub fn unsafe_lines(tree: &Tree) -> Vec<(&Source, usize)> {
    let mut out = Vec::new();
    for source in written(tree).filter(|s| !s.path.split('/').any(|p| p == "tests" || p == "benches")) {
        for (at, _) in words(&source.code).filter(|(_, w)| *w == "unsafe") {
            out.push((source, line_of(&source.code, at)));
        }
    }
    out
}

pub fn unsafe_rule(tree: &Tree) -> Vec<String> {
    let mut bad = Vec::new();
    for (source, line) in unsafe_lines(tree) {
        let path = &source.path;
        if !UNSAFE
            .iter()
            .any(|allowed| path == allowed || (allowed.ends_with('/') && path.starts_with(allowed)))
        {
            bad.push(format!("{path}:{}: unsafe outside the files listed in tests/tidy/rules.rs", line + 1));
        }
        let code: String = source.code.lines().nth(line).unwrap_or_default().split_whitespace().collect();
        let explained = source
            .text
            .lines()
            .skip(line.saturating_sub(8))
            .take(line.min(8) + 1)
            .any(|l| l.contains("SAFETY:"));
        if (code.contains("unsafe{") || code.contains("unsafeimpl")) && !explained {
            bad.push(format!("{path}:{}: unsafe without // SAFETY: above it", line + 1));
        }
    }
    bad
}

/// Words that belong to one module, seen elsewhere in live code.
pub fn private_words(tree: &Tree) -> Vec<String> {
    let mut bad = Vec::new();
    for source in written(tree) {
        for (index, _, code) in source.live() {
            for (word, home) in PRIVATE {
                if !source.path.starts_with(home) && words(code).any(|(_, w)| w == *word) {
                    bad.push(format!("{}:{}: {word} is for {home} alone", source.path, index + 1));
                }
            }
        }
    }
    bad
}

/// Ops that are part of a program's structure and compute nothing of their own: they have no class to match on.
const STRUCTURE: [&str; 8] =
    ["Input", "Constant", "ConstDims", "Weight", "BindDim", "Fused", "Cond", "Repeat"];

/// The exporter's table of forms: an operator of ONNX is chosen by what an op means and by its attributes, which no class holds.
const FORMS: &str = "codegen/src/onnx/forms.rs";

/// Arms of a `match` on `Op` outside the op table's folder, structure ops aside. Files with a type of their own called
/// `Op` are not meant.
pub fn op_matches(tree: &Tree) -> Vec<String> {
    let mut bad = Vec::new();
    let elsewhere = |s: &&Source| {
        !s.path.starts_with("ir/src/ops/") && !s.path.starts_with("tests/tidy/") && s.path != FORMS
    };
    for source in written(tree).filter(elsewhere) {
        if source.code.contains("enum Op ") || source.code.contains(" as Op") {
            continue;
        }
        for (index, _, code) in source.live() {
            let pattern = code.split("=>").next().unwrap_or_default();
            let computes = |rest: &str| {
                let name = rest.split(|c: char| !is_ident(c)).next().unwrap_or_default();
                !STRUCTURE.contains(&name)
            };
            let names_op = words(pattern)
                .any(|(at, w)| w == "Op" && pattern[at..].strip_prefix("Op::").is_some_and(computes));
            let is_arm = code.contains("=>") || code.trim_start().starts_with("| ");
            if names_op && is_arm && !pattern.contains(" = ") {
                bad.push(format!("{}:{}: match on Op; match on its class instead", source.path, index + 1));
            }
        }
    }
    bad
}

/// Machine paths and registry hosts in any text file.
pub fn forbidden_words(tree: &Tree) -> Vec<String> {
    let mut bad = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            if let Some(word) = FORBIDDEN.iter().find(|w| line.contains(**w)) {
                bad.push(format!("{}:{}: {word:?} belongs to one machine or registry", file.path, index + 1));
            }
        }
    }
    bad
}

/// Work left for later without an issue number.
pub fn bare_todos(tree: &Tree) -> Vec<String> {
    let mut bad = Vec::new();
    for file in &tree.files {
        for (index, line) in file.text.lines().enumerate() {
            for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
                let found = words(line).find(|(_, w)| *w == word);
                if found.is_some_and(|(at, _)| !line[at + word.len()..].starts_with("(#")) {
                    bad.push(format!(
                        "{}:{}: {word} without an issue: write {word}(#n)",
                        file.path,
                        index + 1
                    ));
                }
            }
        }
    }
    bad
}
