//! Unit tests of `null_errors.rs`.

use super::*;
use trtserver_request::testing::request;

#[test]
fn error_of_a_null_request_fails_the_batch() {
    for (null_fails, want) in [(true, "null"), (false, "")] {
        let (a, _, responses_a) = request("a");
        let (null, _, _) = request("null");
        let (b, _, responses_b) = request("b");
        let batch = [a, null, b];
        share_null_errors(&batch, |r| r.id == "null");
        batch[0].responder.finish(Ok(None)).unwrap();
        batch[2].responder.finish(Ok(None)).unwrap();
        assert!(responses_a.lock().is_empty());
        let end = if null_fails { Err(Error::internal("null")) } else { Ok(None) };
        batch[1].responder.finish(end).unwrap();
        for responses in [responses_a, responses_b] {
            let responses = responses.lock();
            let text = responses[0].0.as_ref().err().map_or("", |e| &e.message);
            assert_eq!((responses.len(), text), (1, want));
        }
    }
}
