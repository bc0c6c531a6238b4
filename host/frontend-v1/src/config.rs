//! A model's configuration as the v1 protos know it (docs/protocol/v1.md §2.5): the text parsers of
//! clients refuse any other field.

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_ensembling::Step;
use trtserver_proto::v2::model_optimization_policy::Cuda;
use trtserver_proto::v2::model_sequence_batching::{
    Control, ControlInput, StrategyChoice, StrategyDirect, StrategyOldest,
};
use trtserver_proto::v2::model_warmup::Input;
use trtserver_proto::v2::{
    DataType, ModelConfig, ModelEnsembling, ModelInput, ModelInstanceGroup,
    ModelOptimizationPolicy, ModelOutput, ModelSequenceBatching, ModelWarmup,
};

/// The fields of `config` that v1.13 had, the last release that changed the message. A field that
/// is added to the message later is left out until it is named here.
pub fn known_to_v1(config: &ModelConfig) -> ModelConfig {
    ModelConfig {
        name: config.name.clone(),
        platform: config.platform.clone(),
        version_policy: config.version_policy.clone(),
        max_batch_size: config.max_batch_size,
        input: config.input.iter().map(input).collect(),
        output: config.output.iter().map(output).collect(),
        instance_group: config.instance_group.iter().map(group).collect(),
        default_model_filename: config.default_model_filename.clone(),
        cc_model_filenames: config.cc_model_filenames.clone(),
        metric_tags: config.metric_tags.clone(),
        scheduling_choice: config.scheduling_choice.as_ref().map(scheduling),
        optimization: config.optimization.as_ref().map(optimization),
        parameters: config.parameters.clone(),
        model_warmup: config.model_warmup.iter().map(warmup).collect(),
        ..ModelConfig::default()
    }
}

/// BF16 has no name in v1.
fn data_type(number: i32) -> i32 {
    if number == DataType::TypeBf16 as i32 { DataType::TypeInvalid as i32 } else { number }
}

fn input(input: &ModelInput) -> ModelInput {
    ModelInput {
        name: input.name.clone(),
        data_type: data_type(input.data_type),
        format: input.format,
        dims: input.dims.clone(),
        reshape: input.reshape.clone(),
        is_shape_tensor: input.is_shape_tensor,
        allow_ragged_batch: input.allow_ragged_batch,
        ..ModelInput::default()
    }
}

fn output(output: &ModelOutput) -> ModelOutput {
    ModelOutput {
        name: output.name.clone(),
        data_type: data_type(output.data_type),
        dims: output.dims.clone(),
        label_filename: output.label_filename.clone(),
        reshape: output.reshape.clone(),
        is_shape_tensor: output.is_shape_tensor,
        ..ModelOutput::default()
    }
}

fn group(group: &ModelInstanceGroup) -> ModelInstanceGroup {
    ModelInstanceGroup {
        name: group.name.clone(),
        count: group.count,
        gpus: group.gpus.clone(),
        kind: group.kind,
        profile: group.profile.clone(),
        ..ModelInstanceGroup::default()
    }
}

fn optimization(policy: &ModelOptimizationPolicy) -> ModelOptimizationPolicy {
    ModelOptimizationPolicy {
        graph: policy.graph,
        priority: policy.priority,
        cuda: policy.cuda.as_ref().map(|cuda| Cuda { graphs: cuda.graphs, ..Cuda::default() }),
        execution_accelerators: policy.execution_accelerators.clone(),
        input_pinned_memory: policy.input_pinned_memory,
        output_pinned_memory: policy.output_pinned_memory,
        ..ModelOptimizationPolicy::default()
    }
}

fn scheduling(choice: &SchedulingChoice) -> SchedulingChoice {
    match choice {
        SchedulingChoice::DynamicBatching(dynamic) => {
            SchedulingChoice::DynamicBatching(dynamic.clone())
        }
        SchedulingChoice::SequenceBatching(sequence) => {
            SchedulingChoice::SequenceBatching(ModelSequenceBatching {
                max_sequence_idle_microseconds: sequence.max_sequence_idle_microseconds,
                control_input: sequence.control_input.iter().map(control_input).collect(),
                strategy_choice: sequence.strategy_choice.as_ref().map(strategy),
                ..ModelSequenceBatching::default()
            })
        }
        SchedulingChoice::EnsembleScheduling(ensemble) => {
            let step = |step: &Step| Step { model_namespace: String::new(), ..step.clone() };
            let step = ensemble.step.iter().map(step).collect();
            SchedulingChoice::EnsembleScheduling(ModelEnsembling {
                step,
                ..ModelEnsembling::default()
            })
        }
    }
}

fn control_input(input: &ControlInput) -> ControlInput {
    let control = |control: &Control| Control { bool_false_true: Vec::new(), ..control.clone() };
    ControlInput { name: input.name.clone(), control: input.control.iter().map(control).collect() }
}

fn strategy(choice: &StrategyChoice) -> StrategyChoice {
    match choice {
        StrategyChoice::Direct(_) => StrategyChoice::Direct(StrategyDirect::default()),
        StrategyChoice::Oldest(oldest) => {
            StrategyChoice::Oldest(StrategyOldest { preserve_ordering: false, ..oldest.clone() })
        }
    }
}

fn warmup(warmup: &ModelWarmup) -> ModelWarmup {
    let input = |input: &Input| Input { data_type: data_type(input.data_type), ..input.clone() };
    let inputs = warmup.inputs.iter().map(|(name, i)| (name.clone(), input(i))).collect();
    ModelWarmup { inputs, count: 0, ..warmup.clone() }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
