//! Initializers: constants, weights, defaults, external data.

use crate::model::*;
use bytes::Bytes;
use std::fs;
use std::path::PathBuf;
use tgc_frontend::onnx::{ImportOptions, import};
use tgc_ir::ops::Op;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;
use tgc_proto::{StringStringEntryProto, TensorProto};

fn constant(t: TensorProto) -> M {
    let name = t.name.clone().unwrap();
    model(21).init(t).output(&name)
}

fn proto(kind: i32, dims: &[i64]) -> TensorProto {
    TensorProto { name: Some("w".into()), dims: dims.to_vec(), data_type: Some(kind), ..Default::default() }
}

#[test]
fn elements_come_from_every_field() {
    let get = |t: TensorProto| constant(t).run(&[]).swap_remove(0);
    let raw = TensorProto { raw_data: Some(Bytes::from_static(&[1, 0, 2, 0])), ..proto(4, &[2]) };
    assert_eq!(get(raw), Tensor::from_ints(DType::U16, &[2], &[1, 2]));
    let half = TensorProto { int32_data: vec![0x3c00, 0xc000], ..proto(10, &[2]) };
    assert_eq!(get(half), Tensor::from_f64(DType::F16, &[2], &[1.0, -2.0]));
    let i8s = TensorProto { int32_data: vec![-1, 127], ..proto(3, &[2]) };
    assert_eq!(get(i8s), Tensor::from_ints(DType::I8, &[2], &[-1, 127]));
    let u32s = TensorProto { uint64_data: vec![7], ..proto(12, &[1]) };
    assert_eq!(get(u32s), Tensor::from_ints(DType::U32, &[1], &[7]));
    let bools = TensorProto { raw_data: Some(Bytes::from_static(&[0, 1, 255])), ..proto(9, &[3]) };
    assert_eq!(get(bools), Tensor::from_ints(DType::Bool, &[3], &[0, 1, 1]));
    let i4 = TensorProto { raw_data: Some(Bytes::from_static(&[0xf1, 0x07])), ..proto(22, &[3]) };
    let t = get(i4);
    assert_eq!(t.scalars().map(|s| s.as_int().unwrap()).collect::<Vec<_>>(), [1, -1, 7]);
    assert_eq!(get(proto(1, &[0, 3])).shape, [0, 3]);
}

#[test]
fn data_that_does_not_fit_is_refused() {
    let bad = [
        TensorProto { float_data: vec![1.0], ..proto(1, &[2]) },
        TensorProto { raw_data: Some(Bytes::from_static(&[0; 7])), ..proto(1, &[2]) },
        TensorProto { float_data: vec![1.0], ..proto(1, &[-1]) },
        TensorProto { float_data: vec![1.0], ..proto(1, &[i64::MAX, i64::MAX]) },
        TensorProto { float_data: vec![1.0], ..proto(1, &[1 << 40]) },
        TensorProto { float_data: vec![1.0], ..proto(1, &[1; 40]) },
        proto(1, &[]),
    ];
    for t in bad {
        assert_eq!(constant(t.clone()).error().code, "E-ONNX-014", "{t:?}");
    }
    assert_eq!(constant(proto(8, &[1])).error().code, "E-ONNX-008");
    assert_eq!(constant(proto(777, &[1])).error().code, "E-ONNX-008");
}

#[test]
fn big_weights_are_views_into_the_file() {
    let data: Vec<u8> = (0..400u32).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let t = TensorProto { raw_data: Some(Bytes::from(data)), ..proto(1, &[400]) };
    let m = model(13).input("x", F32, &["400"]).init(t).node("Add", &["x", "w"], &["y"], &[]).output("y");
    let file = m.bytes();
    let i = tgc_frontend::onnx::import_bytes(file.clone(), None, &ImportOptions::default()).unwrap();
    let (w, range) = (i.module.weights["w"].data.bytes().as_ptr() as usize, file.as_ptr() as usize);
    assert!((range..range + file.len()).contains(&w));
    assert_eq!(i.module.weights["w"].get(399).as_f64(), 399.0);
}

#[test]
fn an_initializer_that_is_an_input_is_a_default_from_ir_4_on() {
    let mut m =
        model(13).input("x", F32, &["2"]).input("k", F32, &["2"]).init(floats("k", &[2], &[10.0, 20.0]));
    m = m.node("Add", &["x", "k"], &["y"], &[]).output("y");
    let i = m.import();
    let Some(Op::Input(k)) = body(&i).op_of(body(&i).inputs()[1]) else { panic!() };
    assert_eq!(k.default.as_deref(), Some("k"));
    assert_eq!(i.module.weights["k"].to_f64(), [10.0, 20.0]);
    let x = f(&[2], &[1.0, 2.0]);
    close(&m.run(&[x.clone(), f(&[2], &[5.0, 5.0])])[0], &[2], &[6.0, 7.0]);
    m.0.ir_version = Some(3);
    assert_eq!(body(&m.import()).inputs().len(), 1);
    close(&m.run(&[x])[0], &[2], &[11.0, 22.0]);
    m.0.ir_version = Some(8);
    m.0.graph.as_mut().unwrap().input[1] = info("k", F32, &["3"]);
    assert_eq!(m.error().code, "E-ONNX-012");
}

#[test]
fn initializers_nobody_reads_are_left_alone() {
    let bad = TensorProto { name: Some("unused".into()), ..proto(8, &[1]) };
    let m = model(13).input("x", F32, &["2"]).init(bad).node("Neg", &["x"], &["y"], &[]).output("y");
    assert!(m.import().module.weights.is_empty());
}

/// A fresh folder, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let p = std::env::temp_dir().join(format!("tgc-onnx-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&p);
        fs::create_dir_all(p.join("model")).unwrap();
        Folder(p)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn external(keys: &[(&str, &str)]) -> M {
    let entry = |(k, v): &(&str, &str)| StringStringEntryProto {
        key: Some(k.to_string()),
        value: Some(v.to_string()),
    };
    let t = TensorProto {
        data_location: Some(1),
        external_data: keys.iter().map(entry).collect(),
        ..proto(1, &[40])
    };
    model(13).input("x", F32, &["40"]).init(t).node("Add", &["x", "w"], &["y"], &[]).output("y")
}

#[test]
fn external_data_is_read_from_the_model_s_folder_only() {
    let dir = Folder::new("external");
    let path = dir.0.join("model/m.onnx");
    let data: Vec<u8> = (0..42u32).flat_map(|v| (v as f32).to_le_bytes()).collect();
    fs::write(dir.0.join("model/w.bin"), &data).unwrap();
    fs::write(dir.0.join("outside.bin"), &data).unwrap();
    std::os::unix::fs::symlink(dir.0.join("outside.bin"), dir.0.join("model/link.bin")).unwrap();
    let go = |keys: &[(&str, &str)]| {
        fs::write(&path, external(keys).bytes()).unwrap();
        import(&path, &ImportOptions::default())
    };
    let m = go(&[("location", "w.bin"), ("offset", "8"), ("length", "160")]).unwrap();
    assert_eq!(m.module.weights["w"].get(0).as_f64(), 2.0);
    let outside = dir.0.join("outside.bin");
    let bad: &[&[(&str, &str)]] = &[
        &[("location", "../outside.bin"), ("length", "160")],
        &[("location", outside.to_str().unwrap()), ("length", "160")],
        &[("location", "link.bin"), ("length", "160")],
        &[("location", ""), ("length", "160")],
        &[("location", "missing.bin"), ("length", "160")],
        &[("location", "w.bin"), ("offset", "9"), ("length", "160")],
        &[("location", "w.bin"), ("offset", "18446744073709551615"), ("length", "160")],
        &[("location", "w.bin"), ("offset", "-1"), ("length", "160")],
        &[("location", "."), ("length", "160")],
        &[("length", "160")],
    ];
    for keys in bad {
        let e = go(keys).expect_err(&format!("{keys:?}"));
        assert!(e.len() == 1 && e[0].code == "E-ONNX-015", "{keys:?}: {e:?}");
    }
    assert_eq!(go(&[("location", "w.bin")]).unwrap_err()[0].code, "E-ONNX-014");
    assert_eq!(external(&[("location", "w.bin")]).error().code, "E-ONNX-015");
}
