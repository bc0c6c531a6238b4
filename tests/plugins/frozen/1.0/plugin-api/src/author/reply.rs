//! The answer side of a call: what became of it, and replies that outlive `execute`.

use super::call::{cancelled, wants};
use super::error::Error;
use super::host::{Host, Kept, text_of};
use super::response::Response;
use crate::abi;
use crate::abi::call::Wanted;
use crate::abi::types::Reply;
use std::cell::Cell;
use std::ptr;

/// What became of a reply so far.
#[derive(Default)]
pub(crate) struct Marks(Cell<u8>);

impl Marks {
    const ENDED: u8 = 1;
    const OPEN: u8 = 2;
    const DETACHED: u8 = 4;

    fn has(&self, bit: u8) -> bool {
        self.0.get() & bit != 0
    }

    fn set(&self, bit: u8, on: bool) {
        self.0.set(if on { self.0.get() | bit } else { self.0.get() & !bit });
    }

    pub(crate) fn ended(&self) -> bool {
        self.has(Marks::ENDED)
    }

    pub(crate) fn detached(&self) -> bool {
        self.has(Marks::DETACHED)
    }

    pub(crate) fn set_ended(&self) {
        self.set(Marks::ENDED, true);
    }

    /// A response is being built.
    pub(crate) fn set_open(&self, on: bool) {
        self.set(Marks::OPEN, on);
    }

    /// Why no response can be begun now.
    pub(crate) fn check(&self) -> Result<(), Error> {
        Err(Error::internal(if self.has(Marks::ENDED) {
            "this call has already been answered in full"
        } else if self.has(Marks::DETACHED) {
            "this call was detached: its owned reply answers it"
        } else if self.has(Marks::OPEN) {
            "send or drop the response under way before beginning the next"
        } else {
            return Ok(());
        }))
    }
}

/// A reply somebody else holds, with its marks.
#[derive(Clone, Copy)]
pub(crate) struct ReplyRef<'a> {
    pub(crate) host: Host,
    pub(crate) raw: *mut Reply,
    pub(crate) marks: &'a Marks,
}

impl ReplyRef<'_> {
    /// # Safety
    /// The reply is held.
    pub(crate) unsafe fn end(self, error: Option<&Error>) {
        if self.marks.detached() {
            return;
        }
        self.marks.set_ended();
        let error = error.map_or(ptr::null_mut(), |error| error.raise(self.host));
        // SAFETY: the error is made above and freed here; a second end is the host's to report.
        unsafe {
            (self.host.error_free)((self.host.reply_end)(self.raw, error));
            (self.host.error_free)(error);
        }
    }
}

/// The answer side of a detached call. It may go to any thread, and whoever drops it without
/// having answered ends the call with an error that says so.
pub struct OwnedReply {
    host: Host,
    raw: *mut Reply,
    marks: Marks,
    cancelled: *const u32,
    batch_size: usize,
    id: String,
    wanted: Vec<Wanted>,
    _names: Vec<Kept>,
}

// SAFETY: the host takes calls on a reply from any thread, and all the pointers go to memory that
// is the reply's (retained) or this value's own.
unsafe impl Send for OwnedReply {}

impl OwnedReply {
    /// # Safety
    /// `call` is the live call of the held `reply`.
    pub(crate) unsafe fn new(reply: ReplyRef<'_>, call: &abi::call::Call) -> Result<Self, Error> {
        reply.marks.check()?;
        let mut names = Vec::new();
        // SAFETY: the call is live.
        let wanted = unsafe { super::host::slice_of(call.outputs, call.n_outputs.into()) };
        let wanted = wanted.iter().map(|w: &Wanted| {
            // SAFETY: as above.
            let name = Kept::new(unsafe { text_of(w.name) });
            let wanted = Wanted { name: name.get(), ..*w };
            names.push(name);
            wanted
        });
        let wanted = wanted.collect();
        // SAFETY: the reply is held, so it can be retained.
        unsafe { (reply.host.reply_retain)(reply.raw) };
        reply.marks.set(Marks::DETACHED, true);
        Ok(OwnedReply {
            host: reply.host,
            raw: reply.raw,
            marks: Marks::default(),
            cancelled: call.cancelled,
            batch_size: call.batch as usize,
            // SAFETY: the call is live.
            id: unsafe { text_of(call.id) }.to_owned(),
            wanted,
            _names: names,
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn batch_size(&self) -> usize {
        self.batch_size
    }

    pub fn wants(&self, name: &str) -> bool {
        // SAFETY: the names are this value's own.
        unsafe { wants(&self.wanted, name) }
    }

    pub fn is_cancelled(&self) -> bool {
        // SAFETY: valid while the reply is retained.
        unsafe { cancelled(self.cancelled) }
    }

    /// Begins an answer; see [`super::Call::respond`].
    pub fn respond(&self) -> Result<Response<'_>, Error> {
        // SAFETY: the reply is retained, the names are this value's own.
        unsafe { Response::begin(self.reply(), &self.wanted) }
    }

    /// Ends the call with an error.
    pub fn fail(self, error: Error) {
        // SAFETY: the reply is retained.
        unsafe { self.reply().end(Some(&error)) }
    }

    /// Ends a stream without a further response.
    pub fn end(self) {
        // SAFETY: the reply is retained.
        unsafe { self.reply().end(None) }
    }

    fn reply(&self) -> ReplyRef<'_> {
        ReplyRef { host: self.host, raw: self.raw, marks: &self.marks }
    }
}

impl Drop for OwnedReply {
    fn drop(&mut self) {
        // SAFETY: the reply is retained until here.
        unsafe {
            if !self.marks.ended() {
                let omitted = Error::internal("the plugin dropped a detached call unanswered");
                self.reply().end(Some(&omitted));
            }
            (self.host.reply_release)(self.raw);
        }
    }
}
