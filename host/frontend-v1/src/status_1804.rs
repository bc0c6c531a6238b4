//! The status in the layout of release 18.04 (docs/protocol/v1.md §2.6), for clients of servers
//! that are started with `--model_base_path`.

use trtserver_proto::v1::{
    ModelConfig1804, ModelInput1804, ModelInstance1804, ModelOutput1804, ModelStatus,
    ModelStatus1804, ServerStatus, ServerStatus1804, StatDuration,
};
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup};

/// `status` in that layout, which has neither versions nor states: durations are sums over all
/// versions.
pub fn convert_status(status: ServerStatus) -> ServerStatus1804 {
    let model = |(name, model): (String, ModelStatus)| (name, convert_model(model));
    ServerStatus1804 {
        version: status.version,
        model_status: status.model_status.into_iter().map(model).collect(),
        status_duration: status.status_stats.and_then(|stats| stats.success),
        profile_duration: status.profile_stats.and_then(|stats| stats.success),
    }
}

fn convert_model(status: ModelStatus) -> ModelStatus1804 {
    let mut model =
        ModelStatus1804 { config: status.config.map(convert_config), ..ModelStatus1804::default() };
    let versions = status.version_status.into_values();
    for (batch, stats) in versions.flat_map(|version| version.infer_stats) {
        let Some(StatDuration { count, total_time_ns }) = stats.success else { continue };
        let sum = model.infer_durations.entry(batch).or_default();
        sum.count += count;
        sum.total_time_ns += total_time_ns;
    }
    model
}

fn convert_config(config: ModelConfig) -> ModelConfig1804 {
    let inputs = config.input.into_iter().map(|input| ModelInput1804 {
        name: input.name,
        data_type: input.data_type,
        format: input.format,
        dims: input.dims,
    });
    let outputs = config.output.into_iter().map(|output| ModelOutput1804 {
        name: output.name,
        data_type: output.data_type,
        dims: output.dims,
        label_filename: output.label_filename,
    });
    ModelConfig1804 {
        name: config.name,
        base_path: String::new(),
        // The spelling of 18.04 (docs/protocol/v1.md §7.6).
        model_platform: match config.platform.as_str() {
            "tensorflow_savedmodel" => "tensorflow_saved_model".to_owned(),
            _ => config.platform,
        },
        max_batch_size: config.max_batch_size,
        input: inputs.collect(),
        output: outputs.collect(),
        instance: config.instance_group.iter().flat_map(instances).collect(),
    }
}

/// A group is as many entries as it has instances.
fn instances(group: &ModelInstanceGroup) -> impl Iterator<Item = ModelInstance1804> + '_ {
    let one = || ModelInstance1804 { name: group.name.clone(), gpus: group.gpus.clone() };
    std::iter::repeat_with(one).take(usize::try_from(group.count).unwrap_or(0).min(MAX_ENTRIES))
}

/// Entries of one group, for a configuration that was refused because of its count.
const MAX_ENTRIES: usize = 1024;

#[cfg(test)]
#[path = "status_1804_tests.rs"]
mod tests;
