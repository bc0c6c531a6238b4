//! JSON tensors of 1 KB to 1 MB, read and written by the v2 frontend's code and by serde_json into
//! typed vectors, in one process.

use crate::Result;
use crate::options::Options;
use crate::table::{Table, median, spread, verdict};
use bytes::Bytes;
use serde::Deserialize;
use std::hint::black_box;
use std::time::{Duration, Instant};
use trtserver_frontend_v2::http::json::inputs::pick_with_inputs;
use trtserver_frontend_v2::http::json::{JsonTensors, JsonValue, encode};
use trtserver_request::{DType, ModelSignature, TensorSpec};

pub const COLUMNS: &[&str] =
    &["json", "floats", "bytes", "µs", "serde_json", "ratio", "spread", "target", ""];

/// Values of a tensor. A random float has up to 20 bytes of text in a request, and 11 in a
/// response.
const SIZES: [usize; 4] = [64, 1 << 10, 16 << 10, 64 << 10];

/// The request as a Rust program would declare it.
#[derive(Deserialize)]
struct TypedRequest {
    inputs: Vec<TypedInput>,
}

#[derive(Deserialize)]
struct TypedInput {
    #[serde(rename = "name")]
    _name: String,
    #[serde(rename = "shape")]
    _shape: Vec<i64>,
    #[serde(rename = "datatype")]
    _datatype: String,
    data: Vec<f32>,
}

pub fn measure(options: &Options) -> Result<Table> {
    let mut table = Table::new(COLUMNS);
    for floats in SIZES {
        let [requests, responses] = ["in", "out"].map(|way| format!("json-{way} {floats}"));
        if options.wants(&requests) {
            table.measured(requests, self::requests(options, floats));
        }
        if options.wants(&responses) {
            table.measured(responses, self::responses(options, floats));
        }
    }
    Ok(table)
}

/// Random numbers in [0, 1), with all digits of a double.
fn values(count: usize) -> Vec<f64> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    (0..count).map(next).collect()
}

fn requests(options: &Options, floats: usize) -> Result<Vec<String>> {
    let values = values(floats);
    let data = serde_json::to_string(&values).map_err(|e| e.to_string())?;
    let text = format!(
        r#"{{"inputs":[{{"name":"INPUT0","shape":[{floats}],"datatype":"FP32","data":{data}}}]}}"#
    );
    let signature = ModelSignature {
        inputs: vec![TensorSpec::new("INPUT0", DType::Fp32, &[-1])],
        ..ModelSignature::default()
    };
    let typed: TypedRequest = serde_json::from_str(&text).map_err(|e| e.to_string())?;
    let narrow: Bytes = values.iter().flat_map(|v| (*v as f32).to_le_bytes()).collect();
    let serde: Vec<u8> =
        typed.inputs.iter().flat_map(|i| &i.data).flat_map(|v| v.to_le_bytes()).collect();
    if read(&signature, text.as_bytes())? != narrow || serde.len() != narrow.len() {
        return Err("a request is read wrongly".into());
    }
    let ours = || read(&signature, black_box(text.as_bytes())).is_ok();
    let theirs = || serde_json::from_slice::<TypedRequest>(black_box(text.as_bytes())).is_ok();
    row(options, floats, text.len(), ours, theirs)
}

/// The tensor of the only input.
fn read(signature: &ModelSignature, text: &[u8]) -> Result<Bytes> {
    let mut tensors = JsonTensors::new(signature, u64::MAX);
    let read = pick_with_inputs(text, ["inputs"], &mut tensors).map_err(|e| e.message)?;
    let ([Some(JsonValue::Array(inputs))], read) = read else { return Err("no inputs".into()) };
    let data = read.each(inputs).find_map(|input| match input.ok()? {
        [_, _, _, Some(JsonValue::Array(data)), _] => tensors.elements(data).map(|n| (data, n)),
        _ => None,
    });
    let tensor = data.and_then(|(data, elements)| tensors.take(data, DType::Fp32, elements));
    tensor.ok_or_else(|| "the tensor was not converted on the first walk".into())
}

fn responses(options: &Options, floats: usize) -> Result<Vec<String>> {
    let values: Vec<f32> = values(floats).into_iter().map(|v| v as f32).collect();
    let data: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let write = || {
        let mut out = Vec::with_capacity(encode::max_text(DType::Fp32, data.len()));
        encode::encode_data(&mut out, "OUTPUT0", DType::Fp32, black_box(&data)).map(|()| out)
    };
    let text = write().map_err(|e| e.message)?;
    if serde_json::from_slice::<Vec<f32>>(&text).map_err(|e| e.to_string())?.len() != floats {
        return Err("a response is written wrongly".into());
    }
    let ours = || write().is_ok();
    let theirs = || serde_json::to_vec(black_box(&values)).is_ok();
    row(options, floats, text.len(), ours, theirs)
}

/// Alternating passes, so that other load affects both. Each pass is the quickest of its rounds.
fn row(
    options: &Options,
    floats: usize,
    bytes: usize,
    ours: impl Fn() -> bool,
    theirs: impl Fn() -> bool,
) -> Result<Vec<String>> {
    let length = options.pass / 4;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for number in 0..2 * options.passes {
        if number % 2 == 0 {
            with.push(quickest(length, &ours)?);
            without.push(quickest(length, &theirs)?);
        } else {
            without.push(quickest(length, &theirs)?);
            with.push(quickest(length, &ours)?);
        }
    }
    let ratio = median(&with) / median(&without);
    Ok(vec![
        floats.to_string(),
        bytes.to_string(),
        format!("{:.1}", median(&with)),
        format!("{:.1}", median(&without)),
        format!("{ratio:.2}"),
        format!("{:.0} %", 100.0 * spread(&with).max(spread(&without))),
        "ratio <1".to_owned(),
        verdict(ratio < 1.0).to_owned(),
    ])
}

/// Microseconds of the quickest round in `length`.
fn quickest(length: Duration, round: &impl Fn() -> bool) -> Result<f64> {
    let (begin, mut best) = (Instant::now(), f64::INFINITY);
    while begin.elapsed() < length {
        let start = Instant::now();
        if !black_box(round()) {
            return Err("a round failed".into());
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best * 1e6)
}
