//! Unit tests of `response_order.rs`.

use super::*;
use trtserver_base::error::Error;

struct RecordingSink(&'static str, Arc<Mutex<Vec<String>>>);

impl ResponseSink for RecordingSink {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let what = if response.is_ok() { "ok" } else { "error" };
        self.1.lock().push(format!("{} {what} {last}", self.0));
    }
}

#[test]
fn responses_wait_for_earlier_requests() {
    let (order, sent) = (Arc::new(ResponseOrder::default()), Arc::default());
    let mut sinks: Vec<_> =
        ["a", "b", "c"].map(|n| order.enter(RecordingSink(n, Arc::clone(&sent)).into())).into();
    sinks[2].send(Ok(None), true);
    sinks[1].send(Ok(None), false);
    assert!(sent.lock().is_empty());
    sinks[0].send(Err(Error::internal("x")), true);
    assert_eq!(*sent.lock(), ["a error true", "b ok false"]);
    sinks[1].send(Ok(None), true);
    assert_eq!(sent.lock()[2..], ["b ok true", "c ok true"]);
    let mut d = order.enter(RecordingSink("d", Arc::clone(&sent)).into());
    d.send(Ok(None), true);
    assert_eq!(sent.lock().len(), 5);
    assert!(order.lock().requests.is_empty());
}
