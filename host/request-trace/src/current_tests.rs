//! Unit tests of `current.rs`.

use super::*;
use crate::active::TraceEnd;
use crate::request_trace::TraceWire;
use crate::tracer::Tracer;
use std::time::Duration;
use trtserver_config::TraceConfig;

fn trace(tracer: &Arc<Tracer>) -> Arc<ActiveTrace> {
    tracer.begin(TraceWire::V2Http, &"m".into(), 0, || None).unwrap()
}

#[test]
fn scopes_end_and_processes_have_one_parent_or_none() {
    let config = TraceConfig { slow: Some(Duration::ZERO), ..TraceConfig::default() };
    let tracer = Tracer::new(&config, Vec::new());
    let (a, b) = (trace(&tracer), trace(&tracer));
    let current = || current_trace().map(|trace| trace.id());
    let outer = enter_trace(&a);
    let inner = enter_trace(&b);
    assert_eq!(current(), Some(b.id()));
    drop(inner);
    assert_eq!(current(), Some(a.id()));
    drop(outer);
    assert_eq!(current(), None);

    let remote = RemoteTraces::default();
    let only = || remote.only().map(|trace| trace.id());
    assert_eq!(only(), None);
    remote.add(&a);
    assert_eq!(only(), Some(a.id()));
    remote.add(&b);
    assert_eq!(only(), None);
    a.finished(&TraceEnd::default(), 0);
    assert_eq!(only(), Some(b.id()));
    drop(b);
    assert_eq!(only(), None);
    tracer.stop();
}
