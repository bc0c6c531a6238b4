//! Unit tests of `config.rs`.

use super::*;
use trtserver_proto::text;

#[test]
fn fields_of_later_releases_are_left_out() {
    let config: ModelConfig = text::parse(
        r#"name: "m" platform: "p" backend: "b" max_batch_size: 4
        input { name: "I" data_type: TYPE_BF16 dims: 1 optional: true }
        output { name: "O" data_type: TYPE_FP32 dims: 1 label_filename: "l" }
        instance_group { name: "g" count: 2 kind: KIND_CPU passive: true host_policy: "h" }
        optimization { priority: PRIORITY_MAX cuda { graphs: true busy_wait_events: true } eager_batching: true }
        sequence_batching {
          max_sequence_idle_microseconds: 5
          control_input { name: "C" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          direct { max_queue_delay_microseconds: 7 }
          state { input_name: "s" }
        }
        parameters { key: "k" value { string_value: "v" } }
        model_warmup { name: "w" batch_size: 1 count: 3 }
        model_operations { op_library_filename: "o" }
        model_transaction_policy { decoupled: true }
        response_cache { enable: true }"#,
    )
    .unwrap();
    let known = r#"name: "m"
platform: "p"
max_batch_size: 4
input {
  name: "I"
  dims: 1
}
output {
  name: "O"
  data_type: TYPE_FP32
  dims: 1
  label_filename: "l"
}
instance_group {
  name: "g"
  count: 2
  kind: KIND_CPU
}
optimization {
  priority: PRIORITY_MAX
  cuda {
    graphs: true
  }
}
sequence_batching {
  max_sequence_idle_microseconds: 5
  control_input {
    name: "C"
    control {
      int32_false_true: 0
      int32_false_true: 1
    }
  }
  direct {
  }
}
parameters {
  key: "k"
  value {
    string_value: "v"
  }
}
model_warmup {
  name: "w"
  batch_size: 1
}
"#;
    assert_eq!(text::print(&known_to_v1(&config)), known);
}
