//! Tests of the text form: what is accepted, what is refused and where, and that both forms printed
//! are read back.
use proptest::prelude::*;

use super::{parse, print, print_line};
use crate::message_tree::{put_sized, put_tag};
use crate::schema::{Described, FieldKind, MessageSchema};
use crate::v1::{
    InferRequestHeader, InferResponseHeader, RequestStatus, ServerStatus,
    SharedMemoryControlRequest,
};
use crate::v2::model_config::SchedulingChoice;
use crate::v2::{ModelConfig, ModelInferRequest, ModelParameter};
use trtserver_proto_wire::put_varint;

const RESNET: &str = r#"
# An image classifier.
name: "resnet50"
platform: "tensorrt_plan"
max_batch_size: 128
input [
  {
    name: "data"
    data_type: TYPE_FP32
    format: FORMAT_NCHW
    dims: [ 3, 224, 224 ]
  }
]
output [
  { name: "prob" data_type: TYPE_FP32 dims: [ 1000 ] label_filename: "labels.txt" },
  { name: "features", data_type: 11, dims: 2048; reshape { shape: [ ] } }
]
instance_group [ { count: 2 kind: KIND_GPU gpus: [ 0, 1 ] }, { kind: KIND_CPU } ]
version_policy: { specific { versions: [1, 0x3] } }
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
cc_model_filenames [ { key: "6.1" value: "model.61.plan" }, { key: "7.5", value: "model.75.plan" } ]
optimization < graph: < level: -1 > priority: PRIORITY_MAX >
parameters: { key: "EXECUTION_MODE" value: { string_value: "0" } }
parameters { key: 'path' value { string_value: "a" 'b' "\x63\144\n" } }
"#;

fn config(text: &str) -> ModelConfig {
    parse(text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

#[test]
fn usual_configuration() {
    let c = config(RESNET);
    assert_eq!((c.name.as_str(), c.max_batch_size), ("resnet50", 128));
    assert_eq!(c.input[0].dims, [3, 224, 224]);
    assert_eq!(c.output.len(), 2);
    assert_eq!((c.output[1].data_type, &c.output[1].dims[..]), (11, &[2048][..]));
    assert_eq!(c.output[1].reshape.as_ref().unwrap().shape, [0_i64; 0]);
    assert_eq!(c.instance_group[0].gpus, [0, 1]);
    assert_eq!(c.instance_group[1].kind, 2);
    assert_eq!(c.cc_model_filenames["7.5"], "model.75.plan");
    assert_eq!(c.optimization.as_ref().unwrap().graph.unwrap().level, -1);
    assert_eq!(c.parameters["path"], ModelParameter { string_value: "abcd\n".into() });
    let Some(SchedulingChoice::DynamicBatching(batching)) = c.scheduling_choice else {
        panic!("no dynamic batching")
    };
    assert_eq!(batching.preferred_batch_size, [4, 8]);
}

#[test]
fn other_usual_configurations() {
    let sequence = config(
        r#"name: "sequence" backend: "custom" max_batch_size: 4
        sequence_batching {
          max_sequence_idle_microseconds: 5000000
          control_input [
            { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1.0f ] } ] },
            { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY bool_false_true: [ false, t ] } ] }
          ]
          oldest { max_candidate_sequences: 8 preferred_batch_size: [ 2 ] }
          state [ { input_name: "IN" output_name: "OUT" data_type: TYPE_INT32 dims: -1
                    initial_state: { data_type: TYPE_INT32 dims: [ 1 ] zero_data: true name: "z" } } ]
        }"#,
    );
    let Some(SchedulingChoice::SequenceBatching(batching)) = sequence.scheduling_choice else {
        panic!("no sequence batching")
    };
    assert_eq!(batching.control_input[0].control[0].fp32_false_true, [0.0, 1.0]);
    assert_eq!(batching.control_input[1].control[0].bool_false_true, [false, true]);
    assert_eq!(batching.state[0].dims, [-1]);

    let ensemble = config(
        r#"platform: "ensemble"
        ensemble_scheduling { step [
          { model_name: "a" model_version: -1
            input_map { key: "RAW" value: "IN" } output_map [ { key: "T" value: "t" } ] },
          { model_name: "b" model_version: -1 input_map: { key: "IN" value: "t" } }
        ] }
        model_warmup [ { name: "w" batch_size: 1
          inputs { key: "IN" value: { data_type: TYPE_FP32 dims: [ 4 ] random_data: true } } } ]"#,
    );
    let Some(SchedulingChoice::EnsembleScheduling(steps)) = ensemble.scheduling_choice else {
        panic!("no ensemble")
    };
    assert_eq!(steps.step[0].output_map["T"], "t");
    assert_eq!(steps.step[1].input_map["IN"], "t");
    assert_eq!(ensemble.model_warmup[0].inputs["IN"].dims, [4]);
}

#[test]
fn names_of_older_releases() {
    let c = config(
        r#"name: "m" base_path: "/models/m" model_platform: "tensorflow_saved_model"
        tags { key: "a" value: "b" } instance { name: "i" gpus: 0 }
        sequence_batching { max_queue_delay_microseconds: 7 generative_sequence: true }"#,
    );
    assert_eq!(c.platform, "tensorflow_savedmodel");
    assert_eq!(c.metric_tags["a"], "b");
    assert_eq!(c.instance_group[0].gpus, [0]);
    let Some(SchedulingChoice::SequenceBatching(batching)) = c.scheduling_choice else {
        panic!("no sequence batching")
    };
    assert_eq!(batching.max_sequence_idle_microseconds, u64::MAX, "0.12 had no idle limit");
    assert!(batching.iterative_sequence);
    // The new name keeps its value as it is.
    assert_eq!(config("platform: 'tensorflow_saved_model'").platform, "tensorflow_saved_model");
}

#[test]
fn request_headers() {
    let h: InferRequestHeader = parse(
        r#"batch_size: 8 input { name: "input" dims: [4, 4] batch_byte_size: 512 } input: { name: "old" byte_size: 64 } output { name: "output" cls { count: 3 } } flags: 3 id: 18446744073709551615"#,
    )
    .unwrap();
    assert_eq!((h.batch_size, h.flags, h.id), (8, 3, u64::MAX));
    assert_eq!((h.input[0].batch_byte_size, h.input[1].byte_size), (512, 64));
    assert_eq!(h.output[0].cls.unwrap().count, 3);
    assert_eq!(parse::<InferRequestHeader>("").unwrap(), InferRequestHeader::default());
}

#[test]
fn numbers_and_strings() {
    for (text, value) in [("-0x10", -16), ("017", 15), ("0", 0), ("- 5", -5)] {
        let c = config(&format!("max_batch_size: {text}"));
        assert_eq!(c.max_batch_size, value, "{text}");
    }
    for (text, value) in [
        (r#""\a\b\f\n\r\t\v\\\'\"\?""#, "\x07\x08\x0c\n\r\t\x0b\\'\"?"),
        (r"'\101\0z\x4a\x4A!'", "A\0zJJ!"),
        (r"'\u00e9\U0001F600'", "\u{e9}\u{1F600}"),
        (r"'\303\251'", "\u{e9}"),
        ("'\u{e9}#{}' # a comment\n \"\"", "\u{e9}#{}"),
    ] {
        assert_eq!(config(&format!("name: {text}")).name, value, "{text}");
    }
    let slot = |text: &str| {
        let text = format!("sequence_batching {{ direct {{ minimum_slot_utilization: {text} }} }}");
        print_line(&config(&text))
    };
    for (text, value) in
        [("1.5e-7F", "1.5e-07"), ("-inf", "-inf"), (".5", "0.5"), ("3", "3"), ("NaN", "nan")]
    {
        let want =
            format!("sequence_batching {{ direct {{ minimum_slot_utilization: {value} }} }}");
        assert_eq!(slot(text), want);
    }
}

#[test]
fn refusals_say_where_and_what() {
    let table: &[(&str, &str)] = &[
        ("nam: 'x'", "1:1: ModelConfig has no field nam; did you mean name?"),
        (
            "name: 'x'\n  pltform: 'y'",
            "2:3: ModelConfig has no field pltform; did you mean platform?",
        ),
        ("zzzzzzzz: 1", "1:1: ModelConfig has no field zzzzzzzz"),
        ("input [ { dims: 1 shap: 2 } ]", "1:19: ModelInput has no field shap"),
        (
            "input { data_type: TYPE_FP322 }",
            "1:20: data_type: DataType has no value TYPE_FP322; did you mean TYPE_FP32?",
        ),
        (
            "input { format: NHWC }",
            "1:17: format: ModelInput.Format has no value NHWC; its values are FORMAT_NONE, FORMAT_NHWC, \
             FORMAT_NCHW",
        ),
        ("input { data_type: 'x' }", "1:20: data_type: expected a DataType, found the string 'x'"),
        ("name: 5", "1:7: name: expected a quoted string, found the number 5"),
        ("name: x", "1:7: name: expected a quoted string, found 'x'"),
        ("name 'x'", "1:6: name: expected ':', found the string 'x'"),
        ("name: ['x']", "1:7: name: expected a quoted string, found '['"),
        ("max_batch_size: 'x'", "1:17: max_batch_size: expected an integer, found the string 'x'"),
        ("max_batch_size: 1.5", "1:17: max_batch_size: expected an integer, found the number 1.5"),
        ("max_batch_size: 08", "1:17: max_batch_size: expected an integer, found the number 08"),
        (
            "max_batch_size: 2147483648",
            "1:17: max_batch_size: 2147483648 is not between -2147483648 and 2147483647",
        ),
        (
            "max_batch_size: -99999999999999999999",
            "1:17: max_batch_size: -99999999999999999999 is not between -2147483648 and 2147483647",
        ),
        ("model_warmup { count: -1 }", "1:23: count: -1 is not between 0 and 4294967295"),
        ("response_cache { enable: yes }", "1:26: enable: expected true or false, found 'yes'"),
        ("response_cache { enable: 2 }", "1:26: enable: 2 is not between 0 and 1"),
        ("response_cache: true", "1:17: response_cache: expected '{', found 'true'"),
        ("name: 'a'\nname: 'b'", "2:1: name is given twice"),
        ("platform: 'a' model_platform: 'b'", "1:15: model_platform is given twice"),
        ("optimization {} optimization {}", "1:17: optimization is given twice"),
        ("parameters { key: 'a' key: 'b' }", "1:23: key is given twice"),
        (
            "dynamic_batching {}\nensemble_scheduling {}",
            "2:1: ensemble_scheduling and dynamic_batching exclude each other (scheduling_choice)",
        ),
        ("name: 'abc", "1:7: the string has no closing ' on its line"),
        ("name: \"ab\nc\"", "1:7: the string has no closing \" on its line"),
        ("name: 'a\\", "1:7: the string has no closing ' on its line"),
        (
            "input {\n  name: 'x'\n",
            "3:1: expected a field name or the '}' that closes input of line 1, found the end of the text",
        ),
        (
            "input { name: 'x' >",
            "1:19: expected a field name or the '}' that closes input of line 1, found '>'",
        ),
        ("input [ { name: 'x' }", "1:22: input: expected ',' or ']', found the end of the text"),
        ("input [ { }, ]", "1:14: input: expected '{', found ']'"),
        ("}", "1:1: expected a field name, found '}'"),
        (": 1", "1:1: expected a field name, found ':'"),
        ("'name': 1", "1:1: expected a field name, found the string 'name'"),
        ("input { dims [ 1 ] }", "1:14: dims: expected ':', found '['"),
        ("name: 'a' \u{e9}", "1:11: '\u{e9}' may stand only in strings and comments"),
        ("name: '\u{e9}\\q'", "1:9: \\q is not an escape"),
        ("name: '\\777'", "1:8: \\777 is more than a byte can hold"),
        ("name: '\\xg'", "1:8: hexadecimal digits must follow \\x"),
        ("name: '\\ud800'", "1:8: 0xd800 is not a Unicode character"),
        ("name: '\\u12'", "1:8: 4 hexadecimal digits must follow \\u"),
        ("name: '\\377'", "1:7: name: the escapes of this string do not make UTF-8"),
        ("base_path: 5", "1:12: base_path: expected a quoted string, found the number 5"),
        (
            "sequence_batching { direct { minimum_slot_utilization: 010 } }",
            "1:56: minimum_slot_utilization: expected a number, found the number 010",
        ),
        (
            "sequence_batching { direct { minimum_slot_utilization: 1.5.2 } }",
            "1:56: minimum_slot_utilization: expected a number, found the number 1.5.2",
        ),
        ("name:", "1:6: name: expected a quoted string, found the end of the text"),
    ];
    for (text, want) in table {
        match parse::<ModelConfig>(text) {
            Ok(_) => panic!("accepted: {text}"),
            Err(error) => assert_eq!(error.to_string(), *want, "{text}"),
        }
    }
    let deep = "input {".repeat(100_000);
    assert!(parse::<ModelConfig>(&deep).is_err());
    let long = "n".repeat(1_000_000);
    assert!(parse::<ModelConfig>(&long).is_err());
}

#[test]
fn printed_forms() {
    let status = RequestStatus {
        code: 1,
        msg: String::new(),
        server_id: "inference:0".into(),
        request_id: 7,
    };
    assert_eq!(print_line(&status), r#"code: SUCCESS server_id: "inference:0" request_id: 7"#);
    assert_eq!(print_line(&RequestStatus::default()), "");
    let odd = RequestStatus { code: 99, msg: "a\"b'\\\n\u{e9}\u{7f}".into(), ..Default::default() };
    assert_eq!(print_line(&odd), r#"code: 99 msg: "a\"b\'\\\n\303\251\177""#);

    let header: InferResponseHeader = parse(
        "model_name: 'm' model_version: -1 batch_size: 1 output { name: 'o' raw { dims: [16, 2] batch_byte_size: 128 } } output { name: 'c' batch_classes { cls { idx: 1 value: 0.1 label: 'x' } } batch_classes {} }",
    )
    .unwrap();
    let want = "model_name: \"m\" model_version: -1 batch_size: 1 output { name: \"o\" raw { dims: 16 dims: 2 batch_byte_size: 128 } } output { name: \"c\" batch_classes { cls { idx: 1 value: 0.1 label: \"x\" } } batch_classes { } }";
    assert_eq!(print_line(&header), want);

    let server: ServerStatus = parse(
        "id: 'inference:0' uptime_ns: 5 ready_state: SERVER_READY model_status { key: 'm' value { config { name: 'm' input { data_type: TYPE_INT32 dims: 16 } sequence_batching {} optimization { eager_batching: true } } version_status { key: -1 value {} } version_status { key: 0 value { ready_state: MODEL_READY } } } } health_stats { success { count: 1 } }",
    )
    .unwrap();
    let want = r#"id: "inference:0"
uptime_ns: 5
model_status {
  key: "m"
  value {
    config {
      name: "m"
      input {
        data_type: TYPE_INT32
        dims: 16
      }
      optimization {
        eager_batching: true
      }
      sequence_batching {
      }
    }
    version_status {
      key: -1
      value {
      }
    }
    version_status {
      key: 0
      value {
        ready_state: MODEL_READY
      }
    }
  }
}
ready_state: SERVER_READY
health_stats {
  success {
    count: 1
  }
}
"#;
    assert_eq!(print(&server), want);
}

/// Fills a message with whatever the bytes say: each field may be absent, single or, for lists,
/// many.
fn fill(message: &'static MessageSchema, chance: &mut impl Iterator<Item = u8>, out: &mut Vec<u8>) {
    let mut oneofs = Vec::new();
    for field in message.fields {
        let dice = chance.next().unwrap_or(0);
        let count = if field.repeated { dice % 4 } else { dice % 2 };
        if count > 0 && field.oneof.is_some() {
            if oneofs.contains(&field.oneof) {
                continue;
            }
            oneofs.push(field.oneof);
        }
        for _ in 0..count {
            put_tag(out, field);
            let mut bits = [0; 8];
            bits.fill_with(|| chance.next().unwrap_or(0));
            // Small numbers as often as large ones.
            let bits = u64::from_le_bytes(bits) >> (dice / 4);
            match field.kind {
                FieldKind::Message(inner) => {
                    put_sized::<()>(out, |out| {
                        fill(inner, chance, out);
                        Ok(())
                    })
                    .unwrap();
                }
                FieldKind::String | FieldKind::Bytes => {
                    let text: String = bits.to_le_bytes().iter().map(|b| char::from(*b)).collect();
                    put_varint(out, text.len() as u64);
                    out.extend_from_slice(text.as_bytes());
                }
                FieldKind::Double => {
                    let value = f64::from_bits(bits);
                    let value = if value.is_nan() { 1.5 } else { value };
                    out.extend_from_slice(&value.to_le_bytes());
                }
                FieldKind::Float => {
                    let value = f32::from_bits(bits as u32);
                    let value = if value.is_nan() { 1.5 } else { value };
                    out.extend_from_slice(&value.to_le_bytes());
                }
                FieldKind::Bool => put_varint(out, bits & 1),
                FieldKind::Int32 | FieldKind::Enum(_) => {
                    put_varint(out, i64::from(bits as i32) as u64)
                }
                FieldKind::UInt32 => put_varint(out, u64::from(bits as u32)),
                FieldKind::Int64 | FieldKind::UInt64 => put_varint(out, bits),
            }
        }
    }
}

fn survives<M: Described + PartialEq + std::fmt::Debug>(chance: &[u8]) {
    let mut bytes = Vec::new();
    fill(M::schema(), &mut chance.iter().copied(), &mut bytes);
    let message = M::decode(bytes.as_slice()).unwrap();
    for text in [print(&message), print_line(&message)] {
        let back = parse::<M>(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(back == message, "{message:?}\nbecame\n{back:?}\nthrough\n{text}");
    }
    let json = crate::json::message(&message);
    serde_json::from_str::<serde_json::Value>(&json).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn what_is_printed_is_read_back(chance in prop::collection::vec(any::<u8>(), 0..2000)) {
        survives::<ModelConfig>(&chance);
        survives::<ServerStatus>(&chance);
        survives::<InferRequestHeader>(&chance);
        survives::<InferResponseHeader>(&chance);
        survives::<SharedMemoryControlRequest>(&chance);
        survives::<ModelInferRequest>(&chance);
    }

    #[test]
    fn no_text_is_fatal(text in any::<String>()) {
        let _ = parse::<ModelConfig>(&text);
        let _ = parse::<InferRequestHeader>(&text);
    }

    #[test]
    fn no_damage_is_fatal(
        edits in prop::collection::vec((0..RESNET.len(), 0..4_u8, any::<u8>()), 1..8),
    ) {
        let mut text = RESNET.as_bytes().to_vec();
        for (at, what, byte) in edits {
            if text.is_empty() {
                break;
            }
            let at = at % text.len();
            match what {
                0 => drop(text.remove(at)),
                1 => text.insert(at, byte),
                2 => text.truncate(at + 1),
                _ => text[at] = b"{}[]<>:;,'\"\\#-0x"[usize::from(byte) % 16],
            }
        }
        if let Err(error) = parse::<ModelConfig>(&String::from_utf8_lossy(&text)) {
            prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
        }
    }
}
