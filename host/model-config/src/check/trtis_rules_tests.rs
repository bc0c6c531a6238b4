//! Unit tests of `trtis_rules.rs`.

use super::*;
use trtserver_proto::text::parse;

#[test]
fn kind_model_and_ragged_inputs_follow_v1() {
    let group = "name: 'm' instance_group { name: 'g' kind: KIND_MODEL }";
    let ragged = "name: 'm' input { name: 'I' allow_ragged_batch: true }";
    let kind = "instance group g of model m has kind KIND_MODEL which is supported only on TensorFlow models";
    let input = "ragged-batch input tensors are only supported for custom platform for m";
    for (text, model, refusal) in [
        (group, "platform: 'onnxruntime_onnx'", kind),
        (group, "platform: 'custom'", kind),
        (group, "platform: 'tensorflow_graphdef'", ""),
        (group, "backend: 'mine'", ""),
        (ragged, "platform: 'tensorflow_savedmodel'", input),
        (ragged, "platform: 'onnxruntime_onnx'", input),
        (ragged, "platform: 'custom'", ""),
        (ragged, "backend: 'mine'", ""),
    ] {
        let refused = check_trtis_rules(&parse(&format!("{text} {model}")).unwrap());
        match refused.as_slice() {
            [] => assert_eq!(refusal, "", "{text} {model}"),
            [one] => assert!(!refusal.is_empty() && one.message.starts_with(refusal), "{one:?}"),
            more => panic!("{more:?}"),
        }
    }
}
