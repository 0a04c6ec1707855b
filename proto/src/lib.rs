//! The ONNX protobuf message types, and nothing else.
//!
//! A leaf crate: it knows the wire format, not what a model means. Reading meaning into messages is the work of the
//! ONNX importer, giving it to them that of the exporter. The types are generated from `proto/onnx.proto` by
//! `cargo run --manifest-path proto/regen/Cargo.toml`; the result is committed, so a build needs no `protoc`.
//!
//! `TensorProto::raw_data` is a [`bytes::Bytes`]: decoding from a `Bytes` (an mmapped file, say) shares the payload
//! with the file instead of copying it. It may lie at any address: alignment is the reader's concern.

#[rustfmt::skip] // generated
#[allow(clippy::all)] // generated
mod onnx;

pub use onnx::*;
pub use prost::{DecodeError, Message};

use bytes::Bytes;

/// Decodes a whole ONNX file.
///
/// Never panics and never recurses past prost's limit of 100 nested messages. An empty input decodes to an empty model,
/// as protobuf has no magic number: the caller decides what a model must at least hold.
pub fn decode_model(file: Bytes) -> Result<ModelProto, DecodeError> {
    ModelProto::decode(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &str) -> Option<String> {
        Some(s.to_string())
    }

    fn tensor_type(elem: tensor_proto::DataType, dims: Vec<tensor_shape_proto::Dimension>) -> TypeProto {
        let tensor =
            type_proto::Tensor { elem_type: Some(elem as i32), shape: Some(TensorShapeProto { dim: dims }) };
        TypeProto { value: Some(type_proto::Value::TensorType(tensor)), denotation: None }
    }

    fn named_dim(name: &str) -> tensor_shape_proto::Dimension {
        let value = tensor_shape_proto::dimension::Value::DimParam(name.to_string());
        tensor_shape_proto::Dimension { value: Some(value), denotation: None }
    }

    fn sample() -> ModelProto {
        let weight = TensorProto {
            dims: vec![4, 1024],
            data_type: Some(tensor_proto::DataType::Float as i32),
            name: text("w"),
            raw_data: Some(Bytes::from((0..16384u32).map(|i| i as u8).collect::<Vec<_>>())),
            ..Default::default()
        };
        let branch = GraphProto { name: text("then"), ..Default::default() };
        let node = NodeProto {
            input: vec!["x".into(), "w".into()],
            output: vec!["y".into()],
            op_type: text("Gemm"),
            attribute: vec![
                AttributeProto { name: text("alpha"), f: Some(0.5), ..Default::default() },
                AttributeProto { name: text("body"), g: Some(branch), ..Default::default() },
                AttributeProto { name: text("perm"), ints: vec![1, -1], ..Default::default() },
            ],
            ..Default::default()
        };
        let input = ValueInfoProto {
            name: text("x"),
            r#type: Some(tensor_type(tensor_proto::DataType::Float, vec![named_dim("batch")])),
            ..Default::default()
        };
        ModelProto {
            ir_version: Some(8),
            opset_import: vec![OperatorSetIdProto { domain: text(""), version: Some(17) }],
            graph: Some(GraphProto {
                node: vec![node],
                initializer: vec![weight],
                input: vec![input],
                ..Default::default()
            }),
            functions: vec![FunctionProto { name: text("f"), domain: text("local"), ..Default::default() }],
            ..Default::default()
        }
    }

    #[test]
    fn a_model_survives_the_wire() {
        let model = sample();
        assert_eq!(decode_model(Bytes::from(model.encode_to_vec())).unwrap(), model);
    }

    /// The field numbers are ONNX's, not ours: these bytes are written by hand from its specification.
    #[test]
    fn field_numbers_are_onnx_s() {
        let wire: &[u8] = &[
            0x08, 0x08, // ModelProto.ir_version = 8
            0x3a, 0x09, // ModelProto.graph, 9 bytes
            0x0a, 0x07, // GraphProto.node, 7 bytes
            0x0a, 0x01, b'x', // NodeProto.input
            0x22, 0x02, b'A', b'b', // NodeProto.op_type
        ];
        let model = decode_model(Bytes::from_static(wire)).unwrap();
        assert_eq!(model.ir_version, Some(8));
        let node = &model.graph.unwrap().node[0];
        assert_eq!((node.input[0].as_str(), node.op_type.as_deref()), ("x", Some("Ab")));
    }

    #[test]
    fn raw_data_shares_the_file_s_memory() {
        let file = Bytes::from(sample().encode_to_vec());
        let model = decode_model(file.clone()).unwrap();
        let payload = model.graph.unwrap().initializer[0].raw_data.clone().unwrap();
        let (start, inside) = (file.as_ptr() as usize, payload.as_ptr() as usize);
        assert!(inside >= start && inside + payload.len() <= start + file.len(), "the payload was copied");
    }

    #[test]
    fn every_truncation_is_an_error_or_a_smaller_model() {
        let file = Bytes::from(sample().encode_to_vec());
        let whole = decode_model(file.clone()).unwrap();
        for len in 0..file.len() {
            if let Ok(model) = decode_model(file.slice(..len)) {
                assert_ne!(model, whole, "{len} bytes");
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        let mut graph = GraphProto::default();
        for _ in 0..200 {
            let attribute = AttributeProto { g: Some(graph), ..Default::default() };
            let node = NodeProto { attribute: vec![attribute], ..Default::default() };
            graph = GraphProto { node: vec![node], ..Default::default() };
        }
        let model = ModelProto { graph: Some(graph), ..Default::default() };
        let error = decode_model(Bytes::from(model.encode_to_vec())).unwrap_err();
        assert!(error.to_string().contains("recursion limit"), "{error}");
    }

    #[test]
    fn noise_is_an_error() {
        assert!(decode_model(Bytes::from_static(b"\x7fELF\x02\x01\x01")).is_err());
        assert!(decode_model(Bytes::from_static(&[0xff; 64])).is_err());
    }
}
