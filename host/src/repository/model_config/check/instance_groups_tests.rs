//! Unit tests of `instance_groups.rs`.

use super::super::super::testing::checked;
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
             required CUDA compute compatibility of 6.0 are: 0, 2",
        ),
        (
            &[],
            "kind: KIND_CPU profile: '0'",
            "specifies a profile, which is supported only on TensorRT models",
        ),
    ] {
        let machine = Machine { gpus: gpus.to_vec(), ..Machine::with_gpus(0) };
        let text = format!("name: 'm' backend: 'b' instance_group {{ {group} }}");
        let got = checked(&text, &machine).map(|_| String::new()).unwrap_or_else(|e| e.message);
        let expected = match expected {
            "" => String::new(),
            expected => format!("{subject} {expected}"),
        };
        assert_eq!(got, expected, "{group}");
    }
    let text = "name: 'm' backend: 'b' instance_group { count: 1024 } instance_group { count: 1 }";
    let error = checked(text, &Machine::with_gpus(0)).unwrap_err();
    assert_eq!(
        error.message,
        "the instance groups of model m have 1025 instances, at most 1024 are allowed by \
         --max-instances-per-model"
    );
    let tensorrt = "name: 'm' backend: 'tensorrt' instance_group { profile: '0' }";
    assert_eq!(checked(tensorrt, &Machine::with_gpus(1)), Ok(vec![]));
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
        let error = check(&group(kind), &Machine::with_gpus(1), 1024).unwrap_err();
        assert_eq!(error.message, expected);
    }
}
