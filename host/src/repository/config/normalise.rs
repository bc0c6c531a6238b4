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
mod tests {
    use super::super::testing::parse;
    use super::*;

    fn normalised(text: &str, gpus: usize, preferred: &[Preference]) -> ModelConfig {
        let mut config = parse(text);
        config.name = "m".to_owned();
        normalise(&mut config, &Machine::with_gpus(gpus), preferred);
        config
    }

    /// What every normalised model has, unless it says otherwise.
    const PINNED: &str = "optimization { input_pinned_memory { enable: true } \
                          output_pinned_memory { enable: true } }";
    const LATEST: &str = "version_policy { latest { num_versions: 1 } }";
    const GROUP: &str = "instance_group { name: 'm' kind: KIND_CPU count: 1 }";

    #[test]
    fn defaults_are_written_out() {
        let rows: &[(&str, &[&str])] = &[
            ("", &[LATEST, PINNED, GROUP]),
            ("version_policy {}", &[LATEST, PINNED, GROUP]),
            ("version_policy { all {} }", &["version_policy { all {} }", PINNED, GROUP]),
            (
                "optimization { input_pinned_memory { enable: false } graph { level: 1 } }",
                &[
                    LATEST,
                    GROUP,
                    "optimization { input_pinned_memory { enable: false } graph { level: 1 } \
                     output_pinned_memory { enable: true } }",
                ],
            ),
            (
                "platform: 'ensemble'",
                &["platform: 'ensemble'", LATEST, "model_transaction_policy { decoupled: false }"],
            ),
        ];
        for (text, expected) in rows {
            let expected = parse(&format!("name: 'm' {}", expected.join(" ")));
            assert_eq!(normalised(text, 0, &[]), expected, "{text}");
        }
    }

    #[test]
    fn schedulers() {
        for (text, expected) in [
            (
                "max_batch_size: 6 dynamic_batching {}",
                "dynamic_batching { preferred_batch_size: 6 }",
            ),
            ("dynamic_batching {}", "dynamic_batching {}"),
            ("max_batch_size: -2 dynamic_batching {}", "dynamic_batching {}"),
            (
                "max_batch_size: 6 dynamic_batching { preferred_batch_size: [ 2, 4 ] }",
                "dynamic_batching { preferred_batch_size: [ 2, 4 ] }",
            ),
            (
                "max_batch_size: 6 sequence_batching {}",
                "sequence_batching { max_sequence_idle_microseconds: 1000000 }",
            ),
            (
                "max_batch_size: 6 sequence_batching { max_sequence_idle_microseconds: 5 \
                 oldest {} }",
                "sequence_batching { max_sequence_idle_microseconds: 5 \
                 oldest { preferred_batch_size: 6 } }",
            ),
        ] {
            let config = normalised(text, 0, &[]);
            assert_eq!(config.scheduling_choice, parse(expected).scheduling_choice, "{text}");
        }
    }

    #[test]
    fn instance_groups() {
        const CPU_2: Preference = Preference { kind: Kind::Cpu, count: 2 };
        const GPU_3: Preference = Preference { kind: Kind::Gpu, count: 3 };
        const MODEL: Preference = Preference { kind: Kind::Model, count: 0 };
        const AUTO: Preference = Preference { kind: Kind::Auto, count: 0 };
        type Row = (usize, &'static [Preference], &'static [&'static str], &'static [&'static str]);
        let rows: &[Row] = &[
            // GPUs, preferences, groups given, groups expected.
            (0, &[], &[], &["name: 'm' count: 1 kind: KIND_CPU"]),
            (2, &[], &[], &["name: 'm' count: 1 kind: KIND_GPU gpus: [ 0, 1 ]"]),
            (
                0,
                &[],
                &["count: -4", "name: 'g' kind: KIND_CPU count: 3"],
                &["name: 'm_0' count: 1 kind: KIND_CPU", "name: 'g' count: 3 kind: KIND_CPU"],
            ),
            (
                2,
                &[],
                &["name: 'g'", "gpus: 1"],
                &[
                    "name: 'g' count: 1 kind: KIND_GPU gpus: [ 0, 1 ]",
                    "name: 'm_1' count: 1 kind: KIND_GPU gpus: 1",
                ],
            ),
            (2, &[], &["gpus: [ 1, 2 ]"], &["name: 'm_0' count: 1 kind: KIND_CPU gpus: [ 1, 2 ]"]),
            (0, &[], &["kind: KIND_GPU"], &["name: 'm_0' count: 1 kind: KIND_GPU"]),
            (2, &[], &["kind: KIND_MODEL"], &["name: 'm_0' count: 1 kind: KIND_MODEL"]),
            (0, &[CPU_2], &[], &["name: 'm' count: 2 kind: KIND_CPU"]),
            (2, &[CPU_2], &[], &["name: 'm' count: 2 kind: KIND_CPU"]),
            (2, &[CPU_2], &["gpus: 1"], &["name: 'm_0' count: 1 kind: KIND_GPU gpus: 1"]),
            (
                2,
                &[CPU_2],
                &["kind: KIND_GPU"],
                &["name: 'm_0' count: 1 kind: KIND_GPU gpus: [ 0, 1 ]"],
            ),
            (1, &[GPU_3, CPU_2], &[], &["name: 'm' count: 3 kind: KIND_GPU gpus: 0"]),
            (0, &[GPU_3, CPU_2], &[], &["name: 'm' count: 2 kind: KIND_CPU"]),
            (0, &[GPU_3], &["count: 5"], &["name: 'm_0' count: 5 kind: KIND_CPU"]),
            (1, &[MODEL], &[], &["name: 'm' count: 1 kind: KIND_MODEL"]),
            (1, &[AUTO], &[], &["name: 'm' count: 1 kind: KIND_GPU gpus: 0"]),
        ];
        let text = |groups: &[&str]| -> String {
            groups.iter().map(|group| format!("instance_group {{ {group} }} ")).collect()
        };
        for (gpus, preferred, given, expected) in rows {
            let config = normalised(&text(given), *gpus, preferred);
            assert_eq!(config.instance_group, parse(&text(expected)).instance_group, "{given:?}");
        }
    }

    #[test]
    fn a_second_pass_changes_nothing() {
        for text in ["", "max_batch_size: 4 dynamic_batching {} instance_group {}"] {
            let once = normalised(text, 2, &[]);
            let mut twice = once.clone();
            normalise(&mut twice, &Machine::with_gpus(2), &[]);
            assert_eq!(once, twice);
        }
    }
}
