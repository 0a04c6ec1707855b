//! `--verify`: a right model gets its record, and each pass of the pipeline, broken on purpose
//! (`tgc_passes::Options::sabotage`), is found and named.

use tgc::ir::module::Module;
use tgc::{BuildOptions, LoadOptions, Stage, Verify, build};

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
        verify: Verify::Always,
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
    assert!(said.contains("5 random inputs"), "{said}");
    for dim in ["m = ", "n = "] {
        let (_, sizes) = said.split_once(dim).unwrap_or_else(|| panic!("{said}"));
        let sizes = sizes.split(';').next().unwrap();
        assert!(sizes.split(',').count() >= 2, "{dim}{sizes}");
    }
}

/// Words of the one diagnostic of a build that must fail.
fn refused(options: &BuildOptions) -> String {
    match build(&mut model(), options, &mut |_| {}, &|| ()) {
        Err(d) => d[0].render(None),
        Ok(_) => panic!("{options:?}: nothing is found"),
    }
}

#[test]
fn a_broken_kernel_is_named() {
    let text = refused(&options(Some("codegen")));
    assert!(text.contains("E-VERIFY-001"), "{text}");
    assert!(text.contains("the code of the kernel for ") && text.contains("is at fault"), "{text}");
}

#[test]
fn a_replaced_kernel_is_named() {
    let right = options(None);
    let lowered = tgc::lower(&mut model(), &right, &mut |_| {}).unwrap();
    let texts: Vec<String> = lowered.kernels.iter().map(tgc::codegen::kernel::text::print).collect();
    let changed = texts.iter().position(|t| t.contains(" = erf ")).unwrap();
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-replaced.kernels");
    let mut all = texts.clone();
    all[changed] = all[changed].replace(" = erf ", " = tanh ");
    std::fs::write(&file, all.join("\n")).unwrap();
    let text = refused(&BuildOptions { kernels: Some(file.clone()), ..right.clone() });
    assert!(text.contains("E-VERIFY-004"), "{text}");
    let name = &lowered.kernels[changed].name;
    assert!(text.contains(&format!("kernel `{name}` of ")), "{text}");
    assert!(text.contains("the generated one is right"), "{text}");
    std::fs::write(&file, texts.join("\n")).unwrap();
    assert!(build(&mut model(), &BuildOptions { kernels: Some(file), ..right }, &mut |_| {}, &|| ()).is_ok());
}

#[test]
fn what_is_left_out_is_recorded() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-large.tgir");
    tgc::ir::weights::save_module(&model(), &file).unwrap();
    let dims = vec!["n=1048576..1000000000".parse().unwrap()];
    let (mut large, _) = tgc::load(&file, &LoadOptions { dims, constants: vec![] }).unwrap();
    let auto = BuildOptions { verify: Verify::Auto, ..options(None) };
    let built = build(&mut large, &auto, &mut |_| {}, &|| ()).unwrap();
    let said = built.verification();
    assert!(said.starts_with("not verified: `main` at m = ") && said.contains("n = 1048576"), "{said}");
    let foreign = BuildOptions { targets: vec!["aarch64".into()], ..auto };
    let built = build(&mut model(), &foreign, &mut |_| {}, &|| ()).unwrap();
    assert_eq!(built.verification(), "not verified: the code for aarch64, which this machine cannot run");
    let text = refused(&BuildOptions { verify: Verify::Always, ..foreign });
    assert!(text.contains("E-VERIFY-003"), "{text}");
}

#[test]
fn each_broken_pass_is_named() {
    let names: std::collections::BTreeSet<&str> = tgc::passes::pipeline::DEFAULT.iter().copied().collect();
    for pass in names {
        let text = refused(&options(Some(pass)));
        assert!(text.contains("E-VERIFY-001"), "`{pass}` broken: {text}");
        assert!(text.contains(&format!("pass `{pass}` is at fault")), "`{pass}` broken: {text}");
        let required = tgc::passes::pipeline::passes().any(|p| p.0 == pass && p.1);
        if !required {
            assert!(text.contains("its change at: "), "`{pass}` broken: {text}");
        }
    }
}

/// What nothing reads may go, and with it what it would have refused.
#[test]
fn a_refusal_of_dead_nodes_is_no_difference() {
    let text = r#"
graph @main(%x: f32[a, 3], %i: i64[n]) -> (f32[a, 3] "y", i64[2] "s") {
  %g = gather %x, %i {axis = 0} : f32[n, 3]
  %y = relu %x : f32[a, 3]
  %s = const_dims {dims = (n, 1)} : i64[2]
  return %y, %s
}
"#;
    let mut module = tgc::ir::text::parse_module(text, &|_| None).unwrap();
    let built = build(&mut module, &options(None), &mut |_| {}, &|| ()).unwrap();
    assert!(built.verification().starts_with("equal to the interpreter"), "{}", built.verification());
}

/// What cannot be tried is said, and takes no memory.
#[test]
fn sizes_beyond_memory_are_left_out() {
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("verify-huge.tgir");
    tgc::ir::weights::save_module(&model(), &file).unwrap();
    let dims = vec!["n=1000000000..1000000000".parse().unwrap()];
    let (mut huge, _) = tgc::load(&file, &LoadOptions { dims, constants: vec![] }).unwrap();
    let auto = BuildOptions { verify: Verify::Auto, ..options(None) };
    let built = build(&mut huge, &auto, &mut |_| {}, &|| ()).unwrap();
    assert!(built.verification().contains("2 GiB at most"), "{}", built.verification());
}
