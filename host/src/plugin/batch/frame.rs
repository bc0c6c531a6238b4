//! One batch as a plugin sees it: flat views over requests that stay where they are.
//!
//! A frame is filled by the instance's thread, lives until the last of its requests is released, and
//! is then used again, so that steady work allocates nothing here. Requests that a plugin keeps past
//! `execute` keep the whole frame; the instance takes another one meanwhile. Frames are never freed:
//! a batch that a plugin hands back too late is still a frame's, and found to be over.

use super::gather::Gathered;
use super::requests::BatchRequests;
use super::scatter::{Scatter, Scattered};
use super::slot::{Handle, Released, Share, Slot};
use super::timing;
use super::views::Style;
use crate::error::{Error, Result};
use crate::request::{InferRequest, Responder};
use crate::stats::Execution;
use crate::sync::Mutex;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::Buf;

/// See the module text.
pub struct Frame {
    batch: UnsafeCell<Batch>,
    /// `execute` runs with the batch.
    executing: AtomicBool,
    pub requests: BatchRequests,
    gathered: Mutex<Gathered>,
    scattered: Mutex<Scattered>,
    /// Requests not released, plus one while the instance's thread holds the frame.
    open: AtomicUsize,
    execution: Option<Arc<Execution>>,
}

// SAFETY: a frame is filled by one thread, then only read, but for its atomics, what is behind locks,
// and the batch, whose times are touched by the executing thread alone. Pointers among what it holds
// go to plain memory that it keeps.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

/// A frame that nobody uses.
struct Idle(NonNull<Frame>);

// SAFETY: frames are `Send`.
unsafe impl Send for Idle {}

static IDLE: Mutex<Vec<Idle>> = Mutex::new(Vec::new());

impl Frame {
    fn new() -> Self {
        Self {
            batch: UnsafeCell::new(Batch {
                size: std::mem::size_of::<Batch>() as u64,
                id: 0,
                n_requests: 0,
                rows: 0,
                requests: std::ptr::null(),
                exec_start_ns: 0,
                compute_start_ns: 0,
                compute_end_ns: 0,
                exec_end_ns: 0,
                reserved: [0; 4],
            }),
            executing: AtomicBool::new(false),
            requests: BatchRequests::default(),
            gathered: Mutex::default(),
            scattered: Mutex::default(),
            open: AtomicUsize::new(0),
            execution: None,
        }
    }

    /// `me` is this frame; slots keep it rather than a pointer made of `self`, which ends with this call.
    fn fill(
        &mut self,
        me: NonNull<Frame>,
        id: u64,
        requests: &mut Vec<InferRequest>,
        style: &Style<'_>,
        execution: &Arc<Execution>,
    ) {
        // The statistics may count fewer: not what the host made up.
        let rows = requests.iter().map(|r| r.context().batch).sum();
        self.execution = Some(Arc::clone(execution));
        *self.open.get_mut() = requests.len() + 1;
        self.requests.fill(requests, style, || Share::new(me.cast()));
        let batch = self.batch.get_mut();
        (batch.id, batch.n_requests, batch.rows) = (id, self.requests.slots().len() as u32, rows);
        batch.requests = self.requests.views.requests();
        (batch.exec_start_ns, batch.compute_start_ns, batch.compute_end_ns, batch.exec_end_ns) =
            (0, 0, 0, 0);
    }

    fn clear(&mut self) {
        self.requests.clear();
        self.gathered.get_mut().clear();
        *self.scattered.get_mut() = Scattered::default();
        self.execution = None;
    }

    /// The input in place `position` of all requests as one block.
    pub fn gather(&self, position: u32) -> Result<Buf> {
        self.gathered.lock().gather(&self.requests, position)
    }

    pub fn scatter(&self) -> Scatter<'_> {
        Scatter { requests: &self.requests, scattered: &self.scattered }
    }

    /// Gives one share back; the last one leaves the frame for others.
    ///
    /// # Safety
    /// The share was the caller's.
    unsafe fn let_go(this: NonNull<Frame>) {
        // SAFETY: the share keeps the frame up to here.
        if unsafe { this.as_ref() }.open.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: nobody else has a share.
            let frame = unsafe { &mut *this.as_ptr() };
            frame.clear();
            // It may lie there for long.
            *frame.gathered.get_mut() = Gathered::default();
            IDLE.lock().push(Idle(this));
        }
    }

    /// The frame of a batch that a plugin hands back.
    ///
    /// # Errors
    /// Null, or a batch whose `execute` does not run any more.
    ///
    /// # Safety
    /// `batch` is null or was given to `execute`, however long ago.
    pub unsafe fn of_batch<'a>(batch: *const Batch) -> Result<&'a Frame> {
        if batch.is_null() {
            return Err(Error::invalid("no batch was given"));
        }
        let offset = std::mem::offset_of!(Frame, batch);
        // SAFETY: the batch is a field of its frame, its address made of the frame's; frames are never freed.
        let frame = unsafe { &*batch.byte_sub(offset).cast::<Frame>() };
        if frame.executing.load(Ordering::Acquire) {
            Ok(frame)
        } else {
            Err(Error::internal("a batch was used after its execute had returned"))
        }
    }

    /// Ends what the plugin neither answered nor kept, and releases its request. Gives the number of
    /// such omissions.
    pub fn settle(&self, omission: &dyn Fn(&Responder) -> Error) -> usize {
        let mut omissions = 0;
        for slot in self.requests.slots() {
            let Some(reply) = slot.unkept() else { continue };
            if !reply.is_finished() && reply.finish(Err(omission(&reply))).is_ok() {
                omissions += 1;
            }
            release(slot);
        }
        omissions
    }

    /// Ends every reply that is still open with `error` and releases every request.
    pub fn fail(&self, error: &Error) {
        for slot in self.requests.slots() {
            if let Some(reply) = slot.reply().filter(|r| !r.is_finished()) {
                let _ = reply.finish(Err(error.clone()));
            }
            release(slot);
        }
    }
}

/// Releases the request of a handle.
///
/// # Errors
/// The handle is stale, or the request was released before.
pub fn release_request(handle: Handle) -> Result<()> {
    handle.take_request().map(give_back)
}

fn release(slot: &Slot) {
    if let Some(released) = slot.take_request() {
        give_back(released);
    }
}

fn give_back(Released { request, share }: Released) {
    drop(request);
    // SAFETY: only `Frame::fill` makes shares, of its frame; this one was taken from its slot once.
    unsafe { Frame::let_go(share.owner().cast()) };
}

/// The instance's hold on a frame; a raw pointer, because plugins hold addresses into it at the same time.
pub struct FrameHold(NonNull<Frame>);

// SAFETY: frames are `Send` and `Sync`, and what a hold alone may do needs `&mut` or happens inside `execute`.
unsafe impl Send for FrameHold {}

impl FrameHold {
    pub fn new() -> Self {
        let idle = IDLE.lock().pop();
        let Idle(frame) =
            idle.unwrap_or_else(|| Idle(NonNull::from(Box::leak(Box::new(Frame::new())))));
        // SAFETY: nobody else has the frame.
        unsafe { *(*frame.as_ptr()).open.get_mut() = 1 };
        Self(frame)
    }

    /// Builds the views over `requests`; the hold is new or recycled.
    pub fn fill(
        &mut self,
        id: u64,
        requests: &mut Vec<InferRequest>,
        style: &Style<'_>,
        execution: &Arc<Execution>,
    ) {
        // SAFETY: the frame is empty, so nobody else has a share.
        unsafe { (*self.0.as_ptr()).fill(self.0, id, requests, style, execution) }
    }

    pub fn frame(&self) -> &Frame {
        // SAFETY: this hold keeps the frame.
        unsafe { self.0.as_ref() }
    }

    /// Runs `execute` on this thread with the batch as the plugin gets it.
    pub fn enter<T>(&self, execute: impl FnOnce(*mut Batch) -> T) -> T {
        let frame = self.frame();
        let execution = frame.execution.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        frame.executing.store(true, Ordering::Release);
        // SAFETY: a field of the frame, as an address from which the frame's can be made.
        let batch = unsafe { UnsafeCell::raw_get(&raw const (*self.0.as_ptr()).batch) };
        let result = timing::during(batch, execution, execute);
        self.frame().executing.store(false, Ordering::Release);
        result
    }

    /// Gives the hold back and gets an empty frame: the same one if nobody else has a share;
    /// otherwise the old one goes with its last release.
    pub fn recycle(&mut self) {
        // SAFETY: this hold keeps the frame up to here.
        let open = &unsafe { self.0.as_ref() }.open;
        if open.load(Ordering::Acquire) == 1 {
            // SAFETY: only this hold is left, and nobody else can get a share.
            unsafe { (*self.0.as_ptr()).clear() };
        } else {
            *self = Self::new();
        }
    }
}

impl Drop for FrameHold {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.frame().fail(&Error::internal("the instance's thread panicked; see the log"));
        }
        // SAFETY: this hold's own share.
        unsafe { Frame::let_go(self.0) };
    }
}

impl Default for FrameHold {
    fn default() -> Self {
        Self::new()
    }
}
