//! Unit tests of `slot.rs`.

use super::*;
use crate::plugin::batch::frame::{FrameHold, release_request};
use crate::plugin::batch::views::{Style, TensorNames};
use crate::request::testing::{RecordedResponses, request, signature};
use crate::stats::{Execution, OutstandingExecutions};
use trtserver_plugin_api::abi::types::Responder as Raw;

/// A frame with one request, its handle, and what the caller was told.
fn filled(hold: &mut FrameHold) -> (Handle, RecordedResponses) {
    let (request, _, told) = request("r");
    let signature = signature(&[2], 0);
    let names = Arc::new(TensorNames::new(&signature));
    let in_flight = Arc::new(OutstandingExecutions::default());
    let execution = Arc::new(Execution::new(0, 1, 1, 0, &in_flight));
    let style = Style { signature: &signature, names: &names, align: 0 };
    hold.fill(1, &mut vec![request], &style, &execution);
    // SAFETY: the batch lives as long as the hold; its handle was just made.
    let raw: *mut Raw = hold.enter(|batch| unsafe { (**(*batch).requests).responder });
    // SAFETY: as above.
    (unsafe { Handle::of(raw) }.unwrap(), told)
}

fn says<T>(result: Result<T>) -> String {
    result.err().map_or_else(String::new, |e| e.message)
}

#[test]
fn a_plugin_sees_all_rows_counted_or_not() {
    let mut hold = FrameHold::new();
    let signature = signature(&[2], 0);
    let names = Arc::new(TensorNames::new(&signature));
    let execution = Arc::new(Execution::new(0, 2, 0, 0, &Arc::default()));
    let style = Style { signature: &signature, names: &names, align: 0 };
    hold.fill(1, &mut vec![request("a").0, request("b").0], &style, &execution);
    // SAFETY: the batch lives as long as the hold.
    assert_eq!(hold.enter(|batch| unsafe { (*batch).rows }), 2);
    hold.frame().fail(&Error::internal("over"));
    hold.recycle();
}

#[test]
fn doing_it_twice_is_an_error() {
    let mut hold = FrameHold::new();
    let (handle, _) = filled(&mut hold);
    assert!(says(handle.release_reply()).contains("more often"));
    handle.begin().unwrap();
    assert!(says(handle.begin()).contains("before the previous one"));
    handle.take_response().unwrap().send(true, Some(Error::internal("x"))).unwrap();
    assert!(says(handle.take_response()).contains("after it had been sent"));
    assert!(says(handle.begin()).contains("had ended"));
    release_request(handle).unwrap();
    assert!(says(release_request(handle)).contains("twice"));
    hold.recycle();
    for late in [release_request(handle), handle.retain(), handle.begin()] {
        assert!(says(late).contains("after it had been released"));
    }
    // The same place, and another call in it.
    let (next, _) = filled(&mut hold);
    assert!(std::ptr::eq(next.slot, handle.slot));
    assert!(release_request(handle).is_err());
    assert!(release_request(next).is_ok());
    hold.recycle();
}

#[test]
fn a_kept_reply_outlives_frame_and_request() {
    let mut hold = FrameHold::new();
    let (handle, told) = filled(&mut hold);
    handle.retain().unwrap();
    assert_eq!(hold.frame().settle(&|_| Error::internal("omitted")), 0);
    hold.recycle();
    release_request(handle).unwrap();
    drop(hold);
    handle.begin().unwrap();
    handle.reply().unwrap().finish(Err(Error::internal("late"))).unwrap();
    handle.release_reply().unwrap();
    assert!(handle.reply().is_err());
    assert_eq!(told.lock()[0].0.as_ref().unwrap_err().message, "late");
}

#[test]
fn a_reply_that_is_let_go_unanswered_ends_with_an_error() {
    let mut hold = FrameHold::new();
    let (handle, told) = filled(&mut hold);
    handle.retain().unwrap();
    release_request(handle).unwrap();
    hold.recycle();
    assert!(told.lock().is_empty());
    handle.release_reply().unwrap();
    assert!(told.lock()[0].0.is_err());
}
