//! Normalises a configuration: writes out every default, so that status, backends and checks read one complete form.
//!
//! `complete` sets the default model file.

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::model_optimization_policy::PinnedMemoryBuffer;
use trtserver_proto::v2::model_sequence_batching::StrategyChoice;
use trtserver_proto::v2::model_version_policy::{Latest, PolicyChoice};
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup, ModelVersionPolicy};

use super::Machine;
use super::platforms::ENSEMBLE;

/// Default of `max_sequence_idle_microseconds`.
const SEQUENCE_IDLE_MICROSECONDS: u64 = 1_000_000;

/// An instance kind and count that a backend prefers; used where the configuration names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preference {
    pub kind: Kind,
    /// Below 1: no preference.
    pub count: i32,
}

/// Writes the defaults of `config` on `machine`. `preferred` lists the preferences of the model's backend, best first.
pub fn normalise(config: &mut ModelConfig, machine: &Machine, preferred: &[Preference]) {
    let policy = config.version_policy.get_or_insert_with(ModelVersionPolicy::default);
    policy.policy_choice.get_or_insert(PolicyChoice::Latest(Latest { num_versions: 1 }));
    scheduling(config);
    if config.platform == ENSEMBLE {
        config.model_transaction_policy.get_or_insert_default();
        return;
    }
    let pinned = PinnedMemoryBuffer { enable: true };
    let optimization = config.optimization.get_or_insert_default();
    optimization.input_pinned_memory.get_or_insert(pinned);
    optimization.output_pinned_memory.get_or_insert(pinned);
    groups(config, machine, preferred);
}

fn scheduling(config: &mut ModelConfig) {
    // Default preferred batch size: the maximum, as in v2. TRTIS 0.12 used 4 and 8, which never batched models with a
    // smaller maximum and limited batches of others to 8.
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

fn groups(config: &mut ModelConfig, machine: &Machine, preferred: &[Preference]) {
    if config.instance_group.is_empty() {
        let name = config.name.clone();
        config.instance_group.push(ModelInstanceGroup { name, ..Default::default() });
    }
    for (position, group) in config.instance_group.iter_mut().enumerate() {
        if group.name.is_empty() {
            group.name = format!("{}_{position}", config.name);
        }
        if group.kind() == Kind::Auto {
            group.set_kind(kind(group, machine, preferred));
        }
        if group.count == 0 {
            let preferred = preferred.iter().find(|p| p.kind == group.kind() && p.count > 0);
            group.count = preferred.map_or(1, |p| p.count);
        }
        if group.kind() == Kind::Gpu && group.gpus.is_empty() {
            group.gpus.clone_from(&machine.gpus);
        }
    }
}

/// Resolves KIND_AUTO: the first preference of the backend that this machine can satisfy, else KIND_GPU if there are
/// GPUs. GPUs that the configuration lists are kept even if the kind becomes KIND_CPU: the checks then refuse the
/// configuration, so that the model does not silently run on the CPU.
fn kind(group: &ModelInstanceGroup, machine: &Machine, preferred: &[Preference]) -> Kind {
    let gpu = !machine.gpus.is_empty() && group.gpus.iter().all(|&id| machine.has_gpu(id));
    let satisfiable = preferred.iter().find(|p| match p.kind {
        Kind::Gpu => gpu,
        Kind::Cpu | Kind::Model => group.gpus.is_empty(),
        Kind::Auto => true,
    });
    match satisfiable.map(|p| p.kind) {
        Some(kind) if kind != Kind::Auto => kind,
        _ if gpu => Kind::Gpu,
        _ => Kind::Cpu,
    }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
