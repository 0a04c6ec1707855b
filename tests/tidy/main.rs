//! The structure of the repository, checked as tests: sizes, names, docs, edges between crates, panics, `unsafe`.
//!
//! Plain text work, no compiler: `source.rs` reads, `rules.rs`, `manifests.rs` and `docs.rs` judge, `selftest.rs` shows
//! that each rule can fail. The numbers are printed by every run, past the capture of output; ceilings only go down.

mod docs;
mod manifests;
mod rules;
mod selftest;
mod source;

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use source::Tree;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn tree() -> &'static Tree {
    static TREE: OnceLock<Tree> = OnceLock::new();
    TREE.get_or_init(|| Tree::load(root()))
}

fn none(violations: Vec<String>) {
    assert!(violations.is_empty(), "{} violations:\n  {}", violations.len(), violations.join("\n  "));
}

#[test]
fn files_are_short() {
    none(rules::long_files(tree()));
}

#[test]
fn functions_are_short() {
    none(rules::long_functions(tree()));
}

#[test]
fn every_file_says_what_lives_in_it() {
    none(rules::module_docs(tree()));
}

#[test]
fn public_items_of_ir_and_runtime_are_documented() {
    none(rules::public_docs(tree()));
}

#[test]
fn files_are_named_by_what_they_define() {
    none(rules::file_names(tree()));
}

#[test]
fn crates_keep_their_pub_budget() {
    none(rules::pub_budget(tree()));
}

#[test]
fn panics_are_few_and_reasoned() {
    none(rules::panic_rule(tree()));
}

#[test]
fn unsafe_stays_where_it_is_listed() {
    none(rules::unsafe_rule(tree()));
}

#[test]
fn petgraph_and_llvm_stay_behind_one_module() {
    none(rules::private_words(tree()));
}

#[test]
fn nobody_matches_on_op() {
    none(rules::op_matches(tree()));
}

#[test]
fn no_machine_paths_or_registry_hosts() {
    none(rules::forbidden_words(tree()));
}

#[test]
fn work_left_names_its_issue() {
    none(rules::bare_todos(tree()));
}

#[test]
fn crates_depend_along_the_map() {
    none(manifests::edges(tree()));
}

#[test]
fn ops_are_spelled_one_way() {
    none(docs::op_table(tree()));
}

#[test]
fn architecture_page_stays_readable() {
    let lines = tree().file("ARCHITECTURE.md").map_or(0, |f| f.text.lines().count());
    assert!(lines <= 200, "ARCHITECTURE.md has {lines} lines, at most 200");
}

#[test]
fn pages_show_commits_as_they_were() {
    let (bad, skipped) = docs::pages(root(), tree());
    for note in skipped {
        print_past_capture(&format!("tidy: not compared: {note}\n"));
    }
    none(bad);
}

/// Not a rule: prints every number with its aim and its ceiling.
#[test]
fn numbers() {
    let tree = tree();
    let mut out = String::from("tidy: health numbers (aim; ceiling)\n");
    let mut line = |name: &str, value: String, aim: &str| {
        out.push_str(&format!("tidy:   {name:<44} {value:<24} ({aim})\n"));
    };
    let mut files: Vec<usize> = rules::file_lengths(tree).into_iter().map(|(n, _)| n).collect();
    files.sort_unstable();
    let value = format!("{} / {} / {}", quantile(&files, 50), quantile(&files, 90), quantile(&files, 100));
    line("source file lines: median / p90 / max", value, "150 / 400 / 600; max 800");
    let mut functions: Vec<usize> = rules::function_lengths(tree).into_iter().map(|(n, _)| n).collect();
    functions.sort_unstable();
    let value =
        format!("{} / {} of {}", quantile(&functions, 95), quantile(&functions, 100), functions.len());
    line("function lines: p95 / max", value, "40 / 80; max 120");
    for (name, count, aim) in rules::pub_items(tree) {
        line(&format!("pub items: {name}"), count.to_string(), &format!("{aim}; {}", aim + aim / 5));
    }
    line("files without module docs", rules::module_docs(tree).len().to_string(), "0; 0");
    let panics = rules::panics(tree);
    for manifest in manifests::manifests(tree) {
        let count = panics.iter().filter(|p| p.krate == manifest.name).count();
        line(
            &format!("can panic outside tests: {}", manifest.name),
            count.to_string(),
            "fewer than 5, each with reason",
        );
    }
    line("lines with unsafe, all in listed files", rules::unsafe_lines(tree).len().to_string(), "-");
    line("match on Op outside ir/src/ops", rules::op_matches(tree).len().to_string(), "0; 0");
    line("edges between crates off the map", manifests::edges(tree).len().to_string(), "0; 0");
    let ops = docs::op_rows(tree).map_or("no op table".to_string(), |rows| rows.len().to_string());
    line("ops in the table", ops, "review at 60; 90 core");
    let fixtures = tree.files.iter().filter(|f| f.path.starts_with("tests/") && f.path.ends_with(".tgir"));
    let mut fixtures: Vec<usize> = fixtures.map(|f| f.text.lines().count()).collect();
    fixtures.sort_unstable();
    line("fixture lines: median of", format!("{} of {}", quantile(&fixtures, 50), fixtures.len()), "25; 60");
    print_past_capture(&out);
}

fn quantile(sorted: &[usize], percent: usize) -> usize {
    sorted.get((sorted.len() * percent / 100).min(sorted.len().saturating_sub(1))).copied().unwrap_or(0)
}

/// The test harness captures only what goes through the print macros.
fn print_past_capture(text: &str) {
    // Nothing to be done about a closed stderr.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
