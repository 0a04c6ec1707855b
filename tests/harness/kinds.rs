//! What is done with a fixture of each kind.

use crate::dynamic;
use crate::execute::{self, Run};
use crate::header::{self, Header};
use crate::walk::{Fixture, Kind};
use tgc_ir::diag::Diag;
use tgc_ir::graph::Graph;
use tgc_ir::module::Module;
use tgc_ir::text::{parse_module, print_module};
use tgc_ir::verify::verify;

pub fn run(f: &Fixture) -> Result<(), String> {
    let bytes = std::fs::read(&f.path).map_err(|e| e.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "not UTF-8".to_string())?;
    let (h, body) = header::read(&text, f.kind)?;
    match f.kind {
        Kind::Text => text_fixture(&text, body, &h),
        Kind::Op => op_fixture(f, &text, &h),
        Kind::Fail => failing(&text, &h).map(|_| ()),
        Kind::Diag => {
            let shown = failing(&text, &h)?;
            snapshot(f, &shown);
            Ok(())
        }
        Kind::Pass => pass_fixture(f, &text, &h),
    }
}

fn render(d: &[Diag], text: &str) -> String {
    d.iter().map(|d| d.render(Some(text))).collect::<Vec<_>>().join("\n")
}

fn parse(text: &str) -> Result<Module, String> {
    parse_module(text, &|_| None).map_err(|e| render(&e, text))
}

/// Reads, verifies, prints and reads back; gives the module and its text.
fn well_formed(text: &str) -> Result<(Module, String), String> {
    let m = parse(text)?;
    let faults = verify(&m);
    if !faults.is_empty() {
        return Err(render(&faults, text));
    }
    let printed = print_module(&m);
    let again = parse_module(&printed, &|n| m.weights.get(n).cloned())
        .map_err(|e| format!("what is printed cannot be read:\n{}\n{printed}", render(&e, &printed)))?;
    let second = print_module(&again);
    if second != printed {
        return Err(format!("printed twice, it differs:\n{}", difference(&printed, &second)));
    }
    Ok((m, printed))
}

fn text_fixture(text: &str, body: &str, h: &Header) -> Result<(), String> {
    let (m, printed) = well_formed(text)?;
    match h.get("canonical") {
        None => {}
        Some("yes") if printed.trim() == body.trim() => {}
        Some("yes") => {
            return Err(format!("not what is printed:\n{}", difference(body.trim(), printed.trim())));
        }
        Some(v) => return Err(format!("`canonical: {v}`; only `yes` is known")),
    }
    if let Some(seed) = h.seed()? {
        transformed(&m, &execute::seeded(&m, h, seed)?)?;
    }
    cases(&m, h)
}

fn op_fixture(f: &Fixture, text: &str, h: &Header) -> Result<(), String> {
    let (m, _) = well_formed(text)?;
    let op = h.need("op")?;
    if op != f.stem() && !f.stem().starts_with(&format!("{op}_")) {
        return Err(format!("`op: {op}` in a file called {}", f.stem()));
    }
    if let Some(g) = m.graphs().find(|g| !uses(g, op)) {
        return Err(format!("graph @{} does not use `{op}`", g.name));
    }
    let seed = h.seed()?.ok_or("the header lacks `// seed: ...`")?;
    let mut runs = execute::seeded(&m, h, seed)?;
    transformed(&m, &runs)?;
    cases(&m, h)?;
    for c in &h.cases {
        runs.push(execute::case(&m, c)?);
    }
    dynamic::check(&f.stem(), &m, &runs)
}

fn uses(g: &Graph, op: &str) -> bool {
    g.ids()
        .into_iter()
        .filter_map(|i| g.node(i))
        .any(|n| n.op.name() == op || n.regions.iter().any(|r| uses(r, op)))
}

fn cases(m: &Module, h: &Header) -> Result<(), String> {
    for c in &h.cases {
        let run = execute::check_case(m, c, h.tolerance()?)?;
        transformed(m, &[run])?;
    }
    Ok(())
}

/// The runs give the same after decomposition and after the default pipeline.
fn transformed(m: &Module, runs: &[Run]) -> Result<(), String> {
    for (what, names) in
        [("decomposed", Some(vec!["decompose".to_string()])), ("after the default pipeline", None)]
    {
        let mut after = m.clone();
        execute::passes(&mut after, names).map_err(|e| format!("{what}: {}", render(&e, "")))?;
        for run in runs {
            execute::same(m, &after, run, what).map_err(|e| format!("{e}\n{}", print_module(&after)))?;
        }
    }
    Ok(())
}

/// Everything that is reported for a faulty text, after checking that the first error is the one wanted.
fn failing(text: &str, h: &Header) -> Result<String, String> {
    let want = h.need("error")?;
    let (code, words) = want.split_once(' ').unwrap_or((want, ""));
    let found = faults(text, h)?;
    let first = found.first().ok_or_else(|| format!("no error was found; wanted {want}"))?;
    let shown = render(&found, text);
    let message = first.render(None);
    if first.code != code || !message.contains(words.trim()) {
        return Err(format!("wanted {want}, found:\n{shown}"));
    }
    Ok(shown)
}

fn faults(text: &str, h: &Header) -> Result<Vec<Diag>, String> {
    let m = match parse_module(text, &|_| None) {
        Ok(m) => m,
        Err(e) => return Ok(e),
    };
    let found = verify(&m);
    if !found.is_empty() {
        return Ok(found);
    }
    for c in &h.cases {
        let run = execute::case(&m, c)?;
        if let Err(d) = execute::bounded(&m, &run) {
            return Ok(vec![d]);
        }
    }
    Ok(Vec::new())
}

fn pass_fixture(f: &Fixture, text: &str, h: &Header) -> Result<(), String> {
    let (m, _) = well_formed(text)?;
    let names: Vec<String> = h.need("pass")?.split(',').map(|s| s.trim().to_string()).collect();
    let mut after = m.clone();
    let fired = execute::passes(&mut after, Some(names)).map_err(|e| render(&e, text))?;
    let seed = h.seed()?.ok_or("the header lacks `// seed: ...`")?;
    for run in execute::seeded(&m, h, seed)? {
        execute::same(&m, &after, &run, "before and after")?;
    }
    for c in &h.cases {
        let run = execute::check_case(&m, c, h.tolerance()?)?;
        execute::same(&m, &after, &run, "before and after")?;
    }
    // last, so that a wrong rewrite is found whether or not somebody has accepted its text
    snapshot(f, &format!("{}{fired}\n", print_module(&after)));
    Ok(())
}

/// Compares with the snapshot beside the fixture, by the rules of insta.
fn snapshot(f: &Fixture, text: &str) {
    let mut s = insta::Settings::clone_current();
    s.set_snapshot_path(f.folder());
    s.set_prepend_module_to_snapshot(false);
    s.set_omit_expression(true);
    s.bind(|| insta::assert_snapshot!(f.stem(), text));
}

/// The first line that differs, from both sides.
fn difference(a: &str, b: &str) -> String {
    let mut lines = a.lines().zip(b.lines()).enumerate();
    match lines.find(|(_, (x, y))| x != y) {
        Some((i, (x, y))) => format!("line {}:\n  {x}\n  {y}", i + 1),
        None => format!("{} lines and {} lines", a.lines().count(), b.lines().count()),
    }
}
