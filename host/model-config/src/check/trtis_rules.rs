//! What TRTIS v1.x refused and this server supports, for start lines with flags of TRTIS: instances
//! of KIND_MODEL of other models than TensorFlow's, ragged inputs of other models than custom ones.

use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_instance_group::Kind;

use super::super::{ConfigError, ConfigPart};

/// Platforms of TRTIS (docs/protocol/v1.md §6.1), for the rules of §7.3 there. Models of other
/// platforms and of backends without a platform have no rule in v1.x.
const PLATFORMS: [&str; 7] = [
    "tensorrt_plan",
    "tensorflow_graphdef",
    "tensorflow_savedmodel",
    "caffe2_netdef",
    "onnxruntime_onnx",
    "pytorch_libtorch",
    "custom",
];

/// Appended to the texts of v1.x.
const HINT: &str = "with --model-store, as in TRTIS; --model-repository allows it";

/// Checks a configuration that [`super::check_config`] has accepted.
pub fn check_trtis_rules(config: &ModelConfig) -> Vec<ConfigError> {
    let (model, platform) = (&config.name, config.platform.as_str());
    let mut refused = Vec::new();
    let mut refuse = |field, text: String| {
        refused.push(ConfigError::invalid(text).about(ConfigPart::Field(field)));
    };
    if !PLATFORMS.contains(&platform) {
        return refused;
    }
    if !platform.starts_with("tensorflow_") {
        for group in config.instance_group.iter().filter(|group| group.kind() == Kind::Model) {
            let text = format!(
                "instance group {} of model {model} has kind KIND_MODEL which is supported only on TensorFlow models \
                 ({HINT})",
                group.name
            );
            refuse("instance_group", text);
        }
    }
    if platform != "custom" && config.input.iter().any(|input| input.allow_ragged_batch) {
        let text = format!(
            "ragged-batch input tensors are only supported for custom platform for {model} ({HINT})"
        );
        refuse("input.allow_ragged_batch", text);
    }
    refused
}

#[cfg(test)]
#[path = "trtis_rules_tests.rs"]
mod tests;
