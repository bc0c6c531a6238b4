//! Unit tests of `tracer.rs`.

use super::*;
use crate::active::TraceEnd;
use crate::activity::{Activity, TensorActivity};
use crate::ids::SpanPart;
use crate::request_trace::{BatchFacts, RequestSpan};
use crate::settings::{SettingChange, TraceLevels};
use std::sync::mpsc;
use trtserver_base::error::Error;

const LIMIT: Duration = Duration::from_secs(20);

struct Forward(TraceDemand, mpsc::Sender<RequestTrace>);

impl TraceSink for Forward {
    fn demand(&self) -> TraceDemand {
        self.0
    }

    fn finished(&self, trace: &RequestTrace) {
        self.1.send(trace.clone()).unwrap();
    }
}

fn tracer(
    config: &TraceConfig,
    demand: TraceDemand,
) -> (Arc<Tracer>, mpsc::Receiver<RequestTrace>) {
    let (sender, finished) = mpsc::channel();
    (Tracer::new(config, vec![Box::new(Forward(demand, sender))]), finished)
}

fn sampling(rate: u32) -> TraceConfig {
    let levels = TraceLevels { timestamps: true, tensors: false };
    let values = TraceValues { levels, rate, ..TraceValues::default() };
    TraceConfig { values, recent: Some(10), ..TraceConfig::default() }
}

fn begin(tracer: &Arc<Tracer>, context: Option<&str>) -> Option<Arc<ActiveTrace>> {
    let context = || context.and_then(|text| TraceContext::parse(text.as_bytes(), None));
    tracer.begin(TraceWire::V2Http, &"m".into(), now_ns(), || context().map(Box::new))
}

#[test]
fn nothing_is_traced_by_default() {
    let tracer = Tracer::off();
    assert!(begin(&tracer, None).is_none());
    assert!(tracer.worker.lock().is_none(), "there is no thread");
}

#[test]
fn a_trace_ends_with_its_last_reference() {
    let (tracer, finished) = tracer(&sampling(1), TraceDemand::Sampled);
    let trace = begin(&tracer, None).unwrap();
    trace.received(now_ns());
    trace.submitted(3, "id\n", 2, 64);
    let step = trace.child(&"step".into());
    step.submitted(1, "id\n", 2, 64);
    step.finished(&TraceEnd { queued_ns: 5, ..TraceEnd::default() }, now_ns());
    let sending = trace.sending(200);
    trace.responded(16, now_ns());
    trace.finished(&TraceEnd::default(), now_ns());
    drop((trace, step));
    assert!(finished.try_recv().is_err());
    drop(sending);
    let done = finished.recv_timeout(LIMIT).unwrap();
    assert_eq!((done.status, done.output_bytes, done.root().rows), (Some(200), 16, 2));
    assert_eq!((&*done.root().request_id, done.root().version), ("id\n", 3));
    let [root, step] = &done.spans[..] else { panic!("{:?}", done.spans) };
    assert_eq!((step.parent_id, &*step.model), (root.id, "step"));
    assert_eq!(step.time(&Activity::QueueStart), Some(5));
    let names: Vec<_> = root.timestamps.iter().map(|(a, _)| a.name().into_owned()).collect();
    let expected = [
        "HTTP_RECV_START",
        "HTTP_RECV_END",
        "REQUEST_START",
        "HTTP_SEND_START",
        "INFER_RESPONSE_COMPLETE",
        "REQUEST_END",
        "HTTP_SEND_END",
    ];
    assert_eq!(names, expected);
    let year_2020 = 1_577_836_800_000_000_000;
    assert!(done.unix_ns(done.start_ns) > year_2020);
    assert_eq!(tracer.recent().find("id\n").unwrap().root().id, root.id);
    tracer.stop();
}

#[test]
fn slow_and_failed_requests_are_kept_without_sampling() {
    let slow = |ms| TraceConfig { slow: Some(Duration::from_millis(ms)), ..TraceConfig::default() };
    for (slow_ms, fails, reason) in [
        (60_000, false, None),
        (60_000, true, Some(TraceReason::Failed)),
        (0, false, Some(TraceReason::Slow)),
    ] {
        let (tracer, finished) = tracer(&slow(slow_ms), TraceDemand::Sampled);
        let trace = begin(&tracer, None).unwrap();
        if fails {
            trace.refused(&Error::invalid("no"));
        }
        drop(trace);
        tracer.stop();
        let done = finished.try_recv().ok();
        assert_eq!(done.as_ref().map(|done| done.reason), reason, "{slow_ms} {fails}");
        assert!(done.is_none_or(|done| done.sampled.is_none()));
    }
}

#[test]
fn callers_decide_in_the_mode_of_open_telemetry_alone() {
    let parent = |flags| format!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-{flags}");
    let (yes, no) = (parent("01"), parent("00"));
    for (mode, parent_based, context, sampled) in [
        (TraceMode::Triton, true, Some(&yes), false),
        (TraceMode::OpenTelemetry, true, Some(&yes), true),
        (TraceMode::OpenTelemetry, true, Some(&no), false),
        (TraceMode::OpenTelemetry, false, Some(&no), true),
        (TraceMode::OpenTelemetry, true, None, false),
    ] {
        let config = TraceConfig { mode, parent_based, ..sampling(1000) };
        let tracer = Tracer::new(&config, Vec::new());
        let trace = begin(&tracer, context.map(String::as_str));
        assert_eq!(trace.is_some(), sampled, "{mode:?} {parent_based} {context:?}");
        drop(trace);
        tracer.stop();
    }
}

#[test]
fn a_sink_for_all_requests_gets_them_all() {
    let (tracer, finished) = tracer(&TraceConfig::default(), TraceDemand::All);
    drop(begin(&tracer, None).unwrap());
    assert_eq!(finished.recv_timeout(LIMIT).unwrap().reason, TraceReason::Sampled);
    assert!(tracer.recent().list().is_empty());
    tracer.stop();
}

#[test]
fn files_are_written_by_log_frequency_and_count() {
    let level = |count, frequency| {
        let mut config = sampling(1);
        (config.values.count, config.values.log_frequency) = (count, frequency);
        config
    };
    for (config, requests, expected) in [
        (level(-1, 0), 3, vec![("t", 3)]),
        (level(-1, 2), 5, vec![("t.0", 2), ("t.1", 2), ("t.2", 1)]),
        (level(3, 0), 5, vec![("t.0", 3)]),
        (level(3, 2), 5, vec![("t.0", 2), ("t.1", 1)]),
        (level(9, 0), 2, vec![("t", 2)]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t").display().to_string();
        let tracer = Tracer::new(&TraceConfig { file, ..config.clone() }, Vec::new());
        for _ in 0..requests {
            let trace = begin(&tracer, None);
            trace.iter().for_each(|trace| trace.finished(&TraceEnd::default(), now_ns()));
        }
        tracer.stop();
        let mut found: Vec<(String, usize)> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let text = std::fs::read_to_string(&path).unwrap();
                let records: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap();
                let heads = records.iter().filter(|record| record.get("model_name").is_some());
                (path.file_name().unwrap().to_str().unwrap().to_owned(), heads.count())
            })
            .collect();
        found.sort();
        let expected: Vec<_> = expected.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        assert_eq!(found, expected, "{:?}", config.values);
        assert_eq!(tracer.stats().all_dropped(), 0);
    }
}

#[test]
fn a_new_setting_traces_from_the_next_request_on() {
    let config = TraceConfig { recent: Some(1), ..TraceConfig::default() };
    let tracer = Tracer::new(&config, Vec::new());
    let on = TraceLevels { timestamps: true, tensors: false };
    let update = SettingUpdate {
        levels: Some(SettingChange::Set(on)),
        rate: Some(SettingChange::Set(1)),
        ..Default::default()
    };
    assert!(begin(&tracer, None).is_none());
    tracer.update("m", &update).unwrap();
    assert!(begin(&tracer, None).is_some());
    let other = tracer.begin(TraceWire::V1Http, &"other".into(), 0, || None);
    assert!(other.is_none());
    tracer.update("m", &SettingUpdate { levels: Some(SettingChange::Clear), ..update }).unwrap();
    assert!(begin(&tracer, None).is_none());
    tracer.stop();
}

/// The first trace has everything that a trace can have; the next ones use its memory.
#[test]
fn a_used_block_has_nothing_of_its_earlier_trace() {
    let config = TraceConfig { recent: Some(0), slow: Some(LIMIT), ..sampling(1) };
    let (tracer, finished) = tracer(&config, TraceDemand::Sampled);
    let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let first = begin(&tracer, Some(context)).unwrap();
    first.set_caller(&"somebody".into());
    first.submitted(3, "mine", 2, 64);
    first.executed_in(BatchFacts {
        number: 1,
        instance: "i".into(),
        requests: 2,
        rows: 2,
        close_reason: "",
        request_ids: Some([String::new(), "mine".to_owned()].into()),
    });
    first.tensor(TensorActivity::QueueInput, "t", "INT32", &[1], &[0; 4]);
    first.report("MINE", 7);
    let failed = Error::invalid("no");
    let end = TraceEnd { error: Some(&failed), response_bytes: Some(8), ..TraceEnd::default() };
    first.finished(&end, now_ns());
    drop(first.sending(400));
    drop(first);
    let first = finished.recv_timeout(LIMIT).unwrap();
    assert_eq!((first.reason, first.status), (TraceReason::Failed, Some(400)));
    let deadline = Instant::now() + LIMIT;
    while tracer.pool.waiting_count() == 0 {
        assert!(Instant::now() < deadline, "the block does not come back");
        thread::yield_now();
    }
    let next = begin(&tracer, None).unwrap();
    assert_eq!(tracer.pool.waiting_count(), 0, "the block is used");
    drop(next);
    let next = finished.recv_timeout(LIMIT).unwrap();
    let root = RequestSpan { id: first.root().id + 1, model: "m".into(), ..RequestSpan::default() };
    assert_eq!(format!("{:?}", next.spans), format!("{:?}", [root]));
    assert_eq!((next.reason, next.status, next.caller), (TraceReason::Sampled, None, None));
    assert_eq!((next.context, next.input_bytes, next.output_bytes), (None, 0, 0));
    assert!(next.end_ns >= first.end_ns);
    tracer.stop();
}

#[test]
fn ids_of_spans_differ_by_number_and_part() {
    let ids = TraceIds::default();
    let parts = [SpanPart::Request, SpanPart::Model, SpanPart::Compute];
    let spans = (1..=1000).flat_map(|number| parts.map(|part| ids.span_id(number, part)));
    let spans: std::collections::HashSet<_> = spans.collect();
    let traces: std::collections::HashSet<_> = (1..=1000).map(|n| ids.trace_id(n)).collect();
    assert_eq!((spans.len(), traces.len()), (3000, 1000));
    assert_ne!(ids.trace_id(1), TraceIds::default().trace_id(1), "one key for each server");
}
