//! Unit tests of `delivery.rs`.

use super::super::{MakeSink, ModelStatus};
use super::*;
use bytes::Bytes;
use std::sync::mpsc::{Receiver, Sender, channel};
use trtserver_request::RequestContext;
use trtserver_request::Responder;
use trtserver_request::testing::signature;

/// Accepts requests, and keeps their responders.
struct Models(Sender<Arc<Responder>>);

impl ServerModels for Models {
    fn submit(&self, request: NestedRequest, make_sink: MakeSink<'_>) -> Result<QueuedRequest> {
        if request.model == "unknown" {
            return Err(Error::not_found("no such model"));
        }
        let end = make_sink(request.model == "decoupled");
        let context = RequestContext {
            signature: signature(&[1], 0),
            stats: None,
            received_ns: 0,
            batch: 1,
            outputs: Default::default(),
            stream: end.stream,
            waits: false,
            wording: trtserver_request::context::ErrorWording::default(),
            used_memory: None,
        };
        let responder = Responder::new(context, end.sink);
        let weak = Arc::downgrade(&responder);
        let cancel =
            Arc::new(move || weak.upgrade().into_iter().for_each(|r| r.cancel_token.cancel()));
        self.0.send(responder).unwrap();
        Ok(QueuedRequest { cancel, hold: Box::new(()) })
    }

    fn status(&self, _: &str, _: Option<i64>) -> Result<ModelStatus> {
        unreachable!()
    }

    fn load(&self, _: &str, _: Option<String>, _: Vec<(String, Bytes)>) -> Result<()> {
        unreachable!()
    }

    fn unload(&self, _: &str, _: bool) -> Result<()> {
        unreachable!()
    }
}

/// Whether a response is an error, and whether it is the last.
struct Recorded(Sender<(Option<Code>, bool)>, thread::ThreadId);

impl ResponseHandler for Recorded {
    fn deliver(&self, _: i64, response: Result<Option<InferResponse>>, last: bool) {
        assert_ne!(thread::current().id(), self.1, "on the calling thread");
        self.0.send((response.err().map(|e| e.code), last)).unwrap();
    }
}

struct Test {
    delivery: NestedDelivery,
    models: Models,
    responders: Receiver<Arc<Responder>>,
    seen: Receiver<(Option<Code>, bool)>,
    sender: Sender<(Option<Code>, bool)>,
}

impl Test {
    fn new() -> Self {
        let ((models, responders), (sender, seen)) = (channel(), channel());
        let models = Models(models);
        Self { delivery: NestedDelivery::default(), models, responders, seen, sender }
    }

    fn infer(&self, model: &str) -> Result<CancelRequest> {
        let request = NestedRequest {
            sender: None,
            model: model.to_owned(),
            version: None,
            id: String::new(),
            sequence: Default::default(),
            priority: 0,
            timeout_us: 0,
            deadline_ns: 0,
            parameters: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
        };
        let handler = Arc::new(Recorded(self.sender.clone(), thread::current().id()));
        self.delivery.infer("model m:1", &self.models, request, handler)
    }
}

#[test]
fn responses_are_delivered_on_another_thread() {
    let test = Test::new();
    test.infer("one").unwrap();
    let responder = test.responders.recv().unwrap();
    responder.finish(Ok(Some(InferResponse::default()))).unwrap();
    assert_eq!(test.seen.recv(), Ok((None, true)));

    test.infer("decoupled").unwrap();
    let responder = test.responders.recv().unwrap();
    responder.send(InferResponse::default()).unwrap();
    responder.finish(Ok(None)).unwrap();
    assert_eq!(test.seen.recv(), Ok((None, false)));
    assert_eq!(test.seen.recv(), Ok((None, true)));

    test.infer("one").unwrap();
    let responder = test.responders.recv().unwrap();
    responder.finish(Err(Error::internal("no"))).unwrap();
    assert_eq!(test.seen.recv(), Ok((Some(Code::Internal), true)));
}

#[test]
fn refused_request_delivers_nothing() {
    let test = Test::new();
    assert_eq!(test.infer("unknown").err().map(|e| e.code), Some(Code::NotFound));
    test.delivery.close();
    assert!(test.seen.try_recv().is_err());
}

#[test]
fn close_cancels_what_is_open() {
    let test = Test::new();
    for model in ["one", "decoupled"] {
        test.infer(model).unwrap();
    }
    let open: Vec<_> = test.responders.try_iter().collect();
    test.delivery.close();
    assert_eq!(test.seen.try_iter().collect::<Vec<_>>(), [(Some(Code::Cancelled), true); 2]);
    assert!(open.iter().all(|responder| responder.cancel_token.is_cancelled()));
    // Responses that come later are dropped.
    open.iter().for_each(|r| r.finish(Ok(Some(InferResponse::default()))).unwrap());
    assert!(test.seen.try_recv().is_err());
    let refused = test.infer("one").err().unwrap();
    assert_eq!(refused.message, "model m:1 is being closed");
}
