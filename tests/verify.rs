//! `--verify`: a right model gets its record, and each pass of the pipeline, broken on purpose
//! (`tgc_passes::Options::sabotage`), is found and named.

use tgc::ir::module::Module;
use tgc::{BuildOptions, Stage, build};

/// A model in which every pass has something to do or to look at.
fn model() -> Module {
    let text = r#"
weight "w" : f32[2, 2, 1, 1] = dense<[[[[1.0]], [[2.0]]], [[[0.5]], [[-1.0]]]]>

graph @main(%x: f32[n, 2, 6, 6], %s: f32[n, m]) -> (f32[n, 2, 6, 6] "y", f32[n, m] "p") {
  %w = weight "w" : f32[2, 2, 1, 1]
  %c = conv %x, %w {strides = [1, 1], pads = [1, 0, 0, 1], dilations = [1, 1]} : f32[n, 2, 7, 7]
  %cut = slice %c {starts = (0, 0, 0, 0), sizes = (n, 2, 6, 6), steps = [1, 1, 1, 1]} : f32[n, 2, 6, 6]
  %one = constant 1.0 : f32[]
  %a = mul %cut, %one : f32[n, 2, 6, 6]
  %y = gelu %a : f32[n, 2, 6, 6]
  %p = softmax %s {axis = -1} : f32[n, m]
  return %y, %p
}
"#;
    let read = tgc::ir::text::parse_module(text, &|_| None);
    read.unwrap_or_else(|d| panic!("{}", d[0].render(Some(text))))
}

fn options(sabotage: Option<&str>) -> BuildOptions {
    BuildOptions {
        targets: vec!["native".into()],
        verify: true,
        sabotage: sabotage.map(str::to_string),
        ..BuildOptions::default()
    }
}

#[test]
fn a_right_build_is_recorded() {
    let mut stages = Vec::new();
    let artifact = build(&mut model(), &options(None), &mut |s| stages.push(s), &|| ()).unwrap();
    assert_eq!(stages.last(), Some(&Stage::Verify));
    let loaded = tgc::runtime::Loader::default().from_bytes(&artifact.to_bytes().unwrap()).unwrap();
    let said = &loaded.manifest().verification;
    assert!(said.contains("5 random inputs at 3 tuples of sizes"), "{said}");
}

#[test]
fn each_broken_pass_is_named() {
    let names: std::collections::BTreeSet<&str> = tgc::passes::pipeline::DEFAULT.iter().copied().collect();
    for pass in names {
        let Err(d) = build(&mut model(), &options(Some(pass)), &mut |_| {}, &|| ()) else {
            panic!("`{pass}` broken: nothing is found");
        };
        let text = d[0].render(None);
        assert_eq!(d[0].code, "E-VERIFY-001", "`{pass}` broken: {text}");
        assert!(text.contains(&format!("pass `{pass}` is at fault")), "`{pass}` broken: {text}");
    }
}
