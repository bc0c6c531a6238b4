//! Unit tests of `schema.rs`.

use super::*;

/// The parser and the printers recurse along the schema, so its depth bounds their stack.
#[test]
fn no_message_contains_itself() {
    fn depth(message: &MessageSchema) -> usize {
        let inner = message.fields.iter().map(|f| match f.kind {
            FieldKind::Message(m) => depth(m),
            _ => 0,
        });
        1 + inner.max().unwrap_or(0)
    }
    assert!(depth(crate::v1::StatusResponse::schema()) < 16);
    assert!(depth(crate::v2::ModelConfigResponse::schema()) < 16);
    assert!(depth(crate::v2::ModelInferRequest::schema()) < 16);
}

#[test]
fn names_carry_no_package() {
    assert_eq!(crate::v1::InferRequestHeader::schema().name, "InferRequestHeader");
    let Some((_, input)) = crate::v1::InferRequestHeader::schema().field("input") else {
        panic!("no input")
    };
    let FieldKind::Message(input) = input.kind else { panic!("not a message") };
    assert_eq!(input.name, "InferRequestHeader.Input");
}
