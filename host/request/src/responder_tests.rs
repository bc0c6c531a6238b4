//! Unit tests of `responder.rs` and `response_channel.rs`.

use super::*;
use crate::ResponseSink;
use crate::memory::MemoryLocation;
use crate::testing::{TestMemory, aligned_slice, request, request_with, signature};
use crate::{DType, InputTensor, UsedMemory};
use parking_lot::Mutex;
use std::sync::Weak;

#[test]
fn request_finishes_once() {
    let (request, stats, responses) = request("");
    assert!(request.responder.finish(Err(Error::internal("first"))).is_ok());
    assert!(request.responder.finish(Ok(None)).is_err());
    assert!(request.responder.send(InferResponse::default()).is_err());
    drop(request);
    let responses = responses.lock();
    assert_eq!(responses.len(), 1);
    assert_eq!(responses[0].0.as_ref().unwrap_err().message, "first");
    assert_eq!(stats.snapshot().total().failed.count, 1);
}

#[test]
fn dropped_request_gets_error_response() {
    let (request, _, responses) = request("");
    drop(request);
    let responses = responses.lock();
    assert_eq!(responses[0].0.as_ref().unwrap_err().code, Code::Internal);
    assert!(responses[0].1);
}

/// Calls the responder from within `send`, and panics in the first call if set to. Records `last`
/// of each response.
struct ReentrantSink(Weak<Responder>, Arc<Mutex<Vec<bool>>>, bool);

impl ResponseSink for ReentrantSink {
    fn send(&mut self, _: Result<Option<InferResponse>>, last: bool) {
        let responder = self.0.upgrade().unwrap();
        responder.cancel_token.cancel();
        if !last && self.1.lock().is_empty() {
            responder.send(InferResponse::default()).unwrap();
            responder.send(InferResponse::default()).unwrap();
        }
        self.1.lock().push(last);
        assert!(!std::mem::take(&mut self.2), "panics as set");
    }
}

#[test]
fn sink_is_called_without_lock_and_survives_panic() {
    for panics in [false, true] {
        let (request, _, _) = request("");
        let (responder, responses) = (&request.responder, Arc::new(Mutex::new(Vec::new())));
        responder.wrap_sink(|_| {
            ReentrantSink(Arc::downgrade(responder), Arc::clone(&responses), panics).into()
        });
        let send = || responder.send(InferResponse::default());
        let sent = std::panic::catch_unwind(std::panic::AssertUnwindSafe(send));
        assert_eq!(sent.is_err(), panics);
        responder.finish(Ok(None)).unwrap();
        assert!(send().is_err() && responder.is_finished());
        assert_eq!(*responses.lock(), [false, false, false, true]);
    }
}

#[test]
fn stream_ends_with_final_response() {
    let (request, _, responses) = request("");
    request.responder.send(InferResponse::default()).unwrap();
    request.responder.finish(Ok(None)).unwrap();
    let last: Vec<bool> = responses.lock().iter().map(|(_, last)| *last).collect();
    assert_eq!(last, [false, true]);
}

#[test]
fn fault_of_placed_memory_replaces_responses() {
    for (fails, last) in [(false, true), (true, true), (true, false)] {
        let owner = TestMemory::new(&[0; 128]);
        let memory = owner.place(MemoryLocation::CPU, true);
        let data = aligned_slice(&memory, 0, 8).into();
        let input = InputTensor { index: 0, dtype: DType::Fp32, shape: [2][..].into(), data };
        let (ordinary, stats, _) = request("");
        let context = crate::RequestContext {
            signature: signature(&[2], 0),
            stats: Some(Arc::clone(&stats)),
            received_ns: now_ns(),
            batch: 1,
            outputs: ordinary.context().outputs.clone(),
            stream: None,
            waits: false,
            wording: crate::context::ErrorWording::default(),
            used_memory: UsedMemory::from_tensors(std::slice::from_ref(&input), &[]),
        };
        assert!(UsedMemory::from_tensors(&ordinary.inputs, &ordinary.context().outputs).is_none());
        let (request, responses) = request_with(context, "", [input]);
        if fails {
            owner.fail("region 'r' was truncated");
        }
        if last {
            request.responder.finish(Ok(Some(InferResponse::default()))).unwrap();
        } else {
            assert!(request.responder.send(InferResponse::default()).is_err());
        }
        let responses = responses.lock();
        let texts: Vec<_> = responses
            .iter()
            .map(|(r, last)| (r.as_ref().err().map(|e| e.message.as_str()), *last))
            .collect();
        assert_eq!(texts, [(fails.then_some("region 'r' was truncated"), true)]);
        assert_eq!(stats.snapshot().total().failed.count, u64::from(fails));
    }
}

/// One is allocated for each request.
#[test]
fn responder_is_four_cache_lines() {
    assert_eq!(size_of::<Responder>(), 256);
}
