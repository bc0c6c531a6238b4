//! Inference requests of both generations as gRPC carries them, made by hand.

/// The two unary inference calls: v2's, v1's.
pub const INFER: [&str; 2] =
    ["/inference.GRPCInferenceService/ModelInfer", "/nvidia.inferenceserver.GRPCService/Infer"];
/// The two streams.
pub const STREAM: [&str; 2] = [
    "/inference.GRPCInferenceService/ModelStreamInfer",
    "/nvidia.inferenceserver.GRPCService/StreamInfer",
];

/// A field of bytes: number, length, contents.
pub fn field(number: u8, contents: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut length = contents.len();
    while length > 127 {
        out.push(length as u8 | 128);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend(contents);
    out
}

/// A field of a number below 128.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

/// Two FP32 as INPUT0 for a model of [`crate::probe`], for v2 (`ModelInferRequest`).
pub fn infer_v2(model: &str, values: [f32; 2]) -> Vec<u8> {
    let input = [field(1, b"INPUT0"), field(2, b"FP32"), field(3, &[1, 2])].concat();
    [field(1, model.as_bytes()), field(5, &input), field(7, &raw(values))].concat()
}

/// The same for v1 (`InferRequest`); the latest version.
pub fn infer_v1(model: &str, values: [f32; 2]) -> Vec<u8> {
    let input = [field(1, b"INPUT0"), field(2, &[2])].concat();
    let header = [number(1, 1), field(2, &input), field(3, &field(1, b"OUTPUT0"))].concat();
    let mut latest = vec![2 << 3];
    latest.extend([0xff; 9]);
    latest.push(1);
    [field(1, model.as_bytes()), latest, field(3, &header), field(4, &raw(values))].concat()
}

/// Values as they lie in a raw tensor.
pub fn raw(values: [f32; 2]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
