//! Unit tests of `slot.rs`.

use super::*;
use crate::batch::frame::{FrameHold, release_request};
use crate::batch::views::{TensorNames, ViewOptions};
use trtserver_base::stats::{BatchExecution, OutstandingExecutions};
use trtserver_plugin_api::abi::types::Responder as Raw;
use trtserver_request::testing::{RecordedResponses, request, signature};

/// Fills a frame with one request; returns its handle and recorded responses.
fn filled(hold: &mut FrameHold) -> (ExecutingHandle, RecordedResponses) {
    let (request, _, responses) = request("r");
    let signature = signature(&[2], 0);
    let names = Arc::new(TensorNames::new(&signature));
    let in_flight = Arc::new(OutstandingExecutions::default());
    let execution = Arc::new(BatchExecution::new(0, 1, 1, 0, &in_flight));
    let options = ViewOptions { signature: &signature, names: &names, gpu: None };
    hold.fill(1, &mut vec![request], &options, &execution);
    // SAFETY: the batch lives as long as the hold; its handle was just made.
    let raw: *mut Raw = hold.enter(|batch| unsafe { (**(*batch).requests).responder });
    // SAFETY: the responder's handle was just made, and its slot is never freed.
    (unsafe { ExecutingHandle::from_raw(raw) }.unwrap(), responses)
}

fn error_text<T>(result: Result<T>) -> String {
    result.err().map_or_else(String::new, |e| e.message)
}

#[test]
fn batch_rows_include_uncounted_requests() {
    let mut hold = FrameHold::new();
    let signature = signature(&[2], 0);
    let names = Arc::new(TensorNames::new(&signature));
    let execution = Arc::new(BatchExecution::new(0, 2, 0, 0, &Arc::default()));
    let options = ViewOptions { signature: &signature, names: &names, gpu: None };
    hold.fill(1, &mut vec![request("a").0, request("b").0], &options, &execution);
    // SAFETY: the batch lives as long as the hold.
    assert_eq!(hold.enter(|batch| unsafe { (*batch).rows }), 2);
    hold.frame().fail(&Error::internal("over"));
    hold.recycle();
}

#[test]
fn double_release_and_stale_handles_are_errors() {
    let mut hold = FrameHold::new();
    let (handle, _) = filled(&mut hold);
    assert!(error_text(handle.release_responder()).contains("more often"));
    handle.begin_response().unwrap();
    assert!(error_text(handle.begin_response()).contains("before the previous one"));
    handle.take_response().unwrap().send(true, Some(Error::internal("x"))).unwrap();
    assert!(error_text(handle.take_response()).contains("after it had been sent"));
    assert!(error_text(handle.begin_response()).contains("had ended"));
    release_request(handle, None).unwrap();
    assert!(error_text(release_request(handle, None)).contains("twice"));
    hold.recycle();
    for late in [release_request(handle, None), handle.retain(), handle.begin_response()] {
        assert!(error_text(late).contains("after it had been released"));
    }
    // The same slot in the next generation.
    let (next, _) = filled(&mut hold);
    assert!(std::ptr::eq(next.slot, handle.slot));
    assert!(release_request(handle, None).is_err());
    assert!(release_request(next, None).is_ok());
    hold.recycle();
}

#[test]
fn retained_responder_outlives_frame_and_request() {
    let mut hold = FrameHold::new();
    let (handle, responses) = filled(&mut hold);
    handle.retain().unwrap();
    assert_eq!(hold.frame().fail_unanswered(&|_| Error::internal("omitted")), 0);
    hold.recycle();
    release_request(handle, None).unwrap();
    drop(hold);
    handle.begin_response().unwrap();
    handle.responder().unwrap().finish(Err(Error::internal("late"))).unwrap();
    handle.release_responder().unwrap();
    assert!(handle.responder().is_err());
    assert_eq!(responses.lock()[0].0.as_ref().unwrap_err().message, "late");
}

#[test]
fn retained_responder_released_unfinished_ends_with_an_error() {
    let mut hold = FrameHold::new();
    let (handle, responses) = filled(&mut hold);
    handle.retain().unwrap();
    release_request(handle, None).unwrap();
    hold.recycle();
    assert!(responses.lock().is_empty());
    handle.release_responder().unwrap();
    assert!(responses.lock()[0].0.is_err());
}
