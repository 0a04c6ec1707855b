//! Builds small ONNX models and runs them.

use bytes::Bytes;
use tgc_frontend::onnx::{ImportOptions, Imported, import_bytes};
use tgc_ir::diag::Diag;
use tgc_ir::graph::Graph;
use tgc_ir::tensor::Tensor;
use tgc_ir::types::DType;
use tgc_proto::attribute_proto::AttributeType;
use tgc_proto::tensor_shape_proto::{Dimension, dimension};
use tgc_proto::*;

pub const F32: i32 = 1;
pub const I32: i32 = 6;
pub const I64: i32 = 7;
pub const BOOL: i32 = 9;

/// A model under construction.
#[derive(Clone)]
pub struct M(pub ModelProto);

pub fn model(opset: i64) -> M {
    M(ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(opset) }],
        graph: Some(GraphProto::default()),
        ..Default::default()
    })
}

/// A dim from text: a number, or a name ("" for none).
fn dim(s: &str) -> Dimension {
    let value = match s.parse::<i64>() {
        Ok(v) => dimension::Value::DimValue(v),
        Err(_) => dimension::Value::DimParam(s.to_string()),
    };
    Dimension { value: Some(value), denotation: None }
}

pub fn info(name: &str, elem: i32, dims: &[&str]) -> ValueInfoProto {
    let shape = TensorShapeProto { dim: dims.iter().map(|d| dim(d)).collect() };
    let t = type_proto::Tensor { elem_type: Some(elem), shape: Some(shape) };
    let ty = TypeProto { value: Some(type_proto::Value::TensorType(t)), denotation: None };
    ValueInfoProto { name: Some(name.to_string()), r#type: Some(ty), ..Default::default() }
}

pub fn floats(name: &str, dims: &[i64], v: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(F32),
        float_data: v.to_vec(),
        ..Default::default()
    }
}

pub fn ints(name: &str, dims: &[i64], v: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        dims: dims.to_vec(),
        data_type: Some(I64),
        int64_data: v.to_vec(),
        ..Default::default()
    }
}

pub enum A<'a> {
    I(i64),
    F(f32),
    S(&'a str),
    Is(&'a [i64]),
    T(TensorProto),
    G(GraphProto),
    Ref(&'a str, AttributeType),
}

pub fn attr(name: &str, a: &A<'_>) -> AttributeProto {
    let mut p = AttributeProto { name: Some(name.into()), ..Default::default() };
    let kind = match a {
        A::I(v) => {
            p.i = Some(*v);
            AttributeType::Int
        }
        A::F(v) => {
            p.f = Some(*v);
            AttributeType::Float
        }
        A::S(v) => {
            p.s = Some(v.as_bytes().to_vec());
            AttributeType::String
        }
        A::Is(v) => {
            p.ints = v.to_vec();
            AttributeType::Ints
        }
        A::T(t) => {
            p.t = Some(t.clone());
            AttributeType::Tensor
        }
        A::G(g) => {
            p.g = Some(g.clone());
            AttributeType::Graph
        }
        A::Ref(r, kind) => {
            p.ref_attr_name = Some(r.to_string());
            *kind
        }
    };
    p.r#type = Some(kind as i32);
    p
}

pub fn node(op: &str, ins: &[&str], outs: &[&str], attrs: &[(&str, A<'_>)]) -> NodeProto {
    NodeProto {
        op_type: Some(op.to_string()),
        input: ins.iter().map(|s| s.to_string()).collect(),
        output: outs.iter().map(|s| s.to_string()).collect(),
        attribute: attrs.iter().map(|(n, a)| attr(n, a)).collect(),
        ..Default::default()
    }
}

impl M {
    fn g(&mut self) -> &mut GraphProto {
        self.0.graph.as_mut().unwrap()
    }

    pub fn input(mut self, name: &str, elem: i32, dims: &[&str]) -> M {
        self.g().input.push(info(name, elem, dims));
        self
    }

    pub fn init(mut self, t: TensorProto) -> M {
        self.g().initializer.push(t);
        self
    }

    pub fn ints(self, name: &str, v: &[i64]) -> M {
        self.init(ints(name, &[v.len() as i64], v))
    }

    pub fn node(mut self, op: &str, ins: &[&str], outs: &[&str], attrs: &[(&str, A<'_>)]) -> M {
        self.g().node.push(node(op, ins, outs, attrs));
        self
    }

    pub fn named(mut self, name: &str) -> M {
        self.g().node.last_mut().unwrap().name = Some(name.to_string());
        self
    }

    pub fn output(mut self, name: &str) -> M {
        self.g().output.push(ValueInfoProto { name: Some(name.to_string()), ..Default::default() });
        self
    }

    pub fn bytes(&self) -> Bytes {
        Bytes::from(self.0.encode_to_vec())
    }

    pub fn import_with(&self, dims: &[&str]) -> Result<Imported, Vec<Diag>> {
        let dims = dims.iter().map(|d| d.parse().unwrap()).collect();
        import_bytes(self.bytes(), None, &ImportOptions { dims, ..ImportOptions::default() })
    }

    pub fn import(&self) -> Imported {
        match self.import_with(&[]) {
            Ok(m) => {
                let bad = tgc_ir::verify::verify(&m.module);
                assert!(bad.is_empty(), "{bad:?}");
                m
            }
            Err(v) => panic!("{}", v.iter().map(Diag::to_string).collect::<Vec<_>>().join("\n")),
        }
    }

    pub fn errors(&self) -> Vec<Diag> {
        self.import_with(&[]).expect_err("the import should fail")
    }

    /// The only error.
    pub fn error(&self) -> Diag {
        let mut v = self.errors();
        assert_eq!(v.len(), 1, "{v:#?}");
        v.remove(0)
    }

    pub fn run(&self, ins: &[Tensor]) -> Vec<Tensor> {
        tgc_ir::interp::run(&self.import().module, "main", ins).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Type of the first output as text.
    pub fn out(&self) -> String {
        let m = self.import();
        let g = body(&m);
        g.ty(g.outputs()[0].value).unwrap().to_string()
    }
}

pub fn body(m: &Imported) -> &Graph {
    &m.module.entries["main"].body
}

pub fn f(shape: &[usize], v: &[f64]) -> Tensor {
    Tensor::from_f64(DType::F32, shape, v)
}

pub fn i(shape: &[usize], v: &[i64]) -> Tensor {
    Tensor::from_ints(DType::I64, shape, v)
}

/// One operator on f32 inputs x0, x1, .. with these shapes; its first output.
pub fn one(opset: i64, op: &str, ins: &[Tensor], attrs: &[(&str, A<'_>)]) -> Tensor {
    let mut m = model(opset);
    let names: Vec<String> = (0..ins.len()).map(|i| format!("x{i}")).collect();
    for (n, t) in names.iter().zip(ins) {
        let dims: Vec<String> = t.shape.iter().map(usize::to_string).collect();
        let elem = match t.dtype {
            DType::F32 => F32,
            DType::I64 => I64,
            DType::I32 => I32,
            DType::Bool => BOOL,
            DType::U8 => 2,
            d => panic!("{d}"),
        };
        m = m.input(n, elem, &dims.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    m.node(op, &names, &["y"], attrs).output("y").run(ins).swap_remove(0)
}

/// Equal shapes and values within 1e-6 of the greater magnitude; NaN equals NaN.
#[track_caller]
pub fn close(got: &Tensor, shape: &[usize], want: &[f64]) {
    assert_eq!(got.shape, shape);
    let v = got.to_f64();
    assert_eq!(v.len(), want.len());
    for (a, b) in v.iter().zip(want) {
        let ok = (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= 2e-6 * b.abs().max(1e-30);
        assert!(ok, "{v:?} != {want:?}");
    }
}
