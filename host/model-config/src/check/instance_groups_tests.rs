//! Unit tests of `instance_groups.rs`.

use super::super::super::testing::{checked, gpu, machine, parse};
use super::super::super::{InstancePreference, normalise_config};
use super::*;

#[test]
fn instance_group_rules() {
    let subject = "instance group m_0 of model m";
    // Usable GPUs, group, error.
    for (gpus, group, expected) in [
        (&[][..], "", ""),
        (&[], "kind: KIND_CPU", ""),
        (&[0, 2], "gpus: 2", ""),
        (&[], "kind: KIND_MODEL", ""),
        (&[], "count: 1024", ""),
        (&[], "count: -5", "has count -5, expected at least 1"),
        (&[], "count: 1025", "has count 1025, at most 1024 is allowed (--max-instances-per-model)"),
        (&[], "kind: KIND_GPU", "has kind KIND_GPU but no GPUs are available"),
        (&[], "kind: KIND_GPU gpus: 0", "has kind KIND_GPU but no GPUs are available"),
        (&[], "gpus: 0", "has kind KIND_CPU but specifies one or more GPUs"),
        (&[0], "kind: KIND_CPU gpus: 0", "has kind KIND_CPU but specifies one or more GPUs"),
        (&[0], "kind: KIND_MODEL gpus: 0", "has kind KIND_MODEL but specifies one or more GPUs"),
        (
            &[0, 2],
            "kind: KIND_GPU gpus: [ 0, 1 ]",
            "specifies invalid or unsupported gpu id 1. GPUs with at least the minimum \
             required CUDA compute compatibility of 0.000000 are: 0, 2",
        ),
        (
            &[],
            "kind: KIND_CPU profile: '0'",
            "specifies a profile, which is supported only on TensorRT models",
        ),
    ] {
        let machine = machine(gpus);
        let text = format!("name: 'm' backend: 'b' instance_group {{ {group} }}");
        let got = checked(&text, &machine).map(|_| String::new()).unwrap_or_else(|e| e.message);
        let expected = match expected {
            "" => String::new(),
            expected => format!("{subject} {expected}"),
        };
        assert_eq!(got, expected, "{group}");
    }
    let text = "name: 'm' backend: 'b' instance_group { count: 1024 } instance_group { count: 1 }";
    let error = checked(text, &MachineFacts::default()).unwrap_err();
    assert_eq!(
        error.message,
        "the instance groups of model m have 1025 instances, at most 1024 are allowed by \
         --max-instances-per-model"
    );
    let profile = parse(
        "name: 'm' backend: 'b' instance_group { name: 'g' count: 1 kind: KIND_CPU profile: '0' }",
    );
    let flags = backend_flags::PROFILES;
    let support = InstanceSupport { flags, ..InstanceSupport::every_kind() };
    assert_eq!(check_instance_groups(&profile, &machine(&[]), &support, 1024), []);
}

#[test]
fn groups_that_normalise_completes_are_valid() {
    let group = |kind: Kind| {
        let name = "g".to_owned();
        let mut group = ModelInstanceGroup { name, count: 1, ..Default::default() };
        group.set_kind(kind);
        let name = "m".to_owned();
        ModelConfig { name, instance_group: vec![group], ..Default::default() }
    };
    for (kind, expected) in [
        (Kind::Auto, "instance group g of model m has unexpected kind KIND_AUTO"),
        (Kind::Gpu, "instance group g of model m has kind KIND_GPU but specifies no GPUs"),
    ] {
        let errors = check_instance_groups(
            &group(kind),
            &machine(&[0]),
            &InstanceSupport::every_kind(),
            1024,
        );
        assert_eq!(errors[0].message, expected);
    }
}

/// A backend `b` that opens instances of `kinds`.
fn backend(kinds: &[Kind]) -> InstanceSupport {
    let kinds = kinds.iter().fold(0, |set, kind| set | 1 << *kind as u32);
    InstanceSupport { backend: "b".to_owned(), kinds, ..InstanceSupport::every_kind() }
}

/// Kind and GPUs of each group after normalisation, or the error without its subject.
fn placed(
    groups: &str,
    machine: &MachineFacts,
    support: &InstanceSupport,
) -> Result<Vec<(Kind, Vec<i32>)>, String> {
    let mut config = parse(&format!("name: 'm' backend: 'b' {groups}"));
    normalise_config(&mut config, machine, support);
    let subject = "instance group m_0 of model m ";
    if let Some(first) = check_instance_groups(&config, machine, support, 1024).first() {
        return Err(first.message.trim_start_matches(subject).to_owned());
    }
    Ok(config.instance_group.iter().map(|g| (g.kind(), g.gpus.clone())).collect())
}

#[test]
fn groups_are_placed_by_machine_and_backend() {
    use Kind::{Cpu, Gpu, Model};
    let machines = [0, 1, 2, 8].map(|n| machine(&(0..n).collect::<Vec<_>>()));
    let [none, one, two, eight] = &machines;
    let cpu_only = &backend(&[Cpu, Model]);
    let both = &backend(&[Gpu, Cpu, Model]);
    let gpu_only = &backend(&[Gpu]);
    let model_only = &backend(&[Model]);
    let preferred = vec![InstancePreference { kind: Cpu, count: 1 }];
    let prefers_cpu = &InstanceSupport { preferred, ..both.clone() };
    let preferred = vec![InstancePreference { kind: Gpu, count: 3 }];
    let prefers_gpu_without_it = &InstanceSupport { preferred, ..cpu_only.clone() };
    let auto = "instance_group { kind: KIND_AUTO }";
    let gpu = "instance_group { kind: KIND_GPU }";
    let all = (0..8).collect::<Vec<_>>();
    type Row<'a> =
        (&'a str, &'a MachineFacts, &'a InstanceSupport, Result<(Kind, &'a [i32]), &'a str>);
    let no_gpu = "has kind KIND_GPU but no GPUs are available";
    let cannot =
        "has kind KIND_GPU but backend 'b' opens only instances of KIND_CPU and KIND_MODEL";
    let model_kind = "instance_group { kind: KIND_MODEL }";
    let no_model = "has kind KIND_MODEL which is supported only on TensorFlow models and by backends that \
                    open it: backend 'b' opens only instances of KIND_GPU";
    let rows: &[Row] = &[
        (model_kind, one, gpu_only, Err(no_model)),
        ("", none, both, Ok((Cpu, &[]))),
        ("", one, both, Ok((Gpu, &[0]))),
        ("", two, both, Ok((Gpu, &[0, 1]))),
        ("", eight, both, Ok((Gpu, &all))),
        ("", eight, cpu_only, Ok((Cpu, &[]))),
        ("", eight, prefers_cpu, Ok((Cpu, &[]))),
        ("", eight, prefers_gpu_without_it, Ok((Cpu, &[]))),
        ("", one, gpu_only, Ok((Gpu, &[0]))),
        ("", one, model_only, Ok((Model, &[]))),
        (auto, none, both, Ok((Cpu, &[]))),
        (auto, two, both, Ok((Gpu, &[0, 1]))),
        (auto, two, cpu_only, Ok((Cpu, &[]))),
        (gpu, two, both, Ok((Gpu, &[0, 1]))),
        (gpu, two, prefers_cpu, Ok((Gpu, &[0, 1]))),
        ("instance_group { kind: KIND_GPU gpus: 7 }", eight, both, Ok((Gpu, &[7]))),
        ("instance_group { gpus: [ 1, 1 ] }", two, both, Ok((Gpu, &[1, 1]))),
        ("instance_group { gpus: 1 }", two, prefers_cpu, Ok((Gpu, &[1]))),
        ("instance_group { kind: KIND_CPU }", eight, both, Ok((Cpu, &[]))),
        ("instance_group { kind: KIND_MODEL }", eight, both, Ok((Model, &[]))),
        (gpu, none, both, Err(no_gpu)),
        (auto, none, gpu_only, Err(no_gpu)),
        (gpu, two, cpu_only, Err(cannot)),
        ("instance_group { gpus: 1 }", two, cpu_only, Err(cannot)),
        (
            "instance_group { kind: KIND_CPU }",
            two,
            gpu_only,
            Err("has kind KIND_CPU but backend 'b' opens only instances of KIND_GPU"),
        ),
        (
            "instance_group { gpus: [ 0, 8 ] }",
            eight,
            both,
            Err("has kind KIND_CPU but specifies one or more GPUs"),
        ),
        (
            "instance_group { kind: KIND_GPU gpus: -1 }",
            two,
            both,
            Err(
                "specifies invalid or unsupported gpu id -1. GPUs with at least the minimum required \
                 CUDA compute compatibility of 0.000000 are: 0, 1",
            ),
        ),
    ];
    for (groups, machine, support, expected) in rows {
        let got = placed(groups, machine, support);
        let expected = match expected {
            Ok((kind, gpus)) => Ok(vec![(*kind, gpus.to_vec())]),
            Err(message) => Err((*message).to_owned()),
        };
        assert_eq!(got, expected, "'{groups}' {machine:?} {support:?}");
    }
}

#[test]
fn gpus_below_the_minimum_compute_capability_are_not_used() {
    let found = || vec![gpu(1, (8, 6)), gpu(0, (6, 1)), gpu(2, (7, 5)), gpu(3, (10, 0))];
    let any = InstanceSupport::every_kind();
    for (min, expected) in [
        (0.0, &[0, 1, 2, 3][..]),
        (6.1, &[0, 1, 2, 3]),
        (6.2, &[1, 2, 3]),
        (8.6, &[1, 3]),
        (9.9, &[3]),
    ] {
        let got = placed("", &MachineFacts::new(found(), min), &any);
        assert_eq!(got, Ok(vec![(Kind::Gpu, expected.to_vec())]), "{min}");
    }
    assert_eq!(placed("", &MachineFacts::new(found(), 11.0), &any), Ok(vec![(Kind::Cpu, vec![])]));
    let too_old = placed(
        "instance_group { kind: KIND_GPU gpus: [ 1, 2 ] }",
        &MachineFacts::new(found(), 8.6),
        &any,
    );
    assert_eq!(
        too_old.unwrap_err(),
        "specifies invalid or unsupported gpu id 2. GPUs with at least the minimum required CUDA \
         compute compatibility of 8.600000 are: 1, 3; GPU 2 (G2) has 7.5"
    );
}

#[test]
fn secondary_devices_have_no_effect_without_a_backend_that_uses_them() {
    let uses = InstanceSupport::every_kind();
    let does_not = InstanceSupport { backend: "b".to_owned(), flags: 0, ..uses.clone() };
    for device in ["", "kind: KIND_NVDLA device_id: 1"] {
        let group = format!("instance_group {{ secondary_devices {{ {device} }} }}");
        for (support, warned) in [(&uses, false), (&does_not, true)] {
            assert_eq!(placed(&group, &machine(&[0]), support), Ok(vec![(Kind::Gpu, vec![0])]));
            let warning = unused_devices(&parse(&group), support).map(|warning| warning.message);
            let text =
                "'instance_group.secondary_devices' has no effect: backend 'b' does not use them";
            assert_eq!(warning, warned.then(|| text.to_owned()), "{group}");
        }
    }
}
