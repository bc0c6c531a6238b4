//! Unit tests of `format.rs`.

use super::*;
use crate::activity::{Activity, TensorActivity};
use crate::request_trace::{TensorRecord, TraceReason, TraceWire};

#[test]
fn records_have_the_form_of_triton() {
    let tensor = TensorRecord {
        activity: TensorActivity::BackendOutput,
        name: "O\"".to_owned(),
        data: "\"a\",\"\"".to_owned(),
        shape: "1,2".to_owned(),
        dtype: "BYTES",
    };
    let root = RequestSpan {
        id: 7,
        model: "m".into(),
        version: 2,
        request_id: "a\"\n".to_owned(),
        timestamps: [(Activity::RequestStart, 5), (Activity::Custom("x\\".into()), 6)]
            .into_iter()
            .collect(),
        tensors: vec![tensor],
        ..Default::default()
    };
    let child =
        RequestSpan { id: 8, parent_id: 7, model: "n".into(), version: 1, ..Default::default() };
    let trace = RequestTrace {
        spans: vec![root, child].into(),
        wire: TraceWire::V2Grpc,
        ids: Default::default(),
        context: None,
        sampled: None,
        reason: TraceReason::Sampled,
        start_ns: 0,
        end_ns: 0,
        unix_offset_ns: 0,
        status: None,
        input_bytes: 0,
        output_bytes: 0,
        caller: None,
    };
    let head = r#"{"id":7,"model_name":"m","model_version":2,"request_id":"a\"\n"}"#;
    let times = r#",{"id":7,"timestamps":[{"name":"REQUEST_START","ns":5}]},{"id":7,"timestamps":[{"name":"x\\","ns":6}]}"#;
    let tensors = r#",{"id":7,"activity":"TENSOR_BACKEND_OUTPUT","tensor":{"name":"O\"","data":"\"a\",\"\"","shape":"1,2","dtype":"BYTES"}}"#;
    let last = r#",{"id":8,"model_name":"n","model_version":1,"request_id":"","parent_id":7}"#;
    for (timestamps, times) in [(true, times), (false, "")] {
        let mut text = String::new();
        write_records(&trace, TraceLevels { timestamps, tensors: true }, &mut text);
        assert_eq!(text, format!("{head}{times}{tensors}{last}"));
    }
}
