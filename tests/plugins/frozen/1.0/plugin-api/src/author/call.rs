//! The unit of work: a batch of calls, each one request.

use super::error::Error;
use super::host::{Host, bytes_of, slice_of, text_of};
use super::reply::{Marks, OwnedReply, ReplyRef};
use super::response::Response;
use super::tensor::Tensor;
use super::value::{Params, Value};
use crate::abi;
use crate::abi::call::{Wanted, call_flags};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// What `execute` gets. Everything reached through it is valid until `execute` returns.
pub struct Batch<'a> {
    pub(crate) host: Host,
    pub(crate) raw: *mut abi::call::Batch,
    pub(crate) calls: &'a [*const abi::call::Call],
    pub(crate) marks: &'a [Marks],
    /// Something waits to be sent with the batch.
    pub(crate) scattered: Cell<bool>,
}

impl<'a> Batch<'a> {
    pub fn calls(&self) -> impl ExactSizeIterator<Item = Call<'a>> {
        let host = self.host;
        self.calls.iter().zip(self.marks).map(move |(raw, marks)| {
            // SAFETY: the host's calls are valid until their release, which comes after `execute`.
            Call { host, raw: unsafe { &**raw }, marks }
        })
    }

    /// Number of calls.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Number of the batch, for traces.
    pub fn id(&self) -> u64 {
        // SAFETY: the host's batch is valid during `execute`.
        unsafe { (*self.raw).id }
    }

    /// Sum of the calls' batch sizes.
    pub fn rows(&self) -> usize {
        // SAFETY: as above.
        unsafe { (*self.raw).rows as usize }
    }

    /// CLOCK_MONOTONIC nanoseconds, the clock of every time here.
    pub fn now_ns(&self) -> u64 {
        // SAFETY: an entry without conditions.
        unsafe { (self.host.now_ns)() }
    }

    /// The four times of the statistics: begin of work, inputs ready, outputs being made, end. Those
    /// left out the host measures around `execute`.
    pub fn set_times(&self, start: u64, compute: u64, output: u64, end: u64) {
        // SAFETY: the host gives the times of this batch to the plugin to write, and this type stays on one thread.
        unsafe {
            (*self.raw).t_start = start;
            (*self.raw).t_compute = compute;
            (*self.raw).t_output = output;
            (*self.raw).t_end = end;
        }
    }

    pub fn mark_start(&self) {
        // SAFETY: as in `set_times`.
        unsafe { (*self.raw).t_start = self.now_ns() }
    }

    pub fn mark_compute(&self) {
        // SAFETY: as in `set_times`.
        unsafe { (*self.raw).t_compute = self.now_ns() }
    }

    pub fn mark_output(&self) {
        // SAFETY: as in `set_times`.
        unsafe { (*self.raw).t_output = self.now_ns() }
    }

    pub fn mark_end(&self) {
        // SAFETY: as in `set_times`.
        unsafe { (*self.raw).t_end = self.now_ns() }
    }
}

/// Names a call while it is being answered; see [`Call::key`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct CallKey(pub(crate) usize);

/// One request. A few pointers: copy it freely. It cannot outlive `execute`.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    host: Host,
    raw: &'a abi::call::Call,
    marks: &'a Marks,
}

impl<'a> Call<'a> {
    /// The caller's name for the request.
    pub fn id(self) -> &'a str {
        // SAFETY: the call is valid for `'a`.
        unsafe { text_of(self.raw.id) }
    }

    /// What [`super::Instance::canceller`] gets when this call is cancelled.
    pub fn key(self) -> CallKey {
        CallKey(self.raw.reply as usize)
    }

    /// Rows of this call, 1 for a model without batch dimension.
    pub fn batch_size(self) -> usize {
        self.raw.batch as usize
    }

    pub fn inputs(self) -> impl ExactSizeIterator<Item = Tensor<'a>> {
        // SAFETY: the call and its inputs are valid for `'a`.
        self.raw_inputs().iter().map(|raw| unsafe { Tensor::new(raw) })
    }

    pub fn input(self, name: &str) -> Option<Tensor<'a>> {
        // SAFETY: as above.
        let named = |raw: &&abi::types::Tensor| unsafe { bytes_of(raw.name.p, raw.name.n) } == name.as_bytes();
        // SAFETY: as above.
        self.raw_inputs().iter().find(named).map(|raw| unsafe { Tensor::new(raw) })
    }

    /// As [`Call::input`], with an error that names the missing input.
    pub fn need(self, name: &str) -> Result<Tensor<'a>, Error> {
        self.input(name).ok_or_else(|| Error::invalid(format_args!("input '{name}' is missing")))
    }

    /// The outputs that the caller wants. Others may be made; they go nowhere.
    pub fn outputs(self) -> impl ExactSizeIterator<Item = WantedOutput<'a>> {
        self.wanted().iter().map(WantedOutput)
    }

    pub fn wants(self, name: &str) -> bool {
        // SAFETY: the call is valid for `'a`.
        unsafe { wants(self.wanted(), name) }
    }

    pub fn params(self) -> Params<'a> {
        // SAFETY: the call is valid for `'a`.
        unsafe { Params::new(slice_of(self.raw.params, self.raw.n_params.into())) }
    }

    pub fn param(self, key: &str) -> Option<Value<'a>> {
        self.params().get(key)
    }

    /// Correlation id as a number; 0 = none.
    pub fn sequence(self) -> u64 {
        self.raw.sequence
    }

    /// Correlation id as a text; empty when it is a number or absent.
    pub fn sequence_text(self) -> &'a str {
        // SAFETY: the call is valid for `'a`.
        unsafe { text_of(self.raw.sequence_text) }
    }

    pub fn sequence_start(self) -> bool {
        self.raw.flags & call_flags::SEQUENCE_START != 0
    }

    pub fn sequence_end(self) -> bool {
        self.raw.flags & call_flags::SEQUENCE_END != 0
    }

    /// Nobody reads the answer: the host warms the model up.
    pub fn warmup(self) -> bool {
        self.raw.flags & call_flags::WARMUP != 0
    }

    /// The caller can take several responses.
    pub fn streaming(self) -> bool {
        self.raw.flags & call_flags::STREAMING != 0
    }

    pub fn priority(self) -> u64 {
        self.raw.priority
    }

    pub fn received_ns(self) -> u64 {
        self.raw.received_ns
    }

    pub fn queued_ns(self) -> u64 {
        self.raw.queued_ns
    }

    pub fn deadline_ns(self) -> Option<u64> {
        (self.raw.deadline_ns != 0).then_some(self.raw.deadline_ns)
    }

    /// Nobody waits for the answer any more.
    pub fn is_cancelled(self) -> bool {
        // SAFETY: valid while the reply is held, which is longer than `'a`.
        unsafe { cancelled(self.raw.cancelled) }
    }

    /// Begins an answer. One at a time: send or drop it before the next. Fails when the call has
    /// been answered in full, failed or detached.
    pub fn respond(self) -> Result<Response<'a>, Error> {
        // SAFETY: reply and wanted outputs are valid for `'a`.
        unsafe { Response::begin(self.reply(), self.wanted()) }
    }

    /// Ends the call with an error. The host logs it if the call has already ended.
    pub fn fail(self, error: Error) {
        // SAFETY: the reply is valid for `'a`.
        unsafe { self.reply().end(Some(&error)) }
    }

    /// Ends a stream without a further response.
    pub fn end(self) {
        // SAFETY: the reply is valid for `'a`.
        unsafe { self.reply().end(None) }
    }

    /// Takes the answer side out of `execute`, to answer later from any thread. The inputs do not
    /// come along: copy what is needed. All detached replies must be gone before the instance is closed.
    pub fn detach(self) -> Result<OwnedReply, Error> {
        // SAFETY: the call is valid for `'a`.
        unsafe { OwnedReply::new(self.reply(), self.raw) }
    }

    fn reply(self) -> ReplyRef<'a> {
        ReplyRef { host: self.host, raw: self.raw.reply, marks: self.marks }
    }

    fn raw_inputs(self) -> &'a [abi::types::Tensor] {
        // SAFETY: the call is valid for `'a`.
        unsafe { slice_of(self.raw.inputs, self.raw.n_inputs.into()) }
    }

    fn wanted(self) -> &'a [Wanted] {
        // SAFETY: the call is valid for `'a`.
        unsafe { slice_of(self.raw.outputs, self.raw.n_outputs.into()) }
    }
}

/// An output that the caller wants.
#[derive(Clone, Copy)]
pub struct WantedOutput<'a>(&'a Wanted);

impl<'a> WantedOutput<'a> {
    pub fn name(self) -> &'a str {
        // SAFETY: part of a call that is valid for `'a`.
        unsafe { text_of(self.0.name) }
    }

    /// Position in the model configuration's output list.
    pub fn index(self) -> Option<usize> {
        (self.0.index != u32::MAX).then_some(self.0.index as usize)
    }

    /// Not 0: the caller gets this many top classes. The host makes them; deliver the tensor.
    pub fn classes(self) -> u32 {
        self.0.classes
    }
}

/// # Safety
/// The names are valid.
pub(crate) unsafe fn wants(wanted: &[Wanted], name: &str) -> bool {
    // SAFETY: the promise above.
    wanted.iter().any(|w| unsafe { bytes_of(w.name.p, w.name.n) } == name.as_bytes())
}

/// # Safety
/// Null or a live word that is touched atomically.
pub(crate) unsafe fn cancelled(word: *const u32) -> bool {
    if word.is_null() {
        return false;
    }
    // SAFETY: the promise above.
    unsafe { AtomicU32::from_ptr(word.cast_mut()) }.load(Ordering::Relaxed) != 0
}

/// Runs `work` over a batch and leaves nothing of it open, whatever `work` did. The batch then
/// belongs to nobody: `execute` reports success, and errors travel in the replies.
///
/// # Safety
/// `raw` is a batch that the host has just passed to `execute`.
pub(crate) unsafe fn run(
    host: Host,
    raw: *mut abi::call::Batch,
    work: impl FnOnce(&Batch<'_>) -> Result<(), Error>,
) {
    // SAFETY: the host's batch and its array are valid during `execute`.
    let calls = unsafe { slice_of((*raw).calls, (*raw).n.into()) };
    let (few, many): ([Marks; 32], Vec<Marks>);
    let marks = if calls.len() <= 32 {
        few = Default::default();
        &few[..calls.len()]
    } else {
        many = calls.iter().map(|_| Marks::default()).collect();
        &many
    };
    let batch = Batch { host, raw, calls, marks, scattered: Cell::new(false) };
    let result = work(&batch);
    let scattered = batch.scattered.get();
    let error = match &result {
        Ok(()) => ptr::null_mut(),
        Err(error) => error.raise(host),
    };
    let detached = marks.iter().any(Marks::detached);
    if detached && !scattered {
        let omitted = Error::internal("the plugin returned without answering").raise(host);
        for (call, marks) in calls.iter().zip(marks) {
            // SAFETY: each request is released once, here; each reply is ended at most once.
            unsafe {
                let (request, reply) = ((**call).request, (**call).reply);
                if !marks.detached() && !marks.ended() {
                    let error = if error.is_null() { omitted } else { error };
                    (host.error_free)((host.reply_end)(reply, error));
                }
                (host.request_release)(request, ptr::null_mut());
            }
        }
        // SAFETY: made above, not used again.
        unsafe { (host.error_free)(omitted) }
    } else {
        // A batch that is sent leaves retained calls alone. Before it, because by then their replies may
        // have been dropped, and it would release them itself.
        for (call, _) in calls.iter().zip(marks).filter(|(_, marks)| marks.detached()) {
            // SAFETY: the call is valid until its release, which is this one.
            unsafe { (host.request_release)((**call).request, ptr::null_mut()) }
        }
        // SAFETY: the batch is still the plugin's; from here on it is not.
        unsafe { (host.error_free)((host.batch_send)(raw, error, ptr::null_mut())) }
    }
    // SAFETY: null or made above, not used again.
    unsafe { (host.error_free)(error) }
}
