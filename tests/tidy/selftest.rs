//! Each rule against a small made-up tree that breaks it, and one that only looks as if it did.

use crate::source::{File, Source, Tree, blank};
use crate::{docs, manifests, rules};

fn tree(files: &[(&str, &str)]) -> Tree {
    let files = files.iter().map(|(path, text)| File { path: path.to_string(), text: text.to_string() });
    Tree::new(files.collect())
}

fn in_ir(text: &str) -> Tree {
    tree(&[("ir/Cargo.toml", "[package]\nname = \"tgc-ir\"\n"), ("ir/src/x.rs", text)])
}

#[track_caller]
fn broken(rule: fn(&Tree) -> Vec<String>, tree: &Tree, want: &[&str]) {
    let got = rule(tree);
    assert_eq!(got.len(), want.len(), "{got:?}");
    for (got, want) in got.iter().zip(want) {
        assert!(got.contains(want), "{got:?} does not mention {want:?}");
    }
}

#[test]
fn blanking_keeps_code_and_columns() {
    let cases = [
        ("a // b", "a "),
        ("a\n/* b /* c\n */ d */ e", "a\n \n e"),
        ("f(\"un\\\"safe\") + 1", "f(\" \") + 1"),
        ("r#\"a\"b\"# x", "r#\" \"# x"),
        ("br\"\\\" x", "br\" \" x"),
        ("'\"' 'a '\\'' 'static", "' ' 'a ' ' 'static"),
        ("'é' \"é\" x", "' ' \" \" x"),
    ];
    for (text, want) in cases {
        let got = blank(text);
        assert_eq!(got.len(), text.len(), "{text}");
        assert_eq!(squeeze(&got), want, "{text}");
    }
}

/// Runs of spaces as one.
fn squeeze(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if !(c == ' ' && out.ends_with(' ')) {
            out.push(c);
        }
    }
    out
}

#[test]
fn test_code_is_told_apart() {
    let text =
        "fn live() {}\n#[cfg(test)]\n#[rustfmt::skip]\nmod tests {\n    fn dead() {}\n}\nfn live2() {}\n";
    let names: Vec<String> = Source::new("a.rs", text).functions().into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["live", "live2"]);
    let tree = tree(&[
        ("ir/src/a.rs", "#[cfg(test)]\nmod checks;\nfn a() {}\n"),
        ("ir/src/a/checks.rs", "fn b() {}\n"),
        ("ir/src/a/other.rs", "fn c() {}\n"),
        ("ir/tests/d.rs", "fn d() {}\n"),
    ]);
    let live: Vec<String> = rules::function_lengths(&tree).into_iter().map(|(_, place)| place).collect();
    assert_eq!(live, ["ir/src/a.rs:3 fn a", "ir/src/a/other.rs:1 fn c"]);
}

#[test]
fn lengths() {
    let body = "    x();\n".repeat(rules::FUNCTION_LINES);
    broken(
        rules::long_functions,
        &in_ir(&format!("fn f(a: [u8; 2])\nwhere\n    A: B,\n{{\n{body}}}\n")),
        &["fn f: 125"],
    );
    broken(rules::long_functions, &in_ir(&format!("fn f() {{\n{}}}\n", &body[..9 * 118])), &[]);
    broken(rules::long_functions, &in_ir(&format!("#[test]\nfn f() {{\n{body}}}\n")), &[]);
    let line = "// x\n";
    broken(rules::long_files, &in_ir(&line.repeat(rules::FILE_LINES + 1)), &["801 lines"]);
    broken(rules::long_files, &in_ir(&line.repeat(rules::FILE_LINES)), &[]);
    let generated = format!("// @generated\n{}", line.repeat(rules::FILE_LINES));
    broken(rules::long_files, &in_ir(&generated), &[]);
}

#[test]
fn docs_and_names() {
    broken(rules::module_docs, &in_ir("// no\n//! doc\nfn a() {}\n"), &[]);
    broken(rules::module_docs, &in_ir("use a;\n//! doc\n"), &["ir/src/x.rs"]);
    broken(rules::module_docs, &in_ir(""), &["ir/src/x.rs"]);
    broken(
        rules::file_names,
        &tree(&[("ir/src/common/mod.rs", ""), ("ir/src/commons.rs", "")]),
        &["common/mod"],
    );
    broken(rules::public_docs, &tree(&[("ir/src/lib.rs", "//! a\n")]), &["missing_docs"]);
    broken(rules::public_docs, &tree(&[("ir/src/lib.rs", "#![deny(missing_docs)]\n")]), &[]);
}

#[test]
fn pub_budget() {
    let passes = |n: usize| {
        let text = format!(
            "pub(crate) fn a() {{}}\npub use b;\npub field: u8,\n{}",
            "pub const fn f() {}\n".repeat(n)
        );
        tree(&[("passes/Cargo.toml", "[package]\nname = \"tgc-passes\"\n"), ("passes/src/x.rs", &text)])
    };
    broken(rules::pub_budget, &passes(48), &[]);
    broken(rules::pub_budget, &passes(49), &["tgc-passes: 49 pub items"]);
}

#[test]
fn panics() {
    broken(rules::panic_rule, &in_ir("fn f() {\n    a.unwrap();\n}\n"), &["x.rs:2: .unwrap()"]);
    broken(rules::panic_rule, &in_ir("fn f() {\n    // REASON: a is never none.\n    a.unwrap();\n}\n"), &[]);
    broken(
        rules::panic_rule,
        &in_ir("fn f() {\n    // Never none.\n    let x = a\n        .unwrap();\n}\n"),
        &[],
    );
    broken(
        rules::panic_rule,
        &in_ir("fn f() {\n    b(); // why\n    c();\n    a.unwrap();\n}\n"),
        &["x.rs:4"],
    );
    broken(rules::panic_rule, &in_ir("fn f() {\n    self.expect(X)?;\n    p.expect(\"(\")?;\n}\n"), &[]);
    broken(rules::panic_rule, &in_ir("fn f() {\n    p.expect(\"some\");\n}\n"), &["x.rs:2: .expect("]);
    broken(rules::panic_rule, &in_ir("fn f() {\n    todo!() // later\n}\n"), &["x.rs:2: todo!"]);
    broken(rules::panic_rule, &in_ir("// a.unwrap() panic!\n#[test]\nfn f() {\n    a.unwrap();\n}\n"), &[]);
    let five = "    a.unwrap(); // why\n".repeat(5);
    broken(rules::panic_rule, &in_ir(&format!("fn f() {{\n{five}}}\n")), &["tgc-ir: 5 places"]);
}

#[test]
fn unsafe_code() {
    let explained =
        "fn f() {\n    // SAFETY: fine.\n    unsafe { a() }\n}\n#![deny(unsafe_code)]\n// unsafe\n";
    broken(rules::unsafe_rule, &tree(&[("runtime/src/exec.rs", explained)]), &[]);
    broken(rules::unsafe_rule, &tree(&[("codegen/src/cpu/emit.rs", explained)]), &[]);
    broken(rules::unsafe_rule, &in_ir(explained), &["x.rs:3: unsafe outside"]);
    broken(rules::unsafe_rule, &tree(&[("runtime/src/exec.rs", "fn f() { unsafe { a() } }\n")]), &["SAFETY"]);
}

#[test]
fn private_words_and_op_matches() {
    broken(rules::private_words, &in_ir("use petgraph::Graph; // petgraph\n"), &["x.rs:1: petgraph"]);
    broken(rules::private_words, &tree(&[("ir/src/graph.rs", "use petgraph::Graph;\n")]), &[]);
    broken(rules::op_matches, &in_ir("        Op::Add(_) => 1,\n"), &["x.rs:1"]);
    broken(rules::op_matches, &in_ir("        Op::Add(_)\n        | Op::Sub(_) => 1,\n"), &["x.rs:2"]);
    broken(
        rules::op_matches,
        &in_ir("        BinOp::Add => Op::Add(a),\n        |x| Op::Add(x)\n    let a = Op::Add(b);\n"),
        &[],
    );
    broken(rules::op_matches, &tree(&[("ir/src/ops/add.rs", "        Op::Add(_) => 1,\n")]), &[]);
}

#[test]
fn words_in_any_file() {
    let path = concat!("see /wo", "rk/x\n");
    broken(rules::forbidden_words, &tree(&[("a.md", path), ("b.md", "network/x\n")]), &["a.md:1"]);
    let later = concat!("TO", "DO: x\nTO", "DO(#3): x\nFIX", "ME\n");
    broken(rules::bare_todos, &tree(&[("a.sh", later)]), &["a.sh:1", "a.sh:3"]);
}

#[test]
fn edges() {
    let manifest = |name: &str, rest: &str| format!("[package]\nname = \"{name}\"\n[dependencies]\n{rest}");
    let ir = manifest("tgc-ir", "indexmap.workspace = true\n");
    let good = manifest("tgc-passes", "tgc-ir = { path = \"../ir\" }\nserde = \"1\"\n");
    let bad = manifest("tgc-runtime", "[dev-dependencies]\ntgc-ir.workspace = true\n[dependencies.libc]\n");
    let renamed =
        manifest("tgc-frontend", "x = { package = \"tgc-passes\", path = \"p\" }\npetgraph = \"1\"\n");
    let unknown = manifest("extra", "");
    let tree = tree(&[
        ("ir/Cargo.toml", &ir),
        ("passes/Cargo.toml", &good),
        ("runtime/Cargo.toml", &bad),
        ("frontend/Cargo.toml", &renamed),
        ("extra/Cargo.toml", &unknown),
        ("Cargo.toml", "[workspace.dependencies]\ntgc-ir = 1\n"),
    ]);
    let want = [
        "tgc-runtime -> tgc-ir [dev-dependencies]",
        "tgc-runtime -> libc",
        "tgc-frontend -> tgc-passes",
        "tgc-frontend -> petgraph",
        "extra is not on the map",
    ];
    broken(manifests::edges, &tree, &want);
}

#[test]
fn op_tables() {
    let table = "op_table! {\n    // comment::Skipped,\n    add::Add,\n    layer_norm::LayerNorm, // x\n    conv::Convolve,\n}\n";
    let tree = tree(&[
        ("ir/src/ops/mod.rs", table),
        ("ir/src/ops/add.rs", ""),
        ("ir/src/ops/layer_norm.rs", ""),
        ("ir/src/ops/conv.rs", ""),
        ("tests/ops/add.tgir", ""),
        ("tests/ops/conv.tgir", ""),
        ("tests/ops/sub.tgir", ""),
    ]);
    broken(docs::op_table, &tree, &["tests/ops/layer_norm.tgir: missing", "convolve", "tests/ops/sub.tgir"]);
    assert_eq!(docs::op_rows(&tree).map(|rows| rows.len()), Some(3));
}

#[test]
fn shown_commits() {
    let page = "text\n```commit\nAdd the sign op\na.rs\nb.tgir\n```\nmore\n";
    let example = docs::example(page).expect("a block");
    assert_eq!((example.subject.as_str(), example.files.len()), ("Add the sign op", 2));
    let touched = |names: &[&str]| names.iter().map(|n| n.to_string()).collect::<Vec<_>>();
    assert!(docs::differences("p", &example, &touched(&["a.rs", "b.tgir", "c.snap"])).is_empty());
    assert_eq!(docs::differences("p", &example, &touched(&["a.rs", "d.rs"])).len(), 2);
    assert!(docs::example("no block").is_none());
}
