//! The state behind the handles of a request that backends hold: the request, its responder, the
//! response being built.
//!
//! A handle is the address of a slot and, in the bits that are zero because of its alignment, the
//! slot's generation. Slots are never freed, and each use of a slot is a new generation. So a
//! backend that uses a stale handle gets an error (unless the generation has wrapped around, one
//! chance in [`GENERATIONS`]), where a plain pointer would be undefined behaviour.

use super::gpu::GpuInstance;
use super::outputs::ResponseBuilder;
use crate::host_state::HOST;
use parking_lot::{Mutex, MutexGuard};
use std::ptr::NonNull;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::{InferRequest, Responder, TensorData};

/// Number of generations that handles distinguish; also the alignment of a slot.
const GENERATIONS: usize = 512;

/// The request, responder and response behind a handle. The alignment leaves nine address bits for
/// the generation.
#[repr(align(512))]
pub struct RequestSlot {
    state: Mutex<SlotState>,
}

#[derive(Default)]
struct SlotState {
    generation: usize,
    /// The request, whose tensors the views point at, and its share in the frame; until the backend
    /// releases it.
    request: Option<ReleasedRequest>,
    /// Responder of the request; `None` once the generation has ended.
    responder: Option<Arc<Responder>>,
    /// Calls of `responder_detach` minus calls of `responder_release`.
    retained: u32,
    response: BuilderState,
    /// Memory for the next builder.
    spare: Option<Box<BuilderCell>>,
    /// The GPU of the instance.
    gpu: Option<Arc<GpuInstance>>,
    /// What was sent and waits for the device.
    deferred: DeferredResponses,
    /// The frame was cleared: the generation ends when the backend releases the responder.
    detached: bool,
}

/// Responses that wait for the device: later ones of the same request wait behind them.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum DeferredResponses {
    #[default]
    None,
    Some,
    /// The final one is among them: the request is as good as finished.
    Final,
}

/// Memory of a builder, reused for one response after another.
type BuilderCell = Option<ResponseBuilder>;

/// The response being built; one at a time per request.
#[derive(Default)]
enum BuilderState {
    #[default]
    None,
    /// A host function uses the response.
    InUse,
    Ready(Box<BuilderCell>),
}

/// What an operation on the whole batch may do for a request.
pub enum BatchStatus {
    /// Nothing: it was finished, released or retained.
    Done,
    /// Nothing: a response to it is being built.
    Responding,
    Open(Arc<Responder>),
}

/// A request's share in the frame that keeps its views; opaque here, `frame` creates and releases
/// shares.
pub struct FrameShare(NonNull<()>);

// SAFETY: the frame lives until its last share is released, which may happen on any thread.
unsafe impl Send for FrameShare {}

impl FrameShare {
    pub fn new(owner: NonNull<()>) -> Self {
        Self(owner)
    }

    pub fn owner_ref(&self) -> NonNull<()> {
        self.0
    }

    pub fn owner(self) -> NonNull<()> {
        self.0
    }
}

/// A request taken out of its slot. It must be dropped before its share is released.
#[must_use]
pub struct ReleasedRequest {
    pub request: InferRequest,
    pub share: FrameShare,
}

/// The slots of this process.
pub(crate) struct Slots {
    unused: Mutex<Vec<&'static RequestSlot>>,
    all: Mutex<Vec<&'static RequestSlot>>,
}

impl Slots {
    pub const fn new() -> Self {
        Self { unused: Mutex::new(Vec::new()), all: Mutex::new(Vec::new()) }
    }
}

/// Calls `visit` with each request that a backend of this process has and has not released.
pub fn visit_executing(mut visit: impl FnMut(&InferRequest)) {
    // Without the lock of the list, which instances take for their first batches.
    let slots = HOST.slots.all.lock().clone();
    for slot in slots {
        if let Some(released) = &slot.lock().request {
            visit(&released.request);
        }
    }
}

impl RequestSlot {
    /// Takes an unused slot or creates one.
    pub fn obtain() -> &'static RequestSlot {
        let idle = HOST.slots.unused.lock().pop();
        idle.unwrap_or_else(|| {
            let slot: &'static Self = Box::leak(Box::new(RequestSlot { state: Mutex::default() }));
            HOST.slots.all.lock().push(slot);
            slot
        })
    }

    /// Puts a request in, with its share in the frame.
    pub fn put(
        &'static self,
        request: InferRequest,
        share: FrameShare,
        gpu: Option<Arc<GpuInstance>>,
    ) {
        let mut state = self.lock();
        (state.gpu, state.deferred) = (gpu, DeferredResponses::None);
        state.responder = Some(Arc::clone(&request.responder));
        state.request = Some(ReleasedRequest { request, share });
        state.detached = false;
    }

    /// The handle of the current generation.
    pub fn handle(&'static self) -> ExecutingHandle {
        ExecutingHandle { slot: self, generation: self.lock().generation }
    }

    /// The responder, unless the backend retains it.
    pub fn unretained(&self) -> Option<Arc<Responder>> {
        let state = self.lock();
        if state.retained == 0 { state.responder.clone() } else { None }
    }

    pub fn responder(&self) -> Option<Arc<Responder>> {
        self.lock().responder.clone()
    }

    /// The data of the input at this position; `None` after the release.
    pub fn input(&self, at: usize) -> Option<TensorData> {
        Some(self.lock().request.as_ref()?.request.inputs.get(at)?.data.clone())
    }

    /// The current handle and the responder, while the generation lasts.
    pub fn handle_and_responder(&'static self) -> Option<(ExecutingHandle, Arc<Responder>)> {
        let state = self.lock();
        let responder = state.responder.clone()?;
        Some((ExecutingHandle { slot: self, generation: state.generation }, responder))
    }

    pub fn deferred(&self) -> DeferredResponses {
        self.lock().deferred
    }

    /// Marks the request as one whose final response waits for the device.
    pub fn defer_final(&self) {
        self.lock().deferred = DeferredResponses::Final;
    }

    /// See [`BatchStatus`].
    pub fn batch_status(&self) -> BatchStatus {
        let state = self.lock();
        match &state.responder {
            Some(responder)
                if state.request.is_some()
                    && state.retained == 0
                    && !responder.is_finished()
                    && state.deferred != DeferredResponses::Final =>
            {
                match state.response {
                    BuilderState::None => BatchStatus::Open(Arc::clone(responder)),
                    BuilderState::InUse | BuilderState::Ready(_) => BatchStatus::Responding,
                }
            }
            _ => BatchStatus::Done,
        }
    }

    /// Takes the request out; `None` if it was released before.
    pub fn take_request(&self) -> Option<ReleasedRequest> {
        self.lock().request.take()
    }

    /// Detaches the slot from its frame. True: it is empty and can be reused at once. False: the
    /// backend retains the responder, and its release returns the slot.
    pub fn detach(&'static self) -> bool {
        let mut state = self.lock();
        if state.retained > 0 {
            state.detached = true;
            return false;
        }
        end_generation(state);
        true
    }

    /// Adds the slot to the unused ones.
    fn recycle(&'static self) {
        HOST.slots.unused.lock().push(self);
    }

    fn lock(&self) -> MutexGuard<'_, SlotState> {
        self.state.lock()
    }
}

/// Makes the handles of this generation stale. Values are dropped without the lock, since that may
/// call the backend or the sink.
fn end_generation(mut state: MutexGuard<'_, SlotState>) {
    state.generation = (state.generation + 1) % GENERATIONS;
    let dropped = (state.responder.take(), std::mem::take(&mut state.response), state.gpu.take());
    drop(state);
    drop(dropped);
}

/// A slot in one generation: `trts_request_handle`, `trts_responder` and `trts_response` are such
/// handles.
#[derive(Clone, Copy)]
pub struct ExecutingHandle {
    slot: &'static RequestSlot,
    generation: usize,
}

impl ExecutingHandle {
    /// The handle behind a pointer.
    ///
    /// # Errors
    /// Null.
    ///
    /// # Safety
    /// `raw` is null or came from [`ExecutingHandle::raw`], however long ago.
    pub unsafe fn from_raw<T>(raw: *const T) -> Result<Self> {
        let generation = raw.addr() % GENERATIONS;
        let slot = raw.map_addr(|a| a - generation).cast::<RequestSlot>();
        // SAFETY: slots are never freed.
        match unsafe { slot.as_ref() } {
            Some(slot) => Ok(Self { slot, generation }),
            None => Err(Error::invalid(
                "a host function was called with a null request, responder or response",
            )),
        }
    }

    pub fn raw<T>(self) -> *mut T {
        std::ptr::from_ref(self.slot).map_addr(|a| a + self.generation).cast_mut().cast()
    }

    /// The handle as a number, the ticket of a `CancelObserver`.
    pub fn ticket(self) -> u64 {
        self.raw::<RequestSlot>().expose_provenance() as u64
    }

    /// The handle of a number from [`ExecutingHandle::ticket`], however long ago.
    pub fn from_ticket(ticket: u64) -> Option<Self> {
        // SAFETY: tickets are addresses of handles with exposed provenance.
        unsafe { Self::from_raw(std::ptr::with_exposed_provenance::<RequestSlot>(ticket as usize)) }
            .ok()
    }

    fn lock(self) -> Result<MutexGuard<'static, SlotState>> {
        let state = self.slot.lock();
        if state.generation == self.generation && state.responder.is_some() {
            Ok(state)
        } else {
            Err(stale())
        }
    }

    pub fn responder(self) -> Result<Arc<Responder>> {
        self.lock()?.responder.clone().ok_or_else(stale)
    }

    /// Takes the request out.
    ///
    /// # Errors
    /// The handle is stale, or the request was released before.
    pub fn take_request(self) -> Result<ReleasedRequest> {
        let released = self.lock()?.request.take();
        released.ok_or_else(|| Error::internal("a request was released twice"))
    }

    /// Keeps the responder usable past the release of the request.
    pub fn retain(self) -> Result<()> {
        self.lock()?.retained += 1;
        Ok(())
    }

    /// Undoes one [`ExecutingHandle::retain`].
    pub fn release_responder(self) -> Result<()> {
        let mut state = self.lock()?;
        let Some(remaining) = state.retained.checked_sub(1) else {
            return Err(Error::internal(
                "a responder was released more often than it was retained",
            ));
        };
        state.retained = remaining;
        if remaining == 0 && state.detached {
            end_generation(state);
            self.slot.recycle();
        }
        Ok(())
    }

    /// Begins a response.
    pub fn begin_response(self) -> Result<()> {
        let mut state = self.lock()?;
        let responder = state.responder.clone().ok_or_else(stale)?;
        if responder.is_finished() || state.deferred == DeferredResponses::Final {
            return Err(Error::internal("a response was begun after the responder had ended"));
        }
        if !matches!(state.response, BuilderState::None) {
            return Err(Error::internal(
                "a response was begun before the previous one of the same responder was sent or dropped",
            ));
        }
        let mut builder = state.spare.take().unwrap_or_default();
        *builder = Some(ResponseBuilder::new(responder, state.gpu.clone()));
        state.response = BuilderState::Ready(builder);
        Ok(())
    }

    /// Notes that a response waits for the device. `last`: it is the final one.
    ///
    /// # Errors
    /// The handle is stale.
    pub fn defer(self, last: bool) -> Result<()> {
        let mut state = self.lock()?;
        state.deferred = if last { DeferredResponses::Final } else { DeferredResponses::Some };
        Ok(())
    }

    pub fn deferred(self) -> Result<DeferredResponses> {
        Ok(self.lock()?.deferred)
    }

    /// The responder, to be finished now; after the responses that wait for the device, if there is
    /// a GPU.
    ///
    /// # Errors
    /// The handle is stale, or the final response waits already.
    pub fn finish(self) -> Result<(Arc<Responder>, Option<Arc<GpuInstance>>)> {
        let mut state = self.lock()?;
        let responder = state.responder.clone().ok_or_else(stale)?;
        let gpu = match state.deferred {
            DeferredResponses::None => None,
            DeferredResponses::Some => state.gpu.clone(),
            DeferredResponses::Final => {
                return Err(Error::internal("a request was finished twice"));
            }
        };
        if gpu.is_some() {
            state.deferred = DeferredResponses::Final;
        }
        Ok((responder, gpu))
    }

    /// Works on the response without the lock, since donated memory may be released, which calls
    /// the backend.
    pub fn with_response<T>(
        self,
        work: impl FnOnce(&mut ResponseBuilder) -> Result<T>,
    ) -> Result<T> {
        let mut response = self.take(BuilderState::InUse)?;
        let result = match response.as_mut() {
            Some(builder) => work(builder),
            None => Err(stale()),
        };
        let dropped = match self.lock() {
            Ok(mut state) => std::mem::replace(&mut state.response, BuilderState::Ready(response)),
            // The responder was released meanwhile.
            Err(_) => BuilderState::Ready(response),
        };
        drop(dropped);
        result
    }

    /// The response, to be sent or dropped.
    pub fn take_response(self) -> Result<ResponseBuilder> {
        let mut cell = self.take(BuilderState::None)?;
        let builder = cell.take();
        if let Ok(mut state) = self.lock() {
            state.spare = Some(cell);
        }
        builder.ok_or_else(stale)
    }

    /// Gives a response back that could not be sent now.
    ///
    /// # Errors
    /// The responder was released meanwhile, or another response was begun.
    pub fn put_back(self, builder: ResponseBuilder) -> Result<()> {
        let mut state = self.lock()?;
        if !matches!(state.response, BuilderState::None) {
            drop(state);
            return Err(Error::internal(
                "a response was begun while the previous one of the same responder was being sent",
            ));
        }
        let mut cell = state.spare.take().unwrap_or_default();
        *cell = Some(builder);
        state.response = BuilderState::Ready(cell);
        Ok(())
    }

    fn take(self, leave: BuilderState) -> Result<Box<BuilderCell>> {
        let mut state = self.lock()?;
        match std::mem::replace(&mut state.response, leave) {
            BuilderState::Ready(response) => Ok(response),
            other => {
                let busy = matches!(other, BuilderState::InUse);
                state.response = other;
                Err(Error::internal(if busy {
                    "a response was used by two threads at once"
                } else {
                    "a response was used after it had been sent or dropped"
                }))
            }
        }
    }
}

fn stale() -> Error {
    Error::internal("a request, responder or response was used after it had been released")
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
