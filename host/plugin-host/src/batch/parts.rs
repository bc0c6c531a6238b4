//! Parts of a batch: a backend that executes fewer requests at once than the batch has.

use super::frame::Frame;
use super::timing;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::request::Batch;

/// The backend executes `n` requests from position `first` on as a part of `batch`, whose frame
/// this is.
///
/// # Errors
/// There are no such requests, one is in another part or was released, or this thread does not
/// execute the batch.
pub fn begin_part(frame: &Frame, batch: *const Batch, first: u32, n: u32) -> Result<()> {
    let slots = frame.requests.slots();
    let invalid = |what: &str| {
        let total = slots.len();
        Error::invalid(format!(
            "a part of {n} requests from position {first} of a batch of {total}: {what}"
        ))
    };
    let end = (first as usize).saturating_add(n as usize);
    let part = slots.get(first as usize..end).filter(|part| !part.is_empty());
    let part = part.ok_or_else(|| invalid("there are no such requests"))?;
    let responders: Option<Vec<_>> = part.iter().map(|slot| slot.responder()).collect();
    let responders = responders.ok_or_else(|| invalid("one was released"))?;
    if responders.iter().any(|responder| responder.is_in_part()) {
        return Err(invalid("one is in another part"));
    }
    let execution = frame.execution().ok_or_else(|| invalid("it is not executed"))?;
    let rows = responders.iter().map(|responder| responder.context.batch).sum();
    let part = execution.part(first, rows, now_ns());
    if !timing::begin_part(batch, &part) {
        return Err(invalid("this thread does not execute the batch"));
    }
    for responder in responders {
        responder.executed_in_part(first, &part);
    }
    Ok(())
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
