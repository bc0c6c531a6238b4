//! Writes out every default, so that status, backends and the checks read one complete form.
//!
//! The default model file is set by `complete`, which knows the platforms.

use trtserver_proto::v2::model_config::SchedulingChoice;
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_proto::v2::model_optimization_policy::PinnedMemoryBuffer;
use trtserver_proto::v2::model_sequence_batching::StrategyChoice;
use trtserver_proto::v2::model_version_policy::{Latest, PolicyChoice};
use trtserver_proto::v2::{ModelConfig, ModelInstanceGroup, ModelVersionPolicy};

use super::Machine;
use super::platforms::ENSEMBLE;

/// A sequence that is silent for longer than this loses its slot.
const SEQUENCE_IDLE_MICROSECONDS: u64 = 1_000_000;

/// Instances a backend would rather have, where the configuration leaves it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preference {
    pub kind: Kind,
    /// Below 1: no opinion.
    pub count: i32,
}

/// Fills the defaults of `config` on `machine`. `preferred` is what the model's backend declares,
/// best first; empty for one that does not care.
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
    // TRTIS 0.12 added 4 and 8 here, which left a model with a smaller maximum unbatched for ever
    // and capped a larger one at 8. The maximum itself is today's rule, serves clients of both
    // generations, and is the only one that lets a bigger maximum make bigger batches.
    let whole = |sizes: &mut Vec<i32>| {
        if sizes.is_empty() && config.max_batch_size > 0 {
            sizes.push(config.max_batch_size);
        }
    };
    match &mut config.scheduling_choice {
        Some(SchedulingChoice::DynamicBatching(dynamic)) => {
            whole(&mut dynamic.preferred_batch_size)
        }
        Some(SchedulingChoice::SequenceBatching(sequence)) => {
            if sequence.max_sequence_idle_microseconds == 0 {
                sequence.max_sequence_idle_microseconds = SEQUENCE_IDLE_MICROSECONDS;
            }
            if let Some(StrategyChoice::Oldest(oldest)) = &mut sequence.strategy_choice {
                whole(&mut oldest.preferred_batch_size);
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
        if group.count < 1 {
            let wish = preferred.iter().find(|p| p.kind == group.kind() && p.count > 0);
            group.count = wish.map_or(1, |p| p.count);
        }
        if group.kind() == Kind::Gpu && group.gpus.is_empty() {
            group.gpus.clone_from(&machine.gpus);
        }
    }
}

/// What KIND_AUTO becomes: the backend's best wish that this machine can grant, else GPU where
/// there are GPUs. Listed GPUs are kept even where the group ends on the CPU; the checks then say
/// that they cannot be had, rather than the server quietly running elsewhere.
fn kind(group: &ModelInstanceGroup, machine: &Machine, preferred: &[Preference]) -> Kind {
    let gpu = !machine.gpus.is_empty() && group.gpus.iter().all(|&id| machine.has_gpu(id));
    let granted = preferred.iter().find(|p| match p.kind {
        Kind::Gpu => gpu,
        Kind::Cpu | Kind::Model => group.gpus.is_empty(),
        Kind::Auto => true,
    });
    match granted.map(|p| p.kind) {
        Some(kind) if kind != Kind::Auto => kind,
        _ if gpu => Kind::Gpu,
        _ => Kind::Cpu,
    }
}

#[cfg(test)]
#[path = "normalise_tests.rs"]
mod tests;
