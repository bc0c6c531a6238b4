//! Unit tests of `nested.rs`.

use super::super::tests::admit;
use super::super::{ExecutionGrant, GrantAnswer, LimiterMember};
use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};
use trtserver_base::stats::ExecutionHold;

struct RecordLast(Sender<bool>);

impl ResponseSink for RecordLast {
    fn send(&mut self, _: Result<Option<InferResponse>>, last: bool) {
        self.0.send(last).unwrap();
    }
}

fn recorded() -> (Sink, Receiver<bool>) {
    let (sender, receiver) = channel();
    (RecordLast(sender).into(), receiver)
}

fn ask(limit: &LimiterMember) -> Option<Arc<ExecutionGrant>> {
    match limit.ask(0) {
        GrantAnswer::Granted(grant) => Some(grant),
        GrantAnswer::Waiting { .. } => None,
    }
}

#[test]
fn response_waits_for_the_resources_of_its_execution() {
    let limiter = RateLimiter::new(Vec::new());
    let (outer, inner) = (admit(&limiter, "outer", 1), admit(&limiter, "inner", 1));
    let outer_grant = ask(&outer).unwrap();
    let entered = outer_grant.enter();
    let lent = limiter.lend(None).unwrap();
    drop(entered);
    let (sink, responses) = recorded();
    let mut sink = lent.wrap(sink);
    let inner_grant = ask(&inner).unwrap();
    sink.send(Ok(None), false);
    assert_eq!(responses.try_recv(), Ok(false));
    sink.send(Ok(None), true);
    assert!(responses.try_recv().is_err(), "the resources are in use");
    inner_grant.finished();
    inner_grant.returned(&inner, true, 0).wake();
    assert_eq!(responses.try_recv(), Ok(true));
    assert!(ask(&inner).is_none(), "the outer execution has them");
}

#[test]
fn first_execution_of_a_model_lets_the_response_pass() {
    let limiter = RateLimiter::new(vec![super::super::ResourceCount {
        name: "r".to_owned(),
        count: 2,
        device: None,
    }]);
    let outer = [0; 2].map(|_| admit(&limiter, "outer", 1));
    let inner = admit(&limiter, "inner", 2);
    let _grants = outer.each_ref().map(|outer| ask(outer).unwrap());
    assert!(limiter.lend(None).is_none() && limiter.lend(Some(("outer", 2))).is_none());
    let (sink, responses) = recorded();
    let mut sink = limiter.lend(Some(("outer", 1))).unwrap().wrap(sink);
    let inner_grant = ask(&inner).unwrap();
    sink.send(Ok(None), true);
    assert!(responses.try_recv().is_err());
    drop(inner_grant);
    assert_eq!(responses.try_recv(), Ok(true));
    assert!(responses.try_recv().is_err(), "once");
}

#[test]
fn refused_request_takes_the_resources_back() {
    let limiter = RateLimiter::new(Vec::new());
    let (outer, inner) = (admit(&limiter, "outer", 1), admit(&limiter, "inner", 1));
    let _grant = ask(&outer).unwrap();
    drop(limiter.lend(Some(("outer", 1))).unwrap());
    assert!(ask(&inner).is_none());
}
