//! The host against a child that sends arbitrary bytes: every request gets one final response.

use super::messages::{
    BatchPart, ExecuteBatch, FailureMessage, OutputMessage, ParamMessage, RequestMessage,
    ResponseData, ResponseMessage, param,
};
use super::testing::{KillReason, WorkRig, without_inputs};
use super::wire::ReceiveOutcome;
use super::work_channel::{MESSAGE, ON_SOCKET};
use super::work_connection::SendOutcome;
use proptest::prelude::*;
use std::io::Write;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use trtserver_base::error::Code;
use trtserver_request::testing::{RecordedResponses, request};
use trtserver_request::{DType, InferRequest};

/// A host with three outstanding requests.
struct Fixture {
    rig: WorkRig,
    recorded: Vec<RecordedResponses>,
}

impl Fixture {
    fn new() -> Self {
        Self::with_deadline(None)
    }

    fn with_deadline(limit: Option<Duration>) -> Self {
        let mut recorded = Vec::new();
        let requests = (0..3).map(|_| outstanding(&mut recorded)).collect();
        Self { rig: WorkRig::new(&["O", "unrequested"], requests, limit), recorded }
    }

    /// A valid output of two floats.
    fn output(&self) -> OutputMessage {
        let shared = self.rig.share(8);
        let (index, dtype, shape) = (0, DType::Fp32.number(), vec![2]);
        let (offset, slot) = (shared.offset, shared.slot);
        OutputMessage { index, dtype, shape, offset, bytes: 8, slot, in_destination: false }
    }

    /// Reads everything that was sent, then the end of the connection.
    fn finish(self) -> (Vec<RecordedResponses>, Option<KillReason>) {
        (self.recorded, self.rig.finish())
    }
}

fn outstanding(recorded: &mut Vec<RecordedResponses>) -> InferRequest {
    let (request, _, responses) = request("");
    request.responder.queued(1);
    recorded.push(responses);
    request
}

fn valid(key: u64, output: OutputMessage) -> ResponseMessage {
    let data = Some(ResponseData { outputs: vec![output], params: Vec::new() });
    ResponseMessage { key, last: true, data, ..ResponseMessage::default() }
}

fn violation(reason: Option<KillReason>) -> String {
    match reason {
        Some(KillReason::ProtocolViolation(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn protocol_violations_kill_the_child() {
    let last = |key| ResponseMessage { key, last: true, ..ResponseMessage::default() };
    type Change = fn(&mut ResponseMessage);
    let cases: &[(Change, &str)] = &[
        (|a| a.key = 7, "responded to request 7, which is not outstanding"),
        (|a| a.key = 0, "responded to request 0"),
        (|a| (a.data, a.last) = (None, false), "empty response"),
        (|a| a.data.as_mut().unwrap().outputs[0].index = 9, "output number 9"),
        (|a| a.data.as_mut().unwrap().outputs[0].offset = 1, "invalid memory range"),
        (|a| a.data.as_mut().unwrap().outputs[0].offset = u64::MAX, "invalid memory range"),
        (|a| a.data.as_mut().unwrap().outputs[0].bytes = u64::MAX, "invalid memory range"),
        (|a| a.data.as_mut().unwrap().outputs[0].slot = u32::MAX, "invalid memory range"),
    ];
    for (change, what) in cases {
        let fixture = Fixture::new();
        let mut response = valid(1, fixture.output());
        change(&mut response);
        fixture.rig.child_end.0.send(&response).unwrap();
        let (recorded, why) = fixture.finish();
        assert!(violation(why).contains(what), "{what}");
        assert!(recorded.iter().all(|responses| responses.lock().len() == 1), "{what}");
    }
    let fixture = Fixture::new();
    for key in [1, 1] {
        fixture.rig.child_end.0.send(&last(key)).unwrap();
    }
    assert!(violation(fixture.finish().1).contains("responded to request 1, which"));
}

#[test]
fn invalid_output_fails_only_its_request() {
    type Change = fn(&mut OutputMessage);
    let cases: &[(Change, &str)] = &[
        (|o| o.shape = vec![-2], "has shape [-2]"),
        (|o| o.shape = vec![i64::MAX, 4], "has shape"),
        (|o| o.shape = Vec::new(), "has shape []"),
        (|o| o.dtype = 77, "an unknown type"),
        (|o| o.bytes = 4, "with 4 bytes, expected 8"),
        (|o| o.index = 1, "'unrequested'"),
    ];
    for (change, what) in cases {
        let fixture = Fixture::new();
        let mut output = fixture.output();
        change(&mut output);
        fixture.rig.child_end.0.send(&valid(2, output)).unwrap();
        fixture.rig.child_end.0.send(&valid(3, fixture.output())).unwrap();
        let (recorded, why) = fixture.finish();
        assert_eq!(why, None);
        let text = recorded[1].lock()[0].0.as_ref().unwrap_err().message.clone();
        assert!(text.contains(what), "{what}: {text}");
        assert!(recorded[2].lock()[0].0.is_ok());
    }
}

#[test]
fn failure_is_final_without_the_last_flag() {
    let fixture = Fixture::new();
    let failure = Some(FailureMessage { code: 1, text: "so".into(), ..FailureMessage::default() });
    for key in [1, 2, 3] {
        let response =
            ResponseMessage { key, failure: failure.clone(), ..ResponseMessage::default() };
        fixture.rig.child_end.0.send(&response).unwrap();
    }
    let fixture = fixture;
    // Returns because nothing is outstanding; the connection is still open.
    fixture.rig.connection.poll(true);
    assert!(fixture.rig.connection.outstanding.is_empty());
}

#[test]
fn poll_that_another_follows_delivers_what_is_there() {
    let fixture = Fixture::new();
    let (rig, recorded) = (&fixture.rig, &fixture.recorded);
    rig.child_end.0.send(&valid(1, fixture.output())).unwrap();
    rig.connection.poll(false);
    assert_eq!(recorded.iter().map(|r| r.lock().len()).collect::<Vec<_>>(), [1, 0, 0]);
    for key in [2, 3] {
        rig.child_end.0.send(&valid(key, fixture.output())).unwrap();
    }
    rig.connection.poll(true);
    assert!(rig.connection.outstanding.is_empty());
}

#[test]
fn response_in_small_pieces_must_meet_the_deadline() {
    let limit = Duration::from_millis(50);
    let mut fixture = Fixture::with_deadline(Some(limit));
    fixture.rig.push(ON_SOCKET, &[]);
    let (mut raw, over) = (fixture.rig.raw.try_clone().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            raw.write_all(&1_000_000u32.to_ne_bytes()).unwrap();
            while !over.load(Ordering::Relaxed) && raw.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        fixture.rig.connection.read(&mut fixture.rig.reader);
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.finish().1, Some(KillReason::ResponseTimeout(limit)));
}

/// A child that only wakes the host does not extend its deadline.
#[test]
fn wake_ups_without_responses_do_not_extend_the_deadline() {
    let limit = Duration::from_millis(50);
    let mut fixture = Fixture::with_deadline(Some(limit));
    let (mut raw, over) = (fixture.rig.raw.try_clone().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) && raw.write_all(&[0; 4]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        fixture.rig.connection.read(&mut fixture.rig.reader);
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(fixture.finish().1, Some(KillReason::ResponseTimeout(limit)));
}

#[test]
fn records_and_messages_on_the_socket_must_agree() {
    let mut unknown = Fixture::new();
    unknown.rig.push(7, b"");
    assert!(violation(unknown.finish().1).contains("unknown kind 7"));
    let unannounced = Fixture::new();
    (&unannounced.rig.raw).write_all(&1u32.to_ne_bytes()).unwrap();
    assert!(violation(unannounced.finish().1).contains("without its record"));
}

/// A response that is too long for the ring comes over the socket, in order.
#[test]
fn long_response_keeps_its_place() {
    let fixture = Fixture::new();
    let text = "x".repeat(100_000);
    let failure = Some(FailureMessage { code: 1, text, ..FailureMessage::default() });
    let (sender, output) = (&fixture.rig.child_end.0, fixture.output());
    sender.send(&valid(1, output)).unwrap();
    std::thread::scope(|scope| {
        let (rig, sent) =
            (&fixture.rig, ResponseMessage { key: 2, failure, ..ResponseMessage::default() });
        scope.spawn(move || rig.child_end.0.send(&sent).unwrap());
    });
    fixture.rig.child_end.0.send(&valid(3, fixture.output())).unwrap();
    let (recorded, why) = fixture.finish();
    assert_eq!(why, None);
    assert!(recorded[0].lock()[0].0.is_ok() && recorded[2].lock()[0].0.is_ok());
    assert_eq!(recorded[1].lock()[0].0.as_ref().unwrap_err().message.len(), 100_000);
}

/// The host gets back what a child has not taken when it ends.
#[test]
fn untaken_batches_are_returned() {
    let mut fixture = Fixture::new();
    let mut batch = ExecuteBatch { id: 9, ..ExecuteBatch::default() };
    for _ in 0..2 {
        let mut requests = vec![outstanding(&mut fixture.recorded)];
        let connection = &fixture.rig.connection;
        let sent = connection.send(&mut batch, &mut requests, None, true, without_inputs, |_| ());
        assert_eq!(sent.unwrap(), SendOutcome::Delivered);
        batch.id += 1;
    }
    // It takes the batch of the fixture, and the next.
    for _ in 0..2 {
        let taken = fixture.rig.child_end.1.receive::<ExecuteBatch>().unwrap();
        assert!(matches!(taken, ReceiveOutcome::Message(_)));
    }
    let untaken = fixture.rig.connection.untaken();
    let found: Vec<_> = untaken.iter().map(|(id, requests)| (*id, requests.len())).collect();
    assert_eq!(found, [(10, 1)]);
    drop(fixture.finish());
}

#[test]
fn oversized_batch_is_refused_and_not_sent() {
    let mut fixture = Fixture::new();
    let mut requests = vec![outstanding(&mut fixture.recorded)];
    let long = |key, _: &InferRequest| RequestMessage {
        key,
        id: "x".repeat(65 << 20),
        ..RequestMessage::default()
    };
    let batch = &mut ExecuteBatch::default();
    let connection = &fixture.rig.connection;
    let mut unshared = false;
    let unshare = |_: &_| unshared = true;
    let sent = connection.send(batch, &mut requests, None, true, long, unshare);
    assert_eq!((sent.unwrap_err().code, requests.len(), unshared), (Code::InvalidArg, 1, true));
    // Nor does a thread send it that must not wait for the child.
    let long = |key, _: &InferRequest| RequestMessage {
        key,
        id: "x".repeat(10_000),
        ..RequestMessage::default()
    };
    let sent = connection.send(batch, &mut requests, None, false, long, |_| ());
    assert_eq!((sent.unwrap(), requests.len()), (SendOutcome::WouldWait, 1));
    // The connection is still usable.
    let sent = connection.send(batch, &mut requests, None, false, without_inputs, |_| ());
    assert_eq!(sent.unwrap(), SendOutcome::Delivered);
    fixture.rig.child_end.0.send(&valid(6, fixture.output())).unwrap();
    let (recorded, why) = fixture.finish();
    assert_eq!(why, None);
    assert!(recorded[3].lock()[0].0.is_ok());
}

static VALID: LazyLock<OutputMessage> = LazyLock::new(|| Fixture::new().output());

/// A valid field, or any value.
fn or_any<T: Clone + std::fmt::Debug + 'static>(
    right: T,
    any: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![4 => Just(right), 1 => any].boxed()
}

fn output(right: &OutputMessage) -> impl Strategy<Value = OutputMessage> + use<> {
    let right = right.clone();
    let near = right.offset..right.offset + 4096;
    (
        or_any(right.index, any::<u32>()),
        or_any(right.dtype, any::<u32>()),
        or_any(right.shape, prop::collection::vec(any::<i64>(), 0..4)),
        or_any(right.offset, prop_oneof![any::<u64>(), near]),
        or_any(right.bytes, prop_oneof![any::<u64>(), 0..100u64]),
        or_any(right.slot, prop_oneof![any::<u32>(), 0..5u32]),
    )
        .prop_map(|(index, dtype, shape, offset, bytes, slot)| OutputMessage {
            index,
            dtype,
            shape,
            offset,
            bytes,
            slot,
            in_destination: false,
        })
}

fn response(right: &OutputMessage) -> impl Strategy<Value = ResponseMessage> + use<> {
    let value = prop_oneof![
        any::<i64>().prop_map(param::ParamValue::Int),
        any::<f64>().prop_map(param::ParamValue::Double),
        any::<String>().prop_map(param::ParamValue::String),
    ];
    let param = (any::<String>(), prop::option::of(value))
        .prop_map(|(key, value)| ParamMessage { key, value });
    let response = (prop::collection::vec(output(right), 0..3), prop::collection::vec(param, 0..2))
        .prop_map(|(outputs, params)| ResponseData { outputs, params });
    let failure = (any::<u32>(), any::<String>(), any::<bool>())
        .prop_map(|(code, text, model_broken)| FailureMessage { code, text, model_broken });
    let part = (any::<u32>(), any::<u32>(), any::<u64>())
        .prop_map(|(first, rows, start_ns)| BatchPart { first, rows, start_ns });
    (
        or_any(1, 0..6u64),
        any::<bool>(),
        prop::option::weighted(0.9, response),
        prop::option::weighted(0.1, failure),
        prop::collection::vec(any::<u64>(), 0..6),
        prop::option::weighted(0.3, part),
    )
        .prop_map(|(key, last, data, failure, times, part)| ResponseMessage {
            key,
            last,
            data,
            failure,
            times,
            execution_ns: 1,
            part,
            activities: Vec::new(),
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_request_gets_one_final_response(responses in prop::collection::vec(response(&VALID), 0..12)) {
        let fixture = Fixture::new();
        // The first block of an arena is always at the same offset.
        assert_eq!(fixture.output(), *VALID);
        for response in &responses {
            fixture.rig.child_end.0.send(response).unwrap();
        }
        let (recorded, _) = fixture.finish();
        for responses in recorded {
            let responses = responses.lock();
            prop_assert_eq!(responses.iter().filter(|(_, last)| *last).count(), 1);
            prop_assert!(responses.last().unwrap().1);
            let sent = responses.iter().filter_map(|(result, _)| result.as_ref().ok()?.as_ref());
            for output in sent.flat_map(|response| &response.outputs) {
                prop_assert_eq!((output.data.len(), output.shape.as_slice()), (8, &[2][..]));
            }
        }
    }

    #[test]
    fn malformed_bytes_kill_the_child(
        kind in or_any(MESSAGE, 0..4u32),
        bytes in prop::collection::vec(any::<u8>(), 1..200),
    ) {
        let mut fixture = Fixture::new();
        fixture.rig.push(kind, &bytes);
        (&fixture.rig.raw).write_all(&bytes).unwrap();
        let (recorded, _) = fixture.finish();
        prop_assert!(recorded.iter().all(|responses| responses.lock().iter().filter(|t| t.1).count() == 1));
    }
}
