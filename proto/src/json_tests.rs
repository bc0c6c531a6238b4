//! Goldens of the JSON forms.
use super::{camel_case, message, model_config};
use crate::text::parse;
use crate::v1::ServerStatus;
use crate::v2::ModelConfig;

#[test]
fn empty_configuration_prints_its_defaults() {
    let want = r#"{"name":"","platform":"","max_batch_size":0,"input":[],"output":[],"instance_group":[],"default_model_filename":"","cc_model_filenames":{},"metric_tags":{},"parameters":{},"model_warmup":[],"backend":"","batch_input":[],"batch_output":[],"runtime":""}"#;
    assert_eq!(model_config(&ModelConfig::default()), want);
}

#[test]
fn configuration_of_v2_clients() {
    let config: ModelConfig = parse(
        r#"name: "m" version_policy { specific { versions: 1 } } max_batch_size: 8
        input { name: "a" data_type: TYPE_FP32 dims: 16 reshape { shape: [4, -1] } }
        sequence_batching { direct { minimum_slot_utilization: 0.5 }
          state { dims: 2 initial_state { dims: 3 zero_data: false } } }
        instance_group { secondary_devices { device_id: 5 } }
        optimization { cuda { graph_spec { input { key: "a" value { dim: 7 } } } } }
        parameters { key: "z" value { string_value: "\"\n\001<" } } parameters { key: "b" value {} }"#,
    )
    .unwrap();
    let json = model_config(&config);
    for part in [
        r#"{"name":"m","platform":"","version_policy":{"specific":{"versions":[1]}},"max_batch_size":8,"#,
        r#""input":[{"name":"a","data_type":"TYPE_FP32","format":"FORMAT_NONE","dims":[16],"reshape":{"shape":[4,-1]},"is_shape_tensor":false,"allow_ragged_batch":false,"optional":false,"is_non_linear_format_io":false}]"#,
        r#""direct":{"max_queue_delay_microseconds":0,"minimum_slot_utilization":0.5}"#,
        r#""sequence_batching":{"max_sequence_idle_microseconds":0,"control_input":[],"#,
        r#""dims":[2],"initial_state":[{"data_type":"TYPE_INVALID","dims":["3"],"zero_data":false,"name":""}]"#,
        r#""secondary_devices":[{"kind":"KIND_NVDLA","device_id":"5"}]"#,
        r#""input":{"a":{"dim":["7"]}}"#,
        r#""parameters":{"b":{"string_value":""},"z":{"string_value":"\"\n\u0001<"}}"#,
    ] {
        assert!(json.contains(part), "{part}\nis not in\n{json}");
    }
    let priorities: ModelConfig = parse(
        "dynamic_batching { priority_levels: 2 priority_queue_policy { key: 1 value { default_timeout_microseconds: 9 } } }",
    )
    .unwrap();
    let want = r#""dynamic_batching":{"preferred_batch_size":[],"max_queue_delay_microseconds":0,"preserve_ordering":false,"priority_levels":2,"default_priority_level":0,"priority_queue_policy":{"1":{"timeout_action":"REJECT","default_timeout_microseconds":9,"allow_timeout_override":false,"max_queue_size":0}}}"#;
    assert!(model_config(&priorities).contains(want), "{}", model_config(&priorities));
    for json in [json, model_config(&priorities)] {
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
    }
}

#[test]
fn other_messages_print_what_is_set() {
    let status: ServerStatus = parse(
        "id: 'x' uptime_ns: 5 ready_state: SERVER_READY model_status { key: 'm' value { config { name: 'm' max_batch_size: 1 input { dims: 2 } } version_status { key: -1 value { ready_state: MODEL_UNAVAILABLE infer_stats { key: 0 value {} } } } } }",
    )
    .unwrap();
    let want = r#"{"id":"x","uptime_ns":"5","model_status":{"m":{"config":{"name":"m","max_batch_size":1,"input":[{"dims":["2"]}]},"version_status":{"-1":{"ready_state":"MODEL_UNAVAILABLE","infer_stats":{"0":{}}}}}},"ready_state":"SERVER_READY"}"#;
    assert_eq!(message(&status), want);

    use crate::v2::{InferParameter, infer_parameter::ParameterChoice};
    for (value, want) in [
        (f64::NAN, r#"{"double_param":"NaN"}"#),
        (f64::NEG_INFINITY, r#"{"double_param":"-Infinity"}"#),
        (0.0, r#"{"double_param":0}"#),
    ] {
        let parameter =
            InferParameter { parameter_choice: Some(ParameterChoice::DoubleParam(value)) };
        assert_eq!(message(&parameter), want);
    }
    let handle = crate::v2::CudaSharedMemoryRegisterRequest {
        raw_handle: bytes::Bytes::from_static(b"\x00\xff"),
        ..Default::default()
    };
    assert_eq!(message(&handle), r#"{"raw_handle":"AP8="}"#);
}

#[test]
fn names_in_camel_case() {
    let status: ServerStatus = parse(
        r#"uptime_ns: 5 model_status { key: "a_b" value { version_status { key: 1 value {
        last_inference_timestamp_milliseconds: 7 } } } }"#,
    )
    .unwrap();
    let want = r#"{"uptimeNs":"5","modelStatus":{"a_b":{"versionStatus":{"1":{"lastInferenceTimestampMilliseconds":"7"}}}}}"#;
    assert_eq!(camel_case(&status), want);
}
