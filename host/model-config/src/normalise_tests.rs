//! Unit tests of `normalise.rs`.

use super::super::InstancePreference;
use super::super::testing::{machine, parse};
use super::*;

fn normalised(text: &str, gpus: i32, preferred: &[InstancePreference]) -> ModelConfig {
    let mut config = parse(text);
    config.name = "m".to_owned();
    let preferred = preferred.to_vec();
    let support = InstanceSupport { preferred, ..InstanceSupport::every_kind() };
    normalise_config(&mut config, &machine(&(0..gpus).collect::<Vec<_>>()), &support);
    config
}

/// Defaults of every normalised model.
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
fn scheduler_defaults() {
    for (text, expected) in [
        ("max_batch_size: 6 dynamic_batching {}", "dynamic_batching { preferred_batch_size: 6 }"),
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
fn instance_group_defaults() {
    const CPU_2: InstancePreference = InstancePreference { kind: Kind::Cpu, count: 2 };
    const GPU_3: InstancePreference = InstancePreference { kind: Kind::Gpu, count: 3 };
    const MODEL: InstancePreference = InstancePreference { kind: Kind::Model, count: 0 };
    const AUTO: InstancePreference = InstancePreference { kind: Kind::Auto, count: 0 };
    type Row =
        (i32, &'static [InstancePreference], &'static [&'static str], &'static [&'static str]);
    let rows: &[Row] = &[
        // GPUs, preferences, given groups, expected groups.
        (0, &[], &[], &["name: 'm' count: 1 kind: KIND_CPU"]),
        (2, &[], &[], &["name: 'm' count: 1 kind: KIND_GPU gpus: [ 0, 1 ]"]),
        (
            0,
            &[],
            &["count: 0", "name: 'g' kind: KIND_CPU count: 3"],
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
        (2, &[CPU_2], &["kind: KIND_GPU"], &["name: 'm_0' count: 1 kind: KIND_GPU gpus: [ 0, 1 ]"]),
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
fn normalise_is_idempotent() {
    for text in ["", "max_batch_size: 4 dynamic_batching {} instance_group {}"] {
        let once = normalised(text, 2, &[]);
        let mut twice = once.clone();
        normalise_config(&mut twice, &machine(&[0, 1]), &InstanceSupport::every_kind());
        assert_eq!(once, twice);
    }
}
