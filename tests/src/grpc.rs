//! Hand-encoded gRPC inference requests of v1 and v2.

use trtserver_proto_wire as wire;

/// Paths of the unary inference endpoints: v2, v1.
pub const INFER: [&str; 2] =
    ["/inference.GRPCInferenceService/ModelInfer", "/nvidia.inferenceserver.GRPCService/Infer"];
/// Paths of the stream endpoints: v2, v1.
pub const STREAM: [&str; 2] = [
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/nvidia.inferenceserver.GRPCService/StreamInfer",
];

/// A length-delimited field.
pub fn field(number: u32, contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_bytes(&mut out, number, contents);
    out
}

/// An integer field.
fn number(field: u32, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    wire::put_number(&mut out, field, value);
    out
}

/// Two FP32 as INPUT0 for a model of [`crate::probe`], for v2 (`ModelInferRequest`).
pub fn infer_v2(model: &str, values: [f32; 2]) -> Vec<u8> {
    infer_v2_raw(model, &raw(values))
}

/// The same for any number of FP32.
pub fn infer_v2_raw(model: &str, raw: &[u8]) -> Vec<u8> {
    let mut shape = vec![1];
    wire::put_varint(&mut shape, raw.len() as u64 / 4);
    let input = [field(1, b"INPUT0"), field(2, b"FP32"), field(3, &shape)].concat();
    [field(1, model.as_bytes()), field(5, &input), field(7, raw)].concat()
}

/// The same for v1 (`InferRequest`); the latest version.
pub fn infer_v1(model: &str, values: [f32; 2]) -> Vec<u8> {
    infer_v1_raw(model, &raw(values))
}

/// The same for any number of FP32.
pub fn infer_v1_raw(model: &str, raw: &[u8]) -> Vec<u8> {
    let mut dims = Vec::new();
    wire::put_varint(&mut dims, raw.len() as u64 / 4);
    let input = [field(1, b"INPUT0"), field(2, &dims)].concat();
    let header = [number(1, 1), field(2, &input), field(3, &field(1, b"OUTPUT0"))].concat();
    let latest = number(2, u64::MAX);
    [field(1, model.as_bytes()), latest, field(3, &header), field(4, raw)].concat()
}

/// Raw tensor bytes.
pub fn raw(values: [f32; 2]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
