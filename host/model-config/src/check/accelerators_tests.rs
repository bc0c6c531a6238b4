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
