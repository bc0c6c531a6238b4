//! Unit tests of `accelerators.rs`.

use super::super::super::testing::parse;
use super::*;

#[test]
fn accelerators_that_nothing_reads_are_refused() {
    let reads = InstanceSupport { backend: "b".to_owned(), ..InstanceSupport::every_kind() };
    let none = InstanceSupport { flags: 0, ..reads.clone() };
    for (support, platform, field, expected) in [
        (&none, "", "", ""),
        (&none, "", "execution_accelerators { }", ""),
        (&reads, "", "execution_accelerators { gpu_execution_accelerator [ { name: 'x' } ] }", ""),
        (
            &none,
            "",
            "execution_accelerators { gpu_execution_accelerator [ { name: 'tensorrt' } ] }",
            "gpu_execution_accelerator 'tensorrt' requested for model 'm': backend 'b' supports no execution \
             accelerators",
        ),
        (
            &none,
            "",
            "execution_accelerators { cpu_execution_accelerator [ { name: 'openvino' } ] }",
            "cpu_execution_accelerator 'openvino' requested for model 'm': backend 'b' supports no execution \
             accelerators",
        ),
        (
            &reads,
            "platform: 'ensemble'",
            "execution_accelerators { cpu_execution_accelerator [ { name: 'openvino' } ] }",
            "cpu_execution_accelerator 'openvino' requested for model 'm': an ensemble executes nothing by itself; \
             configure the models of its steps",
        ),
    ] {
        let config = parse(&format!("name: 'm' {platform} optimization {{ {field} }}"));
        let got = check_accelerators(&config, support)
            .map(|()| String::new())
            .unwrap_or_else(|e| e.message);
        assert_eq!(got, expected, "{field}");
    }
}

#[test]
fn accelerators_without_an_instance_are_warned_of() {
    let none = InstanceSupport { flags: 0, ..InstanceSupport::every_kind() };
    let both =
        "gpu_execution_accelerator [ { name: 'x' } ] cpu_execution_accelerator [ { name: 'y' } ]";
    let gpu = "gpu_execution_accelerator [ { name: 'x' } ]";
    let prefix = "optimization.execution_accelerators.";
    for (kinds, accelerators, refused, idle) in [
        (&[][..], gpu, Some("x"), None),
        (&["KIND_CPU"], gpu, None, Some(("gpu", "KIND_GPU"))),
        (&["KIND_CPU"], both, Some("y"), Some(("gpu", "KIND_GPU"))),
        (&["KIND_GPU"], both, Some("x"), Some(("cpu", "KIND_CPU"))),
        (&["KIND_CPU", "KIND_GPU"], both, Some("x"), None),
        (&["KIND_MODEL"], gpu, Some("x"), None),
        (&["KIND_CPU"], "", None, None),
    ] {
        let groups: String =
            kinds.iter().map(|kind| format!("instance_group {{ kind: {kind} }} ")).collect();
        let text = format!(
            "name: 'm' {groups} optimization {{ execution_accelerators {{ {accelerators} }} }}"
        );
        let config = parse(&text);
        let got = check_accelerators(&config, &none).err();
        let named = refused.map(|name| format!("execution_accelerator '{name}'"));
        assert_eq!(got.is_some(), named.is_some(), "{text}");
        if let (Some(got), Some(named)) = (got, named) {
            assert!(got.message.contains(&named), "{text}: {}", got.message);
        }
        let messages: Vec<_> = idle_accelerators(&config).into_iter().map(|w| w.message).collect();
        let expected: Vec<_> = idle
            .into_iter()
            .map(|(device, kind)| {
                format!(
                    "'{prefix}{device}_execution_accelerator' has no effect: the model has no instance of {kind}"
                )
            })
            .collect();
        assert_eq!(messages, expected, "{text}");
    }
}
