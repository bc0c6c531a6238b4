//! Unit tests of `status_1804.rs`.

use super::*;
use trtserver_proto::text;

#[test]
fn status_is_rewritten_without_versions() {
    let status: ServerStatus = text::parse(
        r#"id: "x" version: "1" ready_state: SERVER_READY
        model_status { key: "m" value {
          config {
            name: "m" platform: "tensorflow_savedmodel" max_batch_size: 8
            input { name: "I" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 2, 2 ] }
            output { name: "O" data_type: TYPE_FP32 dims: 4 label_filename: "l" }
            instance_group { name: "g" count: 2 kind: KIND_GPU gpus: 1 }
          }
          version_status { key: 1 value { infer_stats { key: 2 value {
            success { count: 3 total_time_ns: 4 } failed { count: 1 } } } } }
          version_status { key: 5 value { infer_stats { key: 2 value { success { count: 5 total_time_ns: 6 } } } } }
        } }
        status_stats { success { count: 7 total_time_ns: 8 } }
        health_stats { success { count: 1 total_time_ns: 1 } }"#,
    )
    .unwrap();
    let expected = r#"version: "1"
model_status {
  key: "m"
  value {
    config {
      name: "m"
      model_platform: "tensorflow_saved_model"
      max_batch_size: 8
      input {
        name: "I"
        data_type: TYPE_FP32
        format: FORMAT_NCHW
        dims: 3
        dims: 2
        dims: 2
      }
      output {
        name: "O"
        data_type: TYPE_FP32
        dims: 4
        label_filename: "l"
      }
      instance {
        name: "g"
        gpus: 1
      }
      instance {
        name: "g"
        gpus: 1
      }
    }
    infer_durations {
      key: 2
      value {
        count: 8
        total_time_ns: 10
      }
    }
  }
}
status_duration {
  count: 7
  total_time_ns: 8
}
"#;
    assert_eq!(text::print(&convert_status(status)), expected);
}
