//! Normalises a configuration: writes out every default, so that status, backends and checks read
//! one complete form.
//!
//! `complete` sets the default model file.

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::model_optimization_policy::PinnedMemoryBuffer;
use trtserver_proto::v2::model_sequence_batching::StrategyChoice;
use trtserver_proto::v2::model_version_policy::{Latest, PolicyChoice};
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup, ModelVersionPolicy};

use super::platforms::ENSEMBLE;
use super::{InstanceSupport, MachineFacts};

/// Default of `max_sequence_idle_microseconds`.
const SEQUENCE_IDLE_MICROSECONDS: u64 = 1_000_000;

/// Writes the defaults of `config` on `machine`. `support` is that of the model's backend; an
/// ensemble needs none.
pub fn normalise_config(
    config: &mut ModelConfig,
    machine: &MachineFacts,
    support: &InstanceSupport,
) {
    let policy = config.version_policy.get_or_insert_with(ModelVersionPolicy::default);
    policy.policy_choice.get_or_insert(PolicyChoice::Latest(Latest { num_versions: 1 }));
    normalise_scheduling(config);
    if config.platform == ENSEMBLE {
        config.model_transaction_policy.get_or_insert_default();
        return;
    }
    let pinned = PinnedMemoryBuffer { enable: true };
    let optimization = config.optimization.get_or_insert_default();
    optimization.input_pinned_memory.get_or_insert(pinned);
    optimization.output_pinned_memory.get_or_insert(pinned);
    normalise_groups(config, machine, support);
}

fn normalise_scheduling(config: &mut ModelConfig) {
    // Default preferred batch size: the maximum, as in v2. TRTIS 0.12 used 4 and 8, which never
    // batched models with a smaller maximum and limited batches of others to 8.
    let default_to_max = |sizes: &mut Vec<i32>| {
        if sizes.is_empty() && config.max_batch_size > 0 {
            sizes.push(config.max_batch_size);
        }
    };
    match &mut config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            default_to_max(&mut dynamic.preferred_batch_size)
        }
        Some(SchedulingChoice::SequenceBatching(sequence)) => {
            if sequence.max_sequence_idle_microseconds == 0 {
                sequence.max_sequence_idle_microseconds = SEQUENCE_IDLE_MICROSECONDS;
            }
            if let Some(StrategyChoice::Oldest(oldest)) = &mut sequence.strategy_choice {
                default_to_max(&mut oldest.preferred_batch_size);
            }
        }
        Some(SchedulingChoice::EnsembleScheduling(_)) | None => {}
    }
}

fn normalise_groups(config: &mut ModelConfig, machine: &MachineFacts, support: &InstanceSupport) {
    if config.instance_group.is_empty() {
        let name = config.name.clone();
        config.instance_group.push(ModelInstanceGroup { name, ..Default::default() });
    }
    for (position, group) in config.instance_group.iter_mut().enumerate() {
        if group.name.is_empty() {
            group.name = format!("{}_{position}", config.name);
        }
        if group.kind() == Kind::Auto {
            group.set_kind(choose_kind(group, machine, support));
        }
        if group.count == 0 {
            let mut preferred = support.preferred.iter();
            let preferred = preferred.find(|p| p.kind == group.kind() && p.count > 0);
            group.count = preferred.map_or(1, |p| p.count);
        }
        if group.kind() == Kind::Gpu && group.gpus.is_empty() {
            group.gpus = machine.gpu_ids().collect();
        }
    }
}

/// Whether a group of KIND_AUTO gets KIND_GPU. A configuration without groups has one of them.
pub fn chooses_gpu(
    config: &ModelConfig,
    machine: &MachineFacts,
    support: &InstanceSupport,
) -> bool {
    let none = [ModelInstanceGroup::default()];
    let groups = if config.instance_group.is_empty() { &none[..] } else { &config.instance_group };
    let mut auto = groups.iter().filter(|g| g.kind() == Kind::Auto && g.gpus.is_empty());
    config.platform != ENSEMBLE
        && auto.any(|group| choose_kind(group, machine, support) == Kind::Gpu)
}

/// Resolves KIND_AUTO: the kinds that the backend prefers are tried first, then KIND_GPU, KIND_CPU,
/// KIND_MODEL. The first that the backend opens and this machine has is used.
///
/// GPUs that the configuration lists are never dropped. If one of them does not exist the kind
/// becomes KIND_CPU, as in Triton; else it is KIND_GPU even for a backend without GPU instances.
/// The checks refuse both, so that a model for which a GPU was asked does not silently run on the
/// CPU.
fn choose_kind(
    group: &ModelInstanceGroup,
    machine: &MachineFacts,
    support: &InstanceSupport,
) -> Kind {
    if !group.gpus.is_empty() {
        let all_exist = group.gpus.iter().all(|&id| machine.has_gpu(id));
        return if all_exist { Kind::Gpu } else { Kind::Cpu };
    }
    let preferred = support.preferred.iter().map(|p| p.kind);
    let mut kinds = preferred.chain([Kind::Gpu, Kind::Cpu, Kind::Model]);
    let usable = |kind: &Kind| support.opens(*kind) && (*kind != Kind::Gpu || machine.has_gpus());
    let without_gpu = || if support.opens(Kind::Gpu) { Kind::Gpu } else { Kind::Cpu };
    kinds.find(|kind| *kind != Kind::Auto && usable(kind)).unwrap_or_else(without_gpu)
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
