//! The requests of one batch: their slots, in the order of the batch, and the views that backends see.

use super::slot::{Share, Slot};
use super::views::{Style, Views};
use crate::error::{Error, Result};
use crate::request::{CancelObserver, InferRequest, Signature};
use std::sync::{Arc, Weak};

/// See the module text. Used for one batch after another, so that steady work allocates nothing here.
#[derive(Default)]
pub struct BatchRequests {
    slots: Vec<&'static Slot>,
    /// Empty slots for the next batch.
    spare: Vec<&'static Slot>,
    pub views: Views,
}

impl BatchRequests {
    /// Takes the requests in. Each gets a `share` in what keeps this.
    pub fn fill(
        &mut self,
        requests: &mut Vec<InferRequest>,
        style: &Style<'_>,
        share: impl Fn() -> Share,
    ) {
        self.views.reserve(requests, style);
        for request in requests.drain(..) {
            let slot = self.spare.pop().unwrap_or_else(Slot::obtain);
            // The views point at tensors and texts on the heap, which stay where they are when the request moves.
            self.views.add(slot.handle(), &request, style);
            slot.put(request, share());
            self.slots.push(slot);
        }
    }

    /// Ends the batch: handles are stale from here on, but for those of replies that the backend retains.
    pub fn clear(&mut self) {
        let slots = self.slots.drain(..);
        self.spare.extend(slots.filter(|slot| slot.leave()));
        self.views.clear();
    }

    pub fn slots(&self) -> &[&'static Slot] {
        &self.slots
    }

    /// The signature of the batch's model.
    pub fn signature(&self) -> Result<Arc<Signature>> {
        let reply = self.slots.first().and_then(|slot| slot.reply());
        let reply = reply.ok_or_else(|| Error::invalid("an empty batch has no tensors"))?;
        Ok(Arc::clone(&reply.context.signature))
    }

    /// Has `observer` notified of cancellations from here on, by the tickets of the requests' handles. Earlier ones are
    /// seen in the cancel flag of the request.
    pub fn watch(&self, observer: &Weak<dyn CancelObserver>) {
        for (handle, reply) in self.slots.iter().filter_map(|slot| slot.answerable()) {
            reply.cancel_token.notify(Weak::clone(observer), handle.ticket());
        }
    }
}
