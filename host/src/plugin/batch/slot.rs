//! What the handles of a call stand for: its request, its reply and the response being made.
//!
//! A handle is the address of a slot and, in the bits that alignment leaves free, the slot's
//! generation. Slots are never freed and never become anything else, and each use of one is another
//! generation; so a plugin that uses a handle too late gets an error (but for one chance in
//! [`GENERATIONS`]) where a plain pointer would be undefined behaviour.

use super::outputs::Building;
use crate::error::{Error, Result};
use crate::request::{InferRequest, Responder};
use crate::sync::{Mutex, MutexGuard};
use bytes::Bytes;
use std::ptr::NonNull;
use std::sync::Arc;

/// Uses of a slot that handles can tell apart; also a slot's alignment.
const GENERATIONS: usize = 512;

/// One call's place. See the module text.
#[repr(align(512))]
pub struct Slot {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    generation: usize,
    /// Until the release: the request, whose tensors the views point at, and the frame of the views.
    request: Option<Released>,
    /// Until the generation ends.
    reply: Option<Arc<Responder>>,
    /// Times that the plugin asked to keep the reply, less the times it let go.
    retained: u32,
    response: Response,
    /// Room for the next one.
    spare: Option<Box<Room>>,
    /// The frame is done with it: the generation ends with the last hold of the plugin.
    left: bool,
}

/// Where a response is built; used again and again.
type Room = Option<Building>;

/// The response of a reply; there is one at a time.
#[derive(Default)]
enum Response {
    #[default]
    None,
    /// A host call works on it.
    Lent,
    Here(Box<Room>),
}

/// See [`Slot::standing`].
pub enum Standing {
    /// Nothing: it is answered, released or kept by the plugin.
    Over,
    /// Nothing yet: a response is being built.
    Responding,
    Open(Arc<Responder>),
}

/// A request's share in what keeps its views, opaque here: `frame` makes shares and takes them back.
pub struct Share(NonNull<()>);

// SAFETY: the owner lives until its last share is given back, which may happen on any thread.
unsafe impl Send for Share {}

impl Share {
    pub fn new(owner: NonNull<()>) -> Self {
        Self(owner)
    }

    pub fn owner(self) -> NonNull<()> {
        self.0
    }
}

/// A request taken out of its slot. The request is dropped first, then the share goes back to its owner.
#[must_use]
pub struct Released {
    pub request: InferRequest,
    pub share: Share,
}

/// Slots that nobody uses.
static IDLE: Mutex<Vec<&'static Slot>> = Mutex::new(Vec::new());

impl Slot {
    /// An empty slot.
    pub fn obtain() -> &'static Slot {
        let idle = IDLE.lock().pop();
        idle.unwrap_or_else(|| Box::leak(Box::new(Slot { state: Mutex::default() })))
    }

    /// Puts a request in, with its share in what keeps the views.
    pub fn put(&'static self, request: InferRequest, share: Share) {
        let mut state = self.lock();
        state.reply = Some(Arc::clone(&request.responder));
        state.request = Some(Released { request, share });
        state.left = false;
    }

    /// The handle of this use.
    pub fn handle(&'static self) -> Handle {
        Handle { slot: self, generation: self.lock().generation }
    }

    /// The reply, unless the plugin keeps it.
    pub fn unkept(&self) -> Option<Arc<Responder>> {
        let state = self.lock();
        if state.retained == 0 { state.reply.clone() } else { None }
    }

    pub fn reply(&self) -> Option<Arc<Responder>> {
        self.lock().reply.clone()
    }

    /// The bytes of the request's input in place `at`; `None` after the release.
    pub fn input(&self, at: usize) -> Option<Bytes> {
        Some(self.lock().request.as_ref()?.request.inputs.get(at)?.data.clone())
    }

    /// The handle of this use and its reply, as long as it has one.
    pub fn answerable(&'static self) -> Option<(Handle, Arc<Responder>)> {
        let state = self.lock();
        let reply = state.reply.clone()?;
        Some((Handle { slot: self, generation: state.generation }, reply))
    }

    /// What the batch as a whole may still do for the call.
    pub fn standing(&self) -> Standing {
        let state = self.lock();
        match &state.reply {
            Some(reply)
                if state.request.is_some() && state.retained == 0 && !reply.is_finished() =>
            {
                match state.response {
                    Response::None => Standing::Open(Arc::clone(reply)),
                    Response::Lent | Response::Here(_) => Standing::Responding,
                }
            }
            _ => Standing::Over,
        }
    }

    /// Takes the request out; `None` if that was done before.
    pub fn take_request(&self) -> Option<Released> {
        self.lock().request.take()
    }

    /// The frame is done with it. True: it is empty again and may be used at once; otherwise it
    /// finds its own way back when the plugin lets go of the reply.
    pub fn leave(&'static self) -> bool {
        let mut state = self.lock();
        if state.retained > 0 {
            state.left = true;
            return false;
        }
        end_generation(state);
        true
    }

    /// Leaves a slot for others.
    pub fn idle(&'static self) {
        IDLE.lock().push(self);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Handles of this use are stale from here on. What is dropped may call plugin and sink: not under the lock.
fn end_generation(mut state: MutexGuard<'_, State>) {
    state.generation = (state.generation + 1) % GENERATIONS;
    let gone = (state.reply.take(), std::mem::take(&mut state.response));
    drop(state);
    drop(gone);
}

/// A slot in one of its generations: what `trts_request_handle`, `trts_responder` and `trts_response` are.
#[derive(Clone, Copy)]
pub struct Handle {
    slot: &'static Slot,
    generation: usize,
}

impl Handle {
    /// The handle behind a pointer.
    ///
    /// # Errors
    /// Null.
    ///
    /// # Safety
    /// `raw` is null or came from [`Handle::raw`], however long ago.
    pub unsafe fn of<T>(raw: *const T) -> Result<Self> {
        let generation = raw.addr() % GENERATIONS;
        let slot = raw.map_addr(|a| a - generation).cast::<Slot>();
        // SAFETY: slots are never freed.
        match unsafe { slot.as_ref() } {
            Some(slot) => Ok(Self { slot, generation }),
            None => Err(Error::invalid("a host call got null for a request, reply or response")),
        }
    }

    pub fn raw<T>(self) -> *mut T {
        std::ptr::from_ref(self.slot).map_addr(|a| a + self.generation).cast_mut().cast()
    }

    /// The handle as a number, for those that keep no pointers.
    pub fn ticket(self) -> u64 {
        self.raw::<Slot>().expose_provenance() as u64
    }

    /// The handle of a number from [`Handle::ticket`], however long ago.
    pub fn of_ticket(ticket: u64) -> Option<Self> {
        // SAFETY: tickets are made of handles, as pointers of which anything may be known.
        unsafe { Self::of(std::ptr::with_exposed_provenance::<Slot>(ticket as usize)) }.ok()
    }

    fn lock(self) -> Result<MutexGuard<'static, State>> {
        let state = self.slot.lock();
        if state.generation == self.generation && state.reply.is_some() {
            Ok(state)
        } else {
            Err(stale())
        }
    }

    pub fn reply(self) -> Result<Arc<Responder>> {
        self.lock()?.reply.clone().ok_or_else(stale)
    }

    /// Takes the request out.
    ///
    /// # Errors
    /// That was done before.
    pub fn take_request(self) -> Result<Released> {
        let released = self.lock()?.request.take();
        released.ok_or_else(|| Error::internal("a request was released twice"))
    }

    /// Keeps the reply past the release of the request.
    pub fn retain(self) -> Result<()> {
        self.lock()?.retained += 1;
        Ok(())
    }

    /// Undoes one [`Handle::retain`].
    pub fn release_reply(self) -> Result<()> {
        let mut state = self.lock()?;
        let Some(less) = state.retained.checked_sub(1) else {
            return Err(Error::internal("a reply was released more often than it was retained"));
        };
        state.retained = less;
        if less == 0 && state.left {
            end_generation(state);
            self.slot.idle();
        }
        Ok(())
    }

    /// Begins a response.
    pub fn begin(self) -> Result<()> {
        let mut state = self.lock()?;
        let reply = state.reply.clone().ok_or_else(stale)?;
        if reply.is_finished() {
            return Err(Error::internal("a response was begun after the reply had ended"));
        }
        if !matches!(state.response, Response::None) {
            return Err(Error::internal(
                "a response was begun before the previous one of the same reply was sent or dropped",
            ));
        }
        let mut room = state.spare.take().unwrap_or_default();
        *room = Some(Building::new(reply));
        state.response = Response::Here(room);
        Ok(())
    }

    /// Works on the response, with no lock held: memory that a plugin donated may be released on the way.
    pub fn with_response<T>(self, work: impl FnOnce(&mut Building) -> Result<T>) -> Result<T> {
        let mut response = self.take(Response::Lent)?;
        let result = match response.as_mut() {
            Some(building) => work(building),
            None => Err(stale()),
        };
        let left = match self.lock() {
            Ok(mut state) => std::mem::replace(&mut state.response, Response::Here(response)),
            // Everybody let go of the reply meanwhile.
            Err(_) => Response::Here(response),
        };
        drop(left);
        result
    }

    /// The response, to be sent or dropped.
    pub fn take_response(self) -> Result<Building> {
        let mut room = self.take(Response::None)?;
        let building = room.take();
        if let Ok(mut state) = self.lock() {
            state.spare = Some(room);
        }
        building.ok_or_else(stale)
    }

    fn take(self, leave: Response) -> Result<Box<Room>> {
        let mut state = self.lock()?;
        match std::mem::replace(&mut state.response, leave) {
            Response::Here(response) => Ok(response),
            other => {
                let busy = matches!(other, Response::Lent);
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
    Error::internal("a request, reply or response was used after it had been released")
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
