//! A request whose outputs go to memory of the client is executed for the cache by a request of its
//! own, without destinations: the client can change its memory before the cache has read it, and
//! what is cached is sent to other clients.

use crate::RequestExecutor;
use crate::flight_sink::FlightSink;
use crate::landing::Landing;
use crate::shared_result::delivered;
use std::sync::{Arc, OnceLock, Weak};
use trtserver_base::error::Result;
use trtserver_request::{
    CancelObserver, InferRequest, InferResponse, RequestContext, RequestedOutput, Responder,
    ResponseSink,
};

/// Cancels the separate request with that of the client.
#[derive(Default)]
struct SeparateCancel(OnceLock<Weak<Responder>>);

impl CancelObserver for SeparateCancel {
    fn cancelled(&self, _: u64) {
        if let Some(separate) = self.0.get().and_then(Weak::upgrade) {
            separate.cancel_token.cancel();
        }
    }
}

/// Gives the response to the client's request.
struct SeparateSink {
    client: Arc<Responder>,
    _cancel: Arc<SeparateCancel>,
}

impl ResponseSink for SeparateSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let response = response.and_then(|response| {
            response.map(|response| delivered(&self.client.context, response)).transpose()
        });
        // The separate request is the one that is counted.
        let _ = match response {
            Ok(Some(response)) if !last => self.client.send(response),
            response => self.client.finish_shared(response, |_| {}),
        };
    }
}

/// Executes `request`, whose result lands in `landing`.
pub fn execute(landing: Landing, request: InferRequest, executor: &dyn RequestExecutor) {
    let client = Arc::clone(&request.responder);
    let from = &client.context;
    let outputs = from.outputs.iter().map(|o| RequestedOutput::new(o.index(), o.classes));
    let context = RequestContext {
        signature: Arc::clone(&from.signature),
        stats: from.stats.clone(),
        received_ns: from.received_ns,
        batch: from.batch,
        outputs: outputs.collect(),
        stream: None,
        waits: false,
        wording: from.wording,
        // The inputs were copied when they were looked up.
        used_memory: None,
    };
    let cancel = Arc::<SeparateCancel>::default();
    let sink = SeparateSink { client: Arc::clone(&client), _cancel: Arc::clone(&cancel) };
    let separate = Responder::new(context, sink);
    let weak = Arc::downgrade(&separate);
    separate.wrap_sink(|sink| FlightSink::new(landing, Weak::clone(&weak), sink).into());
    let _ = cancel.0.set(weak);
    let observer: Weak<dyn CancelObserver> =
        Arc::downgrade(&(Arc::clone(&cancel) as Arc<dyn CancelObserver>));
    if client.cancel_token.notify(observer, 0) {
        separate.cancel_token.cancel();
    }
    drop(client);
    executor.execute(InferRequest { responder: separate, ..request });
}
