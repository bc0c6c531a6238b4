//! Unit tests of `netdef.rs`.

use super::*;

const TEXT: &str = r#"
name: "small"  # a comment with { brackets
op { input: "x" output: "y" type: "Relu" arg { name: "order" s: "NH{WC" } arg { name: "axes" ints: 1 ints: 2 } }
external_input: "x" external_output: "y"
device_option { device_type: 1 cuda_gpu_id: 2 }
"#;

#[test]
fn text_and_binary_are_the_same_net() {
    let net = read_net(TEXT.as_bytes()).unwrap();
    assert_eq!(net.op[0].arg[1].ints, [1, 2]);
    assert_eq!(net.op[0].arg[0].s.as_deref(), Some(&b"NH{WC"[..]));
    assert_eq!(read_net(&net.encode_to_vec()).unwrap(), net);
    // Its name alone is a line feed and printable characters.
    let net = NetDef { name: Some("a name of thirty-two characters.".into()), ..NetDef::default() };
    assert!(is_text(std::str::from_utf8(&net.encode_to_vec()).unwrap()));
    assert_eq!(read_net(&net.encode_to_vec()).unwrap(), net);
}

#[test]
fn errors_say_which_form_was_read() {
    let error = |bytes: &[u8]| read_net(bytes).unwrap_err();
    assert!(error(b"op { unknown: 1 }").starts_with("it is not a NetDef in text form: "));
    let net = read_net(TEXT.as_bytes()).unwrap().encode_to_vec();
    assert!(error(&net[..net.len() - 1]).starts_with("it is not a binary NetDef: "));
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "op{arg{n{".repeat(100_000);
    assert_eq!(depth(&deep), 300_000);
    assert!(read_net(deep.as_bytes()).unwrap_err().contains("nested more than 100 levels"));
    // The parser ends a string at its line, so brackets behind an unclosed one count.
    assert_eq!(depth("\"\n{{{ '{{{{' \"{{{\\\"{{\" } { # {{{{\n {"), 4);
}
