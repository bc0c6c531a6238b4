//! Unit tests of `warmup.rs`.

use super::*;
use crate::error::Code;

#[test]
fn a_failure_says_each_text_once() {
    let faults = Faults::default();
    assert!(failure("s", &faults).is_none());
    let mut sink = FaultSink(Arc::clone(&faults));
    sink.send(Ok(None), true);
    for text in ["a", "a", "b"] {
        sink.send(Err(Error::invalid(text)), true);
    }
    let e = failure("s", &faults).unwrap();
    assert_eq!(e.message, "failed to run warmup sample 's': a; b");
    assert_eq!(e.code, Code::InvalidArg);
}
