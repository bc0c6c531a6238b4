//! Unit tests of `config.rs`.

use super::*;

fn field(number: u32, contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    trtserver_proto_wire::put_bytes(&mut out, number, contents);
    out
}

#[test]
fn fields_of_the_configuration_are_read() {
    let state = [field(1, b"S_IN"), field(2, b"S_OUT")].concat();
    let sequence = [vec![8, 5], field(2, &field(1, b"START")), field(5, &state)].concat();
    let parameter = field(2, &[field(1, b"precision_mode"), field(2, b"FP16")].concat());
    let tensorrt = field(1, &[field(1, b"tensorrt"), parameter].concat());
    let openvino = field(2, &field(1, b"openvino"));
    let optimization = field(4, &[openvino, tensorrt].concat());
    let config = [
        field(1, b"name"),
        field(2, b"tensorflow_graphdef"),
        vec![4 << 3, 0x80, 1],
        field(11, &[field(1, &[4, 0x80, 1]), vec![8, 16]].concat()),
        field(13, &sequence),
        field(7, &[field(1, b"g"), vec![4 << 3, 1]].concat()),
        field(7, &[field(1, b"c"), vec![4 << 3, 2]].concat()),
        field(12, &optimization),
        field(18, &[field(1, b"a.so"), field(1, b"b.so")].concat()),
        field(20, &[field(2, b"SHAPES"), vec![3 << 3, 9]].concat()),
        field(21, &field(1, b"CUT")),
    ]
    .concat();
    let facts = ConfigFacts::read(&config);
    assert_eq!(facts.platform, "tensorflow_graphdef");
    assert!(facts.has_scheduler && facts.has_sequences);
    assert_eq!(facts.preferred_sizes, [4, 128, 16]);
    assert_eq!(facts.host_inputs, ["START", "S_IN", "SHAPES"]);
    assert_eq!(facts.batch_inputs, [("SHAPES".to_owned(), 9)]);
    assert_eq!(facts.batch_outputs, ["CUT"]);
    assert_eq!(facts.host_outputs, ["S_OUT"]);
    assert_eq!((facts.gpu_instances, facts.other_instances), (true, true));
    let [tensorrt, openvino] = &facts.accelerators[..] else { panic!("{facts:?}") };
    assert_eq!(
        (tensorrt.name.as_str(), tensorrt.field()),
        ("tensorrt", "gpu_execution_accelerator")
    );
    assert_eq!(tensorrt.parameters["precision_mode"], "FP16");
    assert_eq!(
        (openvino.name.as_str(), openvino.field()),
        ("openvino", "cpu_execution_accelerator")
    );
    assert!(openvino.parameters.is_empty());
    assert_eq!(facts.operator_libraries, ["a.so", "b.so"]);
}

#[test]
fn accelerators_without_an_instance_are_dropped() {
    let accelerators = [field(1, &field(1, b"tensorrt")), field(2, &field(1, b"openvino"))];
    let optimization = field(12, &field(4, &accelerators.concat()));
    let group = |kind: u8| field(7, &[4 << 3, kind]);
    for (groups, expected) in [
        (vec![], &["tensorrt", "openvino"][..]),
        (vec![group(1)], &["tensorrt"]),
        (vec![group(2)], &["openvino"]),
        (vec![group(1), group(2)], &["tensorrt", "openvino"]),
        (vec![group(3)], &["tensorrt", "openvino"]),
    ] {
        let facts = ConfigFacts::read(&[optimization.clone(), groups.concat()].concat());
        let names: Vec<&str> = facts.accelerators.iter().map(|a| a.name.as_str()).collect();
        assert_eq!(names, expected, "{groups:?}");
    }
}

#[test]
fn malformed_configuration_is_ignored() {
    assert_eq!(ConfigFacts::read(&[]), ConfigFacts::default());
    assert_eq!(ConfigFacts::read(&[0xff; 40]), ConfigFacts::default());
    assert_eq!(ConfigFacts::read(&[0x0a, 200, 1]), ConfigFacts::default());
}
