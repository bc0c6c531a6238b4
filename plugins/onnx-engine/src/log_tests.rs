//! Unit tests of `log.rs`.

use super::*;

#[test]
fn lines_name_the_model() {
    for (id, thread, want) in [
        ("model 'a' version 1", None, "onnx runtime: model 'a' version 1: text (f.cc:1 f)"),
        (
            "model 'a' version 1",
            Some("model 'b' version 2"),
            "onnx runtime: model 'a' version 1: text (f.cc:1 f)",
        ),
        (
            "trtserver",
            Some("model 'b' version 2"),
            "onnx runtime: model 'b' version 2: text (f.cc:1 f)",
        ),
        ("", Some("model 'b' version 2"), "onnx runtime: model 'b' version 2: text (f.cc:1 f)"),
        ("trtserver", None, "onnx runtime: text (f.cc:1 f)"),
    ] {
        assert_eq!(format_line(id, thread, "text", "f.cc:1 f"), want, "{id} {thread:?}");
    }
}

#[test]
fn scopes_nest_and_end() {
    let of_thread = || MODEL.with_borrow(Option::clone);
    let (outer, inner) = (Arc::from("outer"), Arc::from("inner"));
    let scope = ModelScope::enter(&outer);
    drop(ModelScope::enter(&inner));
    assert_eq!(of_thread().as_deref(), Some("outer"));
    drop(scope);
    assert_eq!(of_thread(), None);
}
