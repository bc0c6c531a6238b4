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
    let optimization = field(4, &field(2, &field(1, b"openvino")));
    let config = [
        field(1, b"name"),
        field(2, b"tensorflow_graphdef"),
        vec![4 << 3, 0x80, 1],
        field(13, &sequence),
        field(12, &optimization),
        field(18, &[field(1, b"a.so"), field(1, b"b.so")].concat()),
        field(20, &field(2, b"SHAPES")),
    ]
    .concat();
    let facts = Facts::read(&config);
    assert_eq!(facts.platform, "tensorflow_graphdef");
    assert!(facts.has_scheduler);
    assert_eq!(facts.host_inputs, ["START", "S_IN", "SHAPES"]);
    assert_eq!(facts.host_outputs, ["S_OUT"]);
    assert_eq!(facts.accelerators, ["openvino"]);
    assert_eq!(facts.operator_libraries, ["a.so", "b.so"]);
}

#[test]
fn malformed_configuration_is_ignored() {
    assert_eq!(Facts::read(&[]), Facts::default());
    assert_eq!(Facts::read(&[0xff; 40]), Facts::default());
    assert_eq!(Facts::read(&[0x0a, 200, 1]), Facts::default());
}
