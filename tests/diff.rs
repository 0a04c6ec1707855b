//! `tgc diff`: what differs between two models or artifacts is said, and where.

use tgc::ir::module::Module;
use tgc::{BuildOptions, Differences, Side, Tolerance, build, diff};

const TEXT: &str = r#"
weight "w" : f32[3, 2] = dense<[[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]]>

graph @main(%x: f32[n, 3]) -> f32[n, 2] "y" {
  %w = weight "w" : f32[3, 2]
  %m = matmul %x, %w : f32[n, 2] loc "first"
  %a = tanh %m : f32[n, 2] loc "second"
  %y = mul %a, %a : f32[n, 2] loc "third"
  return %y
}
"#;

fn model(text: &str) -> Module {
    tgc::ir::text::parse_module(text, &|_| None).unwrap_or_else(|d| panic!("{}", d[0].render(Some(text))))
}

fn side(text: &str) -> Side {
    Side::Model(Box::new(model(text)))
}

fn artifact(text: &str) -> Side {
    let options = BuildOptions { targets: vec!["native".into()], ..BuildOptions::default() };
    let built = build(&mut model(text), &options, &mut |_| {}, &|| ()).unwrap();
    Side::Artifact(tgc::runtime::Loader::default().from_bytes(&built.to_bytes().unwrap()).unwrap())
}

fn between(a: &Side, b: &Side) -> Differences {
    diff(a, b, 0, Tolerance { absolute: None, relative: 0.0 }, &[]).unwrap()
}

#[test]
fn a_model_its_text_and_its_artifact_are_the_same() {
    for (a, b) in [
        (side(TEXT), side(TEXT)),
        (side(TEXT), artifact(TEXT)),
        (artifact(TEXT), side(TEXT)),
        (artifact(TEXT), artifact(TEXT)),
    ] {
        let found = between(&a, &b);
        assert!(found.same(), "{found:?}");
        assert!(found.interface.is_empty() && found.content.is_empty() && found.first.is_none(), "{found:?}");
        let runs: std::collections::BTreeSet<&str> = found.outputs.iter().map(|o| o.run.as_str()).collect();
        assert_eq!(runs.len(), 3, "three sizes of n: {runs:?}");
    }
}

#[test]
fn the_first_node_that_differs_is_named() {
    let other = TEXT.replace("tanh %m", "erf %m");
    let found = between(&side(TEXT), &side(&other));
    assert!(!found.same());
    assert!(found.first.as_ref().unwrap().starts_with("second: "), "{found:?}");
    let worst = found.outputs[0].worst.as_ref().unwrap();
    assert!(worst.contains("difference"), "{worst}");
    let changed = between(&side(TEXT), &side(&TEXT.replace("[0.5, -1.0]", "[0.5, -1.001]")));
    assert!(changed.first.as_ref().unwrap().starts_with("first: "), "{changed:?}");
    let allowed = Tolerance { absolute: Some(0.1), relative: 0.0 };
    let small =
        diff(&side(TEXT), &side(&TEXT.replace("[0.5, -1.0]", "[0.5, -1.001]")), 0, allowed, &[]).unwrap();
    assert!(small.same() && small.outputs.iter().any(|o| o.greatest > 0.0), "{small:?}");
}

#[test]
fn what_artifacts_hold_is_compared() {
    let found = between(&artifact(TEXT), &artifact(&TEXT.replace("3.0, 0.25", "3.0, 0.5")));
    assert_eq!(found.content, ["weight `w`: differs"]);
    assert!(!found.same());
    let kernel = between(&artifact(TEXT), &artifact(&TEXT.replace("tanh %m", "erf %m")));
    assert!(kernel.content.iter().any(|l| l.starts_with("kernel `")), "{kernel:?}");
}

#[test]
fn another_interface_is_told() {
    let renamed =
        between(&side(TEXT), &side(&TEXT.replace("%x: ", "%z: ").replace("matmul %x", "matmul %z")));
    assert_eq!(renamed.interface, ["only A: input `x`: f32[n, 3]", "only B: input `z`: f32[n, 3]"]);
    assert!(!renamed.same() && renamed.refused[0].contains("the same inputs"), "{renamed:?}");
    let pinned = TEXT.replace("[n, ", "[4, ");
    let fixed = between(&side(TEXT), &side(&pinned));
    assert!(fixed.interface.contains(&"only B: input `x`: f32[4, 3]".to_string()), "{fixed:?}");
}

#[test]
fn nan_and_infinity_are_equal_to_themselves_only() {
    // 1/0 of the weight's new zero is an infinity, and 0/0 a NaN
    let with =
        |w: &str| TEXT.replace("tanh %m", "reciprocal %m").replace("[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]", w);
    let finite = with("[1.0, 2.0], [0.5, -1.0], [3.0, 0.25]");
    let infinite = with("[0.0, 2.0], [0.0, -1.0], [0.0, 0.25]");
    let nan = infinite.replace("mul %a, %a", "mul %a, %m");
    for (a, b) in [(&finite, &infinite), (&finite, &nan), (&infinite, &nan)] {
        for (a, b) in [(a, b), (b, a)] {
            let loose = Tolerance { absolute: Some(1e3), relative: 1.0 };
            let found = diff(&side(a), &side(b), 0, loose, &[]).unwrap();
            assert!(!found.same() && found.outputs.iter().any(|o| o.beyond.0 > 0), "{found:?}");
        }
    }
    assert!(between(&side(&nan), &side(&nan)).same());
}

#[test]
fn sizes_that_are_asked_for_are_no_difference() {
    let narrow: Vec<tgc::DimOption> = vec!["n=6".parse().unwrap()];
    let fixed = TEXT.replace("[n, ", "[6, ");
    let same = Tolerance { absolute: None, relative: 0.0 };
    let found = diff(&side(&fixed), &artifact(TEXT), 0, same, &narrow).unwrap();
    assert!(found.same() && found.outputs.iter().all(|o| o.run.contains("n = 6")), "{found:?}");
    assert!(!diff(&side(&fixed), &artifact(TEXT), 0, same, &[]).unwrap().same());
}

#[test]
fn inputs_that_no_machine_has_are_not_drawn() {
    let huge = TEXT.replace("\"y\" {", "\"y\"\n  dim n in 1000000000..1000000000000\n{");
    let found = between(&side(&huge), &side(&huge));
    assert!(found.refused.iter().any(|r| r.contains("2 GiB at most")), "{found:?}");
}

/// Where both refuse every input there is nothing to say of equality.
#[test]
fn two_that_refuse_everything_are_not_called_equal() {
    let text = r#"
graph @main(%x: f32[n, 3]) -> f32[n] "y" {
  %i = constant 7 : i64[]
  %y = gather %x, %i {axis = 1} : f32[n]
  return %y
}
"#;
    let same = Tolerance { absolute: None, relative: 0.0 };
    let e = diff(&side(text), &side(text), 0, same, &[]).unwrap_err();
    assert_eq!(e[0].code, "E-DIFF-001");
    assert!(e[0].message.contains("both refuse all random inputs"), "{}", e[0]);
}
