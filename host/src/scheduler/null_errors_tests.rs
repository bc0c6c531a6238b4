//! Unit tests of `null_errors.rs`.

use super::*;
use crate::request::testing::request;

#[test]
fn error_of_a_null_request_fails_the_batch() {
    for (null_fails, want) in [(true, "null"), (false, "")] {
        let (a, _, told_a) = request("a");
        let (null, _, _) = request("null");
        let (b, _, told_b) = request("b");
        let batch = [a, null, b];
        share(&batch, |r| r.id == "null");
        batch[0].responder.finish(Ok(None)).unwrap();
        batch[2].responder.finish(Ok(None)).unwrap();
        assert!(told_a.lock().is_empty());
        let end = if null_fails { Err(Error::internal("null")) } else { Ok(None) };
        batch[1].responder.finish(end).unwrap();
        for told in [told_a, told_b] {
            let told = told.lock();
            let text = told[0].0.as_ref().err().map_or("", |e| &e.message);
            assert_eq!((told.len(), text), (1, want));
        }
    }
}
