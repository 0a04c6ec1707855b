//! Every rule has a fixture in which it fires and one (`<rule>_not..`) in which it does not, and both sides of each
//! fixture compute the same. The text of the results is compared by the workspace's harness, not here.

mod support;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use support::{inputs, same};
use tgc_ir::interp::run_bounded;
use tgc_ir::module::Module;
use tgc_ir::text::{parse_module, print_module};
use tgc_passes::{Options, run_pipeline};

struct Fixture {
    pass: String,
    name: String,
    module: Module,
}

fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/passes");
    let mut dirs: Vec<PathBuf> = std::fs::read_dir(&root).unwrap().map(|d| d.unwrap().path()).collect();
    dirs.sort();
    let mut out = Vec::new();
    for dir in dirs {
        let mut files: Vec<PathBuf> = std::fs::read_dir(&dir).unwrap().map(|d| d.unwrap().path()).collect();
        files.retain(|f| f.extension().is_some_and(|e| e == "tgir"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let module = parse_module(&text, &|_| None)
                .unwrap_or_else(|e| panic!("{}: {}", file.display(), e[0].render(Some(&text))));
            let stem = |p: &Path| p.file_stem().unwrap().to_string_lossy().into_owned();
            out.push(Fixture { pass: stem(&dir), name: stem(&file), module });
        }
    }
    assert!(out.len() > 50);
    out
}

fn check(module: &Module, options: &Options, what: &str) -> Vec<String> {
    let mut after = module.clone();
    let report = run_pipeline(&mut after, options)
        .unwrap_or_else(|e| panic!("{what}: {}\n{}", e[0].render(None), print_module(&after)));
    assert!(report.warnings.is_empty(), "{what}: {:?}", report.warnings);
    for size in [1, 2, 4] {
        let ins = inputs(module, size, 7);
        // A size that the fixture's guards refuse says nothing.
        let Ok(want) = run_bounded(module, "main", &ins) else { continue };
        let got = run_bounded(&after, "main", &ins)
            .unwrap_or_else(|e| panic!("{what}: {}\n{}", e.render(None), print_module(&after)));
        same(&want, &got, what);
    }
    if std::env::var_os("SHOW_FIXTURES").is_some() {
        println!("==== {what}: {:?}\n{}", report.fired, print_module(&after));
    }
    report.fired.into_keys().collect()
}

#[test]
fn rules_fire_where_they_should_and_nowhere_else() {
    let mut fired = BTreeSet::new();
    let mut spared = BTreeSet::new();
    for f in fixtures() {
        let options = Options { passes: Some(vec![f.pass.clone()]), verify_each: true, ..Options::default() };
        let what = format!("{}::{}", f.pass, f.name);
        let rules = check(&f.module, &options, &what);
        let rule = f.name.split("_not").next().unwrap_or_default();
        let named = |r: &String| f.name.contains("_not") && *r == rule;
        assert!(!rules.iter().any(named), "{what} must not fire, but {rules:?} did");
        if f.name.contains("_not") {
            spared.insert(f.pass.clone());
            spared.insert(rule.to_string());
        } else {
            assert!(!rules.is_empty(), "{what}: nothing fired");
        }
        fired.extend(rules);
    }
    for (pass, ..) in tgc_passes::pipeline::passes() {
        assert!(spared.contains(pass), "pass `{pass}` has no fixture in which it must not fire");
    }
    for rule in tgc_passes::pipeline::rules() {
        assert!(fired.contains(rule), "rule `{rule}` fires in no fixture");
        assert!(spared.contains(rule), "rule `{rule}` has no fixture in which it must not fire");
    }
}

#[test]
fn the_pipeline_is_right_with_any_optional_pass_removed() {
    let optional: Vec<&str> = tgc_passes::pipeline::passes().filter(|p| !p.1).map(|p| p.0).collect();
    for f in fixtures().iter().step_by(5).filter(|f| f.pass != "outline") {
        for gone in optional.iter().map(|o| vec![*o]).chain([vec![], optional.clone()]) {
            let kept = tgc_passes::pipeline::DEFAULT.iter().filter(|p| !gone.contains(p));
            let passes = Some(kept.map(|p| p.to_string()).collect());
            let what = format!("{}::{} without {gone:?}", f.pass, f.name);
            check(&f.module, &Options { passes, ..Options::default() }, &what);
        }
    }
}

#[test]
fn everything_that_computes_ends_in_a_kernel() {
    for f in fixtures() {
        let mut m = f.module.clone();
        run_pipeline(&mut m, &Options::default()).unwrap();
        for g in m.graphs() {
            for id in g.ids() {
                let op = g.op_of(id).unwrap().name();
                let structure =
                    ["input", "weight", "constant", "fused", "bind_dim", "cond", "repeat"].contains(&op);
                assert!(structure, "{}::{}: `{op}` is left\n{}", f.pass, f.name, print_module(&m));
                for region in &g.node(id).unwrap().regions {
                    if op == "fused" {
                        let tiling = tgc_ir::tiling::tiling(region).unwrap();
                        assert!(tiling.is_some(), "{}::{}: no kernel\n{}", f.pass, f.name, print_module(&m));
                    }
                }
            }
        }
    }
}

#[test]
fn bisection_stops_after_so_many_patches_and_stays_right() {
    for f in fixtures().iter().filter(|f| f.pass == "fuse" || f.pass == "canonicalise").step_by(7) {
        let full = run_pipeline(&mut f.module.clone(), &Options::default()).unwrap();
        for n in 0..=full.patches {
            let options = Options { bisect: Some(n), ..Options::default() };
            check(&f.module, &options, &format!("{}::{} up to patch {n}", f.pass, f.name));
            let report = run_pipeline(&mut f.module.clone(), &options).unwrap();
            assert_eq!(report.patches, n);
        }
    }
}

#[test]
fn unknown_names_list_the_valid_ones() {
    let fixture = &fixtures()[0];
    let options =
        Options { passes: Some(vec!["fuze".into()]), stop_after: Some("dcf".into()), ..Options::default() };
    let faults = run_pipeline(&mut fixture.module.clone(), &options).unwrap_err();
    assert_eq!(faults.len(), 2);
    assert!(faults.iter().all(|f| f.code == "E-PASS-001" && f.help.as_ref().unwrap().contains("decompose")));
    let options =
        Options { passes: Some(vec!["dce".into()]), stop_after: Some("cse".into()), ..Options::default() };
    assert_eq!(run_pipeline(&mut fixture.module.clone(), &options).unwrap_err()[0].code, "E-PASS-004");
}

#[test]
fn the_driver_stops_prints_and_times() {
    let fixture = &fixtures()[0];
    let options = Options { stop_after: Some("cse".into()), print_after_all: true, ..Options::default() };
    let report = run_pipeline(&mut fixture.module.clone(), &options).unwrap();
    let names: Vec<&str> = report.times.iter().map(|t| t.0).collect();
    assert_eq!(names, ["canonicalise", "fold_constants", "simplify_shapes", "cse"]);
    assert_eq!(report.texts.len(), 4);
    assert!(report.texts.iter().all(|t| t.1.contains("graph @main")));
}
