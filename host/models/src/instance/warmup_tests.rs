//! Unit tests of `warmup.rs`.

use super::*;
use trtserver_base::error::Code;

#[test]
fn failure_contains_each_text_once() {
    let errors = Errors::default();
    assert!(warmup_failure("s", &errors).is_none());
    let mut sink = ErrorSink(Arc::clone(&errors));
    sink.send(Ok(None), true);
    for text in ["a", "a", "b"] {
        sink.send(Err(Error::invalid(text)), true);
    }
    let e = warmup_failure("s", &errors).unwrap();
    assert_eq!(e.message, "failed to run warmup sample 's': a; b");
    assert_eq!(e.code, Code::InvalidArg);
}
