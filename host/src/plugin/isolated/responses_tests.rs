//! The host against a process that says what it likes: every caller is answered once, whatever comes.

use super::exit_reason::Why;
use super::messages::{Answer, Batch, Call, Failure, Output, Param, Response, param};
use super::process::Process;
use super::responses::Answers;
use super::wire::{Receiver, Sender, halves, pair};
use super::work_connection::Line;
use crate::arena::{Arena, Block, Reader};
use crate::error::{Code, Error};
use crate::request::testing::{RecordedResponses, request};
use crate::request::{DType, InferRequest};
use proptest::prelude::*;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// A process that has ended: nobody waits for its last breath.
static ENDED: LazyLock<Child> = LazyLock::new(|| {
    let child = Command::new("true").spawn().unwrap();
    Process::fake(&child).wait_for_end(None);
    child
});

/// A host with three requests under way, and the other end of its connection.
struct Rig {
    line: Arc<Line>,
    answers: Answers,
    process: Arc<Process>,
    told: Vec<RecordedResponses>,
    theirs: (Sender, Receiver),
    raw: UnixStream,
    outputs: Arc<Arena>,
    block: Block,
}

fn bare(key: u64, _: &InferRequest) -> Call {
    Call { key, ..Call::default() }
}

impl Rig {
    fn new() -> Self {
        Self::patient(None)
    }

    fn patient(limit: Option<Duration>) -> Self {
        let process = Process::fake(&ENDED);
        let (ours, theirs) = pair().unwrap();
        let (sender, receiver) = halves(ours);
        let outputs = Arena::new("test", 1 << 21).unwrap();
        let reader = Reader::new(&outputs.file().try_clone_to_owned().unwrap()).unwrap();
        let names = Arc::from(["O".to_owned(), "unwanted".to_owned()]);
        let answers = Answers::new(receiver, &reader, &names, limit).unwrap();
        let line = Line::new(sender, Arc::clone(&process), 0, None);
        let block = outputs.alloc(64, true).unwrap();
        let (raw, told) = (theirs.try_clone().unwrap(), Vec::new());
        let theirs = halves(theirs);
        let mut rig = Self { line, answers, process, told, theirs, raw, outputs, block };
        let mut requests: Vec<_> = (0..3).map(|_| rig.request()).collect();
        assert!(rig.line.send(&mut Batch::default(), &mut requests, bare).unwrap());
        rig
    }

    fn request(&mut self) -> InferRequest {
        let (request, _, told) = request("");
        request.responder.queued(1);
        self.told.push(told);
        request
    }

    /// An output as a sound process would give it, of two floats.
    fn output(&self) -> Output {
        // SAFETY: the block is the test's, and zeroed.
        let bytes = unsafe { std::slice::from_raw_parts(self.block.ptr().as_ptr(), 8) };
        let loan = self.outputs.lend(bytes).unwrap();
        let (index, dtype, shape) = (0, DType::Fp32.number(), vec![2]);
        Output { index, dtype, shape, offset: loan.offset, bytes: 8, slot: loan.slot }
    }

    /// Hears all that was said, then that the process is gone.
    fn hear(mut self) -> (Vec<RecordedResponses>, Option<Why>) {
        self.theirs.0.shut_down();
        self.answers.read(&self.line, false);
        self.line.close();
        self.line.fail(&Error::internal("gone"));
        (self.told, self.process.accused())
    }
}

fn good(key: u64, output: Output) -> Answer {
    let response = Some(Response { outputs: vec![output], params: Vec::new() });
    Answer { key, last: true, response, ..Answer::default() }
}

fn accused(why: Option<Why>) -> String {
    match why {
        Some(Why::Nonsense(what)) => what,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_no_sound_process_says_is_its_end() {
    let last = |key| Answer { key, last: true, ..Answer::default() };
    type Change = fn(&mut Answer);
    let cases: &[(Change, &str)] = &[
        (|a| a.key = 7, "answered request 7, which it does not have"),
        (|a| a.key = 0, "answered request 0"),
        (|a| (a.response, a.last) = (None, false), "answered nothing"),
        (|a| a.response.as_mut().unwrap().outputs[0].index = 9, "output number 9"),
        (|a| a.response.as_mut().unwrap().outputs[0].offset = 1, "memory that is none"),
        (|a| a.response.as_mut().unwrap().outputs[0].offset = u64::MAX, "memory that is none"),
        (|a| a.response.as_mut().unwrap().outputs[0].bytes = u64::MAX, "memory that is none"),
        (|a| a.response.as_mut().unwrap().outputs[0].slot = u32::MAX, "memory that is none"),
    ];
    for (change, what) in cases {
        let rig = Rig::new();
        let mut answer = good(1, rig.output());
        change(&mut answer);
        rig.theirs.0.send(&answer).unwrap();
        let (told, why) = rig.hear();
        assert!(accused(why).contains(what), "{what}");
        assert!(told.iter().all(|told| told.lock().len() == 1), "{what}");
    }
    let rig = Rig::new();
    for key in [1, 1] {
        rig.theirs.0.send(&last(key)).unwrap();
    }
    assert!(accused(rig.hear().1).contains("answered request 1, which"));
}

#[test]
fn a_wrong_output_is_its_callers_alone() {
    type Change = fn(&mut Output);
    let cases: &[(Change, &str)] = &[
        (|o| o.shape = vec![-2], "has shape [-2]"),
        (|o| o.shape = vec![i64::MAX, 4], "has shape"),
        (|o| o.shape = Vec::new(), "has shape []"),
        (|o| o.dtype = 77, "an unknown type"),
        (|o| o.bytes = 4, "with 4 bytes, 8 are right"),
        (|o| o.index = 1, "'unwanted'"),
    ];
    for (change, what) in cases {
        let rig = Rig::new();
        let mut output = rig.output();
        change(&mut output);
        rig.theirs.0.send(&good(2, output)).unwrap();
        rig.theirs.0.send(&good(3, rig.output())).unwrap();
        let (told, why) = rig.hear();
        assert_eq!(why, None);
        let text = told[1].lock()[0].0.as_ref().unwrap_err().message.clone();
        assert!(text.contains(what), "{what}: {text}");
        assert!(told[2].lock()[0].0.is_ok());
    }
}

/// A failure ends its call also if the process forgot to say so.
#[test]
fn a_failure_is_the_last() {
    let rig = Rig::new();
    let failure = Some(Failure { code: 1, text: "so".into() });
    for key in [1, 2, 3] {
        let answer = Answer { key, failure: failure.clone(), ..Answer::default() };
        rig.theirs.0.send(&answer).unwrap();
    }
    let mut rig = rig;
    // It ends because nothing is owed any more; the connection is still there.
    rig.answers.read(&rig.line, true);
    assert!(!rig.line.owes());
}

/// Though there is always something to read.
#[test]
fn an_answer_in_small_pieces_must_come_in_time() {
    let limit = Duration::from_millis(50);
    let mut rig = Rig::patient(Some(limit));
    let (mut raw, over) = (rig.raw.try_clone().unwrap(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            raw.write_all(&1_000_000u32.to_ne_bytes()).unwrap();
            while !over.load(Ordering::Relaxed) && raw.write_all(&[0]).is_ok() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        rig.answers.read(&rig.line, false);
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(rig.hear().1, Some(Why::Silent(limit)));
}

#[test]
fn more_than_a_message_takes_is_refused_and_nothing_is_sent() {
    let mut rig = Rig::new();
    let mut requests = vec![rig.request()];
    let long = |key, _: &InferRequest| Call { key, id: "x".repeat(65 << 20), ..Call::default() };
    let e = rig.line.send(&mut Batch::default(), &mut requests, long).unwrap_err();
    assert_eq!((e.code, requests.len()), (Code::InvalidArg, 1));
    // The connection is as good as before.
    assert!(rig.line.send(&mut Batch::default(), &mut requests, bare).unwrap());
    rig.theirs.0.send(&good(5, rig.output())).unwrap();
    let (told, why) = rig.hear();
    assert_eq!(why, None);
    assert!(told[3].lock()[0].0.is_ok());
}

static RIGHT: LazyLock<Output> = LazyLock::new(|| Rig::new().output());

/// A field as it should be, or anything.
fn or_any<T: Clone + std::fmt::Debug + 'static>(
    right: T,
    any: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<T> {
    prop_oneof![4 => Just(right), 1 => any].boxed()
}

fn output(right: &Output) -> impl Strategy<Value = Output> + use<> {
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
        .prop_map(|(index, dtype, shape, offset, bytes, slot)| Output {
            index,
            dtype,
            shape,
            offset,
            bytes,
            slot,
        })
}

fn answer(right: &Output) -> impl Strategy<Value = Answer> + use<> {
    let value = prop_oneof![
        any::<i64>().prop_map(param::Value::Int),
        any::<f64>().prop_map(param::Value::Double),
        any::<String>().prop_map(param::Value::String),
    ];
    let param =
        (any::<String>(), prop::option::of(value)).prop_map(|(key, value)| Param { key, value });
    let response = (prop::collection::vec(output(right), 0..3), prop::collection::vec(param, 0..2))
        .prop_map(|(outputs, params)| Response { outputs, params });
    let failure = (any::<u32>(), any::<String>()).prop_map(|(code, text)| Failure { code, text });
    (
        or_any(1, 0..6u64),
        any::<bool>(),
        prop::option::weighted(0.9, response),
        prop::option::weighted(0.1, failure),
        prop::collection::vec(any::<u64>(), 0..6),
    )
        .prop_map(|(key, last, response, failure, times)| Answer {
            key,
            last,
            response,
            failure,
            times,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_caller_is_answered_once(answers in prop::collection::vec(answer(&RIGHT), 0..12)) {
        let rig = Rig::new();
        // The first block of an arena is always in the same place.
        assert_eq!(rig.output(), *RIGHT);
        for answer in &answers {
            rig.theirs.0.send(answer).unwrap();
        }
        let (told, _) = rig.hear();
        for told in told {
            let told = told.lock();
            prop_assert_eq!(told.iter().filter(|(_, last)| *last).count(), 1);
            prop_assert!(told.last().unwrap().1);
            let responses = told.iter().filter_map(|(result, _)| result.as_ref().ok()?.as_ref());
            for output in responses.flat_map(|response| &response.outputs) {
                prop_assert_eq!((output.data.len(), output.shape.as_slice()), (8, &[2][..]));
            }
        }
    }

    #[test]
    fn bytes_that_are_no_messages_end_the_process(bytes in prop::collection::vec(any::<u8>(), 1..200)) {
        let rig = Rig::new();
        (&rig.raw).write_all(&bytes).unwrap();
        let (told, _) = rig.hear();
        prop_assert!(told.iter().all(|told| told.lock().iter().filter(|t| t.1).count() == 1));
    }
}
