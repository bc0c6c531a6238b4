//! Unit tests of `reply.rs`.

use super::*;
use crate::request::ResponseSink;
use crate::request::testing::request;
use crate::sync::Mutex;
use std::sync::Weak;

#[test]
fn ends_once() {
    let (request, stats, told) = request("");
    assert!(request.responder.finish(Err(Error::internal("first"))).is_ok());
    assert!(request.responder.finish(Ok(None)).is_err());
    assert!(request.responder.send(InferResponse::default()).is_err());
    drop(request);
    let told = told.lock();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].0.as_ref().unwrap_err().message, "first");
    assert_eq!(stats.snapshot().total().failed.count, 1);
}

#[test]
fn a_forgotten_request_is_answered() {
    let (request, _, told) = request("");
    drop(request);
    let told = told.lock();
    assert_eq!(told[0].0.as_ref().unwrap_err().code, Code::Internal);
    assert!(told[0].1);
}

/// Calls the reply back, and panics when it is told to.
struct Meddler(Weak<Responder>, Arc<Mutex<Vec<bool>>>, bool);

impl ResponseSink for Meddler {
    fn send(&mut self, _: Result<Option<InferResponse>>, last: bool) {
        let reply = self.0.upgrade().unwrap();
        reply.cancel_token.cancel();
        if !last && self.1.lock().is_empty() {
            reply.send(InferResponse::default()).unwrap();
            reply.send(InferResponse::default()).unwrap();
        }
        self.1.lock().push(last);
        assert!(!std::mem::take(&mut self.2), "as told");
    }
}

#[test]
fn a_sink_is_called_without_a_lock_and_may_panic() {
    for panics in [false, true] {
        let (request, _, _) = request("");
        let (reply, told) = (&request.responder, Arc::new(Mutex::new(Vec::new())));
        reply.wrap_sink(|_| Meddler(Arc::downgrade(reply), Arc::clone(&told), panics).into());
        let send = || reply.send(InferResponse::default());
        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(send));
        assert_eq!(sent.is_err(), panics);
        reply.finish(Ok(None)).unwrap();
        assert!(send().is_err() && reply.is_finished());
        assert_eq!(*told.lock(), [false, false, false, true]);
    }
}

#[test]
fn a_stream_ends_with_its_last() {
    let (request, _, told) = request("");
    request.responder.send(InferResponse::default()).unwrap();
    request.responder.finish(Ok(None)).unwrap();
    let last: Vec<bool> = told.lock().iter().map(|(_, last)| *last).collect();
    assert_eq!(last, [false, true]);
}
