//! Unit tests of `sink.rs`.

use super::*;
use trtserver_request::RequestContext;
use trtserver_request::testing::signature;

fn responder(sink: Sink) -> Arc<Responder> {
    let context = RequestContext {
        signature: signature(&[], 0),
        stats: None,
        received_ns: 0,
        batch: 1,
        outputs: Default::default(),
        stream: None,
        waits: false,
        wording: trtserver_request::context::ErrorWording::default(),
        used_memory: None,
    };
    Responder::new(context, sink)
}

#[tokio::test]
async fn unary_sink_passes_exactly_one_response() {
    let table: [(usize, bool, Result<(), &str>); 4] = [
        (1, true, Ok(())),
        (0, true, Err("expected a single response, got 0")),
        (3, true, Err("expected a single response, got 3")),
        (
            1,
            false,
            Err("the request was dropped without a response; this is a fault of the server or of \
                 the model's backend"),
        ),
    ];
    for (responses, ended, want) in table {
        let (sink, receiver) = unary_sink(&"test");
        let responder = responder(sink);
        let weak = Arc::downgrade(&responder);
        for _ in 0..responses {
            responder.send(InferResponse::default()).unwrap();
        }
        if ended {
            responder.finish(Ok(None)).unwrap();
        }
        drop(responder);
        let got = receiver.await_response(weak).await;
        assert_eq!(got.map(|_| ()).map_err(|e| e.message), want.map_err(str::to_owned));
    }
}

#[tokio::test]
async fn client_disconnect_cancels_the_request() {
    let (sink, receiver) = unary_sink(&"test");
    let responder = responder(sink);
    let mut response = receiver.await_response(Arc::downgrade(&responder));
    let first = std::future::poll_fn(|cx| Poll::Ready(Pin::new(&mut response).poll(cx)));
    assert!(first.await.is_pending());
    drop(response);
    assert!(responder.cancel_token.is_cancelled());
}
