//! Hostile requests. Compressing them takes longer than sending them, so they are built before the
//! measurement.

use crate::grpc::{field, infer_v2};
use crate::http1::request;
use crate::http2::prefixed;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

const MIB: usize = 1 << 20;

/// Whole HTTP requests, or length-prefixed gRPC messages.
pub struct Payloads {
    /// JSON of 64 MB: numbers.
    pub json_bomb: Vec<u8>,
    /// JSON of 1 MB: numbers.
    pub numbers: Vec<u8>,
    /// 64 MB of whitespace before the JSON object.
    pub whitespace: Vec<u8>,
    /// A compressed message of 256 MiB.
    pub message_bomb: Vec<u8>,
    /// 1.5 million empty `raw_input_contents`, as many as fit in a flow-control window.
    pub empty_elements: Vec<u8>,
    /// A request of 1 MiB to `echo`, compressed, so that its response is far larger than itself.
    pub large_echo: Vec<u8>,
    /// A stream message that asks `many` for a million responses of 4 KiB.
    pub flood: Vec<u8>,
    /// A stream message that keeps `slow` busy for half a second.
    pub slow: Vec<u8>,
    /// A load request with 20,480 instances.
    pub instances: Vec<u8>,
    /// A load request with a warm-up tensor of 2^40 elements.
    pub warm_up: Vec<u8>,
}

impl Payloads {
    pub fn new() -> Self {
        let json = |count: usize| {
            let zeros = "0,".repeat(count);
            let zeros = zeros.trim_end_matches(',');
            format!(
                r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{count}],"data":[{zeros}]}}]}}"#
            )
        };
        let gzip = [("Content-Encoding", "gzip")];
        let post =
            |json: &[u8]| request("POST", "/v2/models/echo/infer", &gzip, &compress(&[json]));
        let blank = [" ".repeat(64 * MIB).as_bytes(), json(1).as_bytes()].concat();
        let block = vec![0; 16 * MIB];
        let empty = field(7, &[]).repeat(MIB + MIB / 2);
        let empty = [field(1, b"echo"), empty].concat();
        let elements = 256 * 1024;
        let tensor = |count: usize| {
            let shape = field(3, &[&[1][..], &varint(count as u64)].concat());
            field(5, &[field(1, b"INPUT0"), field(2, b"FP32"), shape].concat())
        };
        let large = [field(1, b"bulk"), tensor(elements), field(7, &vec![0; 4 * elements])];
        let flood = [
            field(1, b"many"),
            parameter("responses", 1_000_000),
            tensor(1024),
            field(7, &vec![0; 4096]),
        ];
        let slow = [infer_v2("slow", [1.0, 2.0]), parameter("delay_ms", 500)].concat();
        let load = |config: String| {
            let body = serde_json::json!({ "parameters": { "config": config } }).to_string();
            request("POST", "/v2/repository/models/hostile/load", &[], body.as_bytes())
        };
        let base = crate::probe("hostile", &[]);
        let groups = "instance_group { count: 1024 }\n".repeat(20);
        let warm_up = "model_warmup { name: \"w\" batch_size: 1 inputs { key: \"INPUT0\" value { data_type: TYPE_FP32 \
                       dims: 1099511627776 zero_data: true } } }\n";
        Payloads {
            json_bomb: post(json(32 * MIB).as_bytes()),
            numbers: post(json(MIB / 2).as_bytes()),
            whitespace: post(&blank),
            message_bomb: compressed(&compress(&[&block[..]; 16])),
            empty_elements: prefixed(0, empty.len() as u32, &empty),
            large_echo: compressed(&compress(&large.each_ref().map(Vec::as_slice))),
            flood: plain(&flood.concat()),
            slow: plain(&slow),
            instances: load(base.clone() + &groups),
            warm_up: load(base + warm_up),
        }
    }
}

fn plain(message: &[u8]) -> Vec<u8> {
    prefixed(0, message.len() as u32, message)
}

fn compressed(message: &[u8]) -> Vec<u8> {
    prefixed(1, message.len() as u32, message)
}

/// An integer parameter of a v2 request.
fn parameter(name: &str, value: u64) -> Vec<u8> {
    let value = [&[2 << 3][..], &varint(value)].concat();
    field(4, &[field(1, name.as_bytes()), field(2, &value)].concat())
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn compress(parts: &[&[u8]]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let written = parts.iter().try_for_each(|part| encoder.write_all(part));
    written.and_then(|()| encoder.finish()).unwrap_or_else(|e| panic!("gzip: {e}"))
}
