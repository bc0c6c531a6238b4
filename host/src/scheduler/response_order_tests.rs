//! Unit tests of `response_order.rs`.

use super::*;
use crate::error::Error;

struct Tell(&'static str, Arc<Mutex<Vec<String>>>);

impl ResponseSink for Tell {
    fn send(&mut self, response: Result<Option<InferResponse>>, last: bool) {
        let what = if response.is_ok() { "ok" } else { "error" };
        self.1.lock().push(format!("{} {what} {last}", self.0));
    }
}

#[test]
fn answers_wait_for_those_before_them() {
    let (order, told) = (Arc::new(ResponseOrder::default()), Arc::default());
    let mut sinks: Vec<_> =
        ["a", "b", "c"].map(|n| order.enter(Tell(n, Arc::clone(&told)).into())).into();
    sinks[2].send(Ok(None), true);
    sinks[1].send(Ok(None), false);
    assert!(told.lock().is_empty());
    sinks[0].send(Err(Error::internal("x")), true);
    assert_eq!(*told.lock(), ["a error true", "b ok false"]);
    sinks[1].send(Ok(None), true);
    assert_eq!(told.lock()[2..], ["b ok true", "c ok true"]);
    let mut d = order.enter(Tell("d", Arc::clone(&told)).into());
    d.send(Ok(None), true);
    assert_eq!(told.lock().len(), 5);
    assert!(order.lock().line.is_empty());
}
