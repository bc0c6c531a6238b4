//! The requests of one batch: their slots, in the order of the batch, and the views that the
//! backend reads.

use super::slot::{FrameShare, RequestSlot};
use super::views::{ViewOptions, Views};
use std::sync::{Arc, Weak};
use trtserver_base::error::{Error, Result};
use trtserver_request::{CancelObserver, InferRequest, ModelSignature};

/// The slots of the requests of one batch, in batch order, and the views that the backend reads.
/// Reused for one batch after another, so that steady work does not allocate.
#[derive(Default)]
pub struct BatchRequests {
    slots: Vec<&'static RequestSlot>,
    /// Empty slots for the next batch.
    spare: Vec<&'static RequestSlot>,
    pub views: Views,
}

impl BatchRequests {
    /// Takes the requests; each gets a `share` in the frame.
    pub fn fill(
        &mut self,
        requests: &mut Vec<InferRequest>,
        options: &ViewOptions<'_>,
        share: impl Fn() -> FrameShare,
    ) {
        self.views.reserve(requests, options);
        for request in requests.drain(..) {
            let slot = self.spare.pop().unwrap_or_else(RequestSlot::obtain);
            // The views point at heap memory of the request, which does not move with it.
            self.views.add(slot.handle(), &request, options);
            slot.put(request, share(), options.gpu.cloned());
            self.slots.push(slot);
        }
    }

    /// Ends the batch: handles become stale, except those of responders that the backend retains.
    pub fn clear(&mut self) {
        let slots = self.slots.drain(..);
        self.spare.extend(slots.filter(|slot| slot.detach()));
        self.views.clear();
    }

    pub fn slots(&self) -> &[&'static RequestSlot] {
        &self.slots
    }

    /// The signature of the batch's model.
    pub fn signature(&self) -> Result<Arc<ModelSignature>> {
        let responder = self.slots.first().and_then(|slot| slot.responder());
        let responder = responder.ok_or_else(|| Error::invalid("an empty batch has no tensors"))?;
        Ok(Arc::clone(&responder.context.signature))
    }

    /// Has `observer` notified of cancellations, by the tickets of the handles. Earlier
    /// cancellations show in the cancel flag of the request.
    pub fn watch(&self, observer: &Weak<dyn CancelObserver>) {
        for (handle, responder) in self.slots.iter().filter_map(|slot| slot.handle_and_responder())
        {
            responder.cancel_token.notify(Weak::clone(observer), handle.ticket());
        }
    }
}
