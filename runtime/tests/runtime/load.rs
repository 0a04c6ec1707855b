//! Opening artifacts: files, images, versions, what is refused.

use std::fs;
use std::path::PathBuf;

use tgc_runtime::*;

use crate::machine::*;

fn folder(name: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn doubled(model: &std::sync::Arc<Model>) -> Vec<i64> {
    let mut s = Session::new(model, "forward", &SessionOptions::default()).unwrap();
    values(&s.run_owned(&[("x", &tensor(&[1, 2], &[4, 5]))]).unwrap()[0].1)
}

#[test]
fn files_run_mapped_and_copied() {
    let path = folder("mapped").join("m.tgc");
    let m = simple();
    write_file(&path, &m, &[&CODE], &mut |_, _| Ok(())).unwrap();
    assert_eq!(fs::read(&path).unwrap(), build(&m), "files and memory get the same bytes");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "no temporary file is left");
    for copy_code in [false, true] {
        let model = Loader { copy_code, ..Loader::default() }.open(&path).unwrap();
        assert_eq!(model.manifest(), &m);
        assert_eq!(doubled(&model), [10, 12]);
    }
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let path = folder("failed").join("m.tgc");
    let mut m = simple();
    write_file(&path, &m, &[&CODE], &mut |_, _| Ok(())).unwrap();
    let before = fs::read(&path).unwrap();
    let weight =
        |len| WeightDecl { name: "w".into(), dtype: DType::U8, dims: vec![len], offset: 0, blocks: vec![] };
    m.weights.push(weight(5));
    let e = write_file(&path, &m, &[&CODE], &mut |_, w| w.write_all(&[0; 4])).unwrap_err();
    assert!(e.to_string().contains("weight `w` has 4 bytes, its declaration says 5"), "{e}");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn missing_and_foreign_files_are_told_apart() {
    let dir = folder("foreign");
    let code = |p: &PathBuf| Model::open(p).err().unwrap().faults[0].code;
    assert_eq!(code(&dir.join("none.tgc")), Code::Io);
    assert_eq!(code(&dir), Code::Io);
    for (name, bytes) in [("empty", vec![]), ("short", vec![1; 20]), ("other", vec![8; 5000])] {
        fs::write(dir.join(name), bytes).unwrap();
        assert_eq!(code(&dir.join(name)), Code::NotArtifact, "{name}");
    }
    let mut newer = build(&simple());
    newer[8] += 1;
    fs::write(dir.join("newer"), newer).unwrap();
    assert_eq!(code(&dir.join("newer")), Code::Version);
}

#[test]
fn the_first_image_that_fits_is_taken() {
    let mut m = simple();
    m.images =
        vec![image("x86-64-v4", &["sse2", "avx512f"]), image("x86-64-v3", &["avx2"]), image("x86-64", &[])];
    let mut foreign = image("foreign", &[]);
    foreign.arch = TARGET.2.into();
    m.images.insert(0, foreign);
    let bytes = build(&m);
    let pick = |features: &[&str]| {
        let features = Some(features.iter().map(|f| f.to_string()).collect());
        let model = Loader { features, ..Loader::default() }.from_bytes(&bytes).unwrap();
        assert_eq!(doubled(&model), [10, 12]);
        model.image().unwrap().target.clone()
    };
    assert_eq!(pick(&["sse2", "avx2", "avx512f"]), "x86-64-v4");
    assert_eq!(pick(&["sse2", "avx2"]), "x86-64-v3");
    assert_eq!(pick(&[]), "x86-64");
    assert!(host_features().contains(&TARGET.1));
}

#[test]
fn no_fitting_image_lists_what_each_lacks() {
    let mut m = simple();
    let mut foreign = image("foreign", &[]);
    foreign.arch = TARGET.2.into();
    m.images = vec![image("x86-64-v4", &["avx2", "avx512f"]), image("x86-64-v3", &["avx2"]), foreign];
    let bytes = build(&m);
    let features = Some(vec!["sse2".to_string(), "avx512f".to_string()]);
    let e = Loader { features, ..Loader::default() }.from_bytes(&bytes).err().unwrap();
    assert_eq!(e.faults[0].code, Code::NoImage);
    let text = e.to_string();
    assert!(
        text.contains(&format!("x86-64-v4 needs avx2; x86-64-v3 needs avx2; foreign is for {}", TARGET.2)),
        "{text}"
    );
    let model =
        Loader { inspect: true, features: Some(vec![]), ..Loader::default() }.from_bytes(&bytes).unwrap();
    assert_eq!(model.manifest().images.len(), 3);
    let e = Session::new(&model, "forward", &SessionOptions::default()).err().unwrap();
    assert_eq!(e.faults[0].code, Code::Usage);
}

#[test]
fn steps_not_built_are_refused_by_name() {
    let mut m = simple();
    let Ok(p) = &mut m.entries[0].variants[0].body else { unreachable!() };
    p.segments[0].steps = vec![Step::Opaque { op: "sort".into(), args: vec![0] }, {
        Step::Loop { trip: None, cond: None, index: None, body: vec![] }
    }];
    let bytes = build(&m);
    let e = load(&bytes).err().unwrap();
    assert_eq!(e.faults.len(), 2);
    assert_eq!(e.faults[0].code, Code::NotBuilt);
    assert!(e.to_string().contains("entry `forward` needs the runtime kernel `sort`"), "{e}");
    assert!(Loader { inspect: true, ..Loader::default() }.from_bytes(&bytes).is_ok());
}

#[test]
fn damaged_weights_are_found_by_block() {
    let mut m = simple();
    let big = (3 << 20) / 8 + 5;
    for (name, n) in [("a", 3u64), ("b", big), ("empty", 0)] {
        let dtype = DType::I64;
        m.weights.push(WeightDecl { name: name.into(), dtype, dims: vec![n], offset: 0, blocks: vec![] });
    }
    let data = vec![vec![1, 2, 3], (0..big as i64).collect(), vec![]];
    let mut bytes = build_with(&m, &data);
    let model = load(&bytes).unwrap();
    model.check_weights().unwrap();
    assert_eq!(model.manifest().weights[1].blocks.len(), 4);
    let at = model.sections().iter().find(|s| s.kind == "weights").unwrap().offset as usize;
    bytes[at + 64 + (2 << 20) + 9] ^= 4;
    let e = load(&bytes).unwrap().check_weights().unwrap_err();
    assert_eq!(e.faults.len(), 1);
    assert!(e.to_string().contains("weight `b`, MiB 2 does not match"), "{e}");
}

#[test]
fn inconsistent_manifests_are_refused_when_written() {
    let refused = |change: &dyn Fn(&mut Manifest, &mut Program), text: &str| {
        let mut m = simple();
        let Ok(mut p) = m.entries[0].variants[0].body.clone() else { unreachable!() };
        change(&mut m, &mut p);
        m.entries[0].variants[0].body = Ok(p);
        let mut out = std::io::Cursor::new(Vec::new());
        let e = write(&m, &[&CODE], &mut |_, _| Ok(()), &mut out).unwrap_err();
        assert_eq!(e.faults[0].code, Code::Usage);
        assert!(e.to_string().contains(text), "{e} (wanted: {text})");
    };
    refused(&|_, p| p.buffers[1].last = 0, "uses buffer `t` outside its lifetime");
    refused(&|_, p| p.buffers[1].last = 2, "lives from step 0 to 2");
    refused(&|_, p| p.buffers[1].align = 3, "alignment 3");
    refused(&|_, p| p.buffers[1].size = Expr::Sym(5), "size not known in segment 0");
    refused(&|_, p| p.buffers[2].kind = BufferKind::Output(1), "stands for nothing");
    refused(&|_, p| p.buffers[2].kind = BufferKind::Temp, "no buffer stands for output `y`");
    refused(&|_, p| p.buffers[1].dtype = DType::F32, "with another type");
    refused(&|_, p| p.segments[0].steps[0] = launch(ADD1, &[1, 0], &[sym(0)]), "writes buffer `x`");
    refused(&|_, p| p.segments[0].steps[0] = launch(9, &[0, 1], &[]), "launches kernel 9");
    refused(&|_, p| p.segments[0].steps[0] = launch(ADD1, &[0], &[sym(0)]), "1 arguments");
    refused(&|_, p| p.segments[0].steps[0] = launch(ADD1, &[0, 7], &[sym(0)]), "uses buffer 7");
    refused(&|_, p| p.segments[0].steps[0] = launch(ADD1, &[0, 1], &[]), "0 dims");
    refused(&|m, _| m.images[0].kernels[0].offset = CODE.len() as u64, "outside its code");
    refused(&|m, _| m.images[0].kernels[0].tiles = sym(1), "uses a dim it does not have");
    refused(&|m, _| m.images[0].kernels.truncate(3), "lacks a kernel");
    refused(&|m, _| m.images.clear(), "0 images, 1 code sections");
    refused(&|m, _| m.entries[0].inputs[0].default = Some(0), "default of input `x`");
    refused(&|m, _| m.entries[0].inputs[0].dims[0] = mul(&[sym(0)]), "that inputs do not give");
    refused(
        &|m, _| {
            let again = m.entries[0].clone();
            m.entries.push(again);
        },
        "two of kind entry",
    );
}
