//! The tables of docs/pytorch.md against the source: what they name exists with these arguments, every public method of
//! `Tensor` is in them, and what is absent is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The files of a folder, and their text.
fn sources(folder: &str) -> Vec<(String, String)> {
    let folder = root().join("frontend/src/nn").join(folder);
    let mut out = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "rs") {
            out.push((path.file_stem().unwrap().to_string_lossy().into_owned(), read(&path)));
        }
    }
    out.sort();
    out
}

/// Parts between commas that are in no brackets.
fn parts(list: &str) -> Vec<String> {
    let (mut out, mut depth) = (vec![String::new()], 0);
    for c in list.chars() {
        match c {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' | '>' => depth -= 1,
            _ => {}
        }
        match out.last_mut() {
            Some(_) if c == ',' && depth == 0 => out.push(String::new()),
            Some(last) => last.push(c),
            None => {}
        }
    }
    out.into_iter().map(|p| p.trim().to_string()).filter(|p| !p.is_empty()).collect()
}

/// What is inside the first round brackets.
fn inside(text: &str) -> &str {
    let Some(open) = text.find('(') else { return "" };
    let mut depth = 0;
    for (i, c) in text[open..].char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return &text[open + 1..open + i];
        }
    }
    ""
}

/// Public functions of a text, with the names of their arguments where the text declares them in full.
fn functions(text: &str) -> BTreeMap<String, Option<Vec<String>>> {
    let mut out = BTreeMap::new();
    for (at, key) in text.match_indices("pub fn ") {
        let rest = &text[at + key.len()..];
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if name.is_empty() {
            continue;
        }
        let head = &rest[..rest.find([';', '{']).unwrap_or(rest.len())];
        // rows of macros give names of their own, or none, to what they take
        let whole = head.contains("->") || head.contains("&mut self");
        let given = parts(inside(head)).into_iter().filter(|p| !p.ends_with("self"));
        let named = given.map(|p| p.split(':').next().unwrap_or("").trim().to_string()).collect();
        out.insert(name, whole.then_some(named));
    }
    out
}

/// The first code of each row of the tables between two headings.
fn rows(doc: &str, from: &str, to: &str) -> Vec<String> {
    let part = doc.split(from).nth(1).and_then(|t| t.split(to).next());
    let part = part.unwrap_or_else(|| panic!("no part {from}"));
    let code = |l: &str| l.strip_prefix("| `").and_then(|l| l.split('`').next()).map(String::from);
    part.lines().filter_map(code).collect()
}

fn doc() -> String {
    read(&root().join("docs/pytorch.md"))
}

/// Methods of `Tensor`: those of its own file and of all files of operations but `functional`.
fn methods() -> BTreeMap<String, Option<Vec<String>>> {
    let own = read(&root().join("frontend/src/nn/tensor.rs"));
    let mut all = functions(&own);
    for (file, text) in sources("ops") {
        // `step` makes an index and is no method of a tensor
        if file != "functional" {
            all.extend(functions(&text).into_iter().filter(|(n, _)| file != "index" || n != "step"));
        }
    }
    all
}

#[test]
fn methods_and_their_arguments() {
    let (have, mut seen) = (methods(), BTreeSet::new());
    for row in rows(&doc(), "\n## Tensors\n", "\n## Functional\n") {
        let call = row.strip_prefix("x.").or_else(|| row.strip_prefix("Tensor::"));
        let name = call.and_then(|c| c.split('(').next()).unwrap_or_else(|| panic!("no call: {row}"));
        assert!(seen.insert(name.to_string()), "{name} is there twice");
        let Some(args) = have.get(name) else { panic!("{row}: there is no such method") };
        if let Some(args) = args {
            assert_eq!(&parts(inside(&row)), args, "{row}");
        }
    }
    let missing: Vec<&String> = have.keys().filter(|n| !seen.contains(*n)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    assert!(seen.len() >= 350, "{} methods", seen.len());
}

#[test]
fn functional_and_layers_exist() {
    let functional: String = sources("ops/functional").into_iter().map(|f| f.1).collect();
    let have = functions(&functional);
    let mut seen = BTreeSet::new();
    for row in rows(&doc(), "\n## Functional\n", "\n## Layers\n") {
        let name = row.strip_prefix("functional::").and_then(|c| c.split('(').next());
        let found = name.and_then(|n| have.get(n));
        assert!(found.is_some(), "{row}: there is no such function");
        seen.extend(name.map(String::from));
        if let Some(Some(args)) = found {
            assert_eq!(&parts(inside(&row)), args, "{row}");
        }
    }
    // what stands at the start of a line is no row of a macro
    let plain = have.keys().filter(|n| functional.contains(&format!("\npub fn {n}")));
    let missing: Vec<&String> = plain.filter(|n| !seen.contains(*n)).collect();
    assert!(missing.is_empty(), "not in the table: {missing:?}");
    let layers: String = sources("layers").into_iter().map(|f| f.1).collect();
    let words: BTreeSet<&str> = layers.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for row in rows(&doc(), "\n## Layers\n", "\n## Absent\n") {
        let name = row.strip_prefix("layers::").unwrap_or("");
        assert!(words.contains(name), "{row}: there is no such layer");
    }
}

#[test]
fn what_is_absent_is_not_there() {
    let doc = doc();
    let absent = doc.split("\n## Absent\n").nth(1).unwrap();
    let have = methods();
    let mut count = 0;
    for (_, names) in absent.split("\n\n").filter_map(|p| p.split_once(": ")) {
        for name in names.split('`').skip(1).step_by(2) {
            assert!(!have.contains_key(name), "{name} exists");
            count += 1;
        }
    }
    assert!(count > 50, "{count} names");
}
