//! A batch frame: the batch as the backend sees it, with views over the requests, gathered inputs,
//! scattered outputs.
//!
//! A frame is filled by the instance's thread and reused after its last request is released, so
//! that steady work does not allocate. Requests that a backend retains past `execute` keep the
//! whole frame; the instance uses another one meanwhile. Frames are never freed, so that a stale
//! batch pointer from a backend is still one of a frame, which detects it.

use super::gather::GatheredInputs;
use super::gpu::GpuInstance;
use super::requests::BatchRequests;
use super::scatter::{Scatter, ScatteredOutputs};
use super::slot::{DeferredResponses, ExecutingHandle, FrameShare, ReleasedRequest, RequestSlot};
use super::timing;
use super::views::ViewOptions;
use crate::host_state::HOST;
use parking_lot::Mutex;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::BatchExecution;
use trtserver_device::{CudaEvent, CudaStream};
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::Buf;
use trtserver_request::{InferRequest, Responder};

/// The reusable memory behind one batch handle: requests, gathered inputs and scattered outputs.
pub struct Frame {
    batch: UnsafeCell<Batch>,
    /// `execute` is running.
    executing: AtomicBool,
    pub requests: BatchRequests,
    gathered: Mutex<GatheredInputs>,
    scattered: Mutex<ScatteredOutputs>,
    /// Requests not released, plus one while the instance's thread holds the frame.
    shares: AtomicUsize,
    execution: Option<Arc<BatchExecution>>,
    /// The GPU of the instance.
    gpu: Option<Arc<GpuInstance>>,
}

// SAFETY: a frame is filled by one thread, then only read, except for its atomics, what is behind
// locks, and the batch, whose times only the executing thread accesses. Its pointers go to memory
// that it keeps.
unsafe impl Send for Frame {}
// SAFETY: once a frame is filled, threads only read it, except for atomics, fields behind locks,
// and the times of the batch, which only the executing thread accesses.
unsafe impl Sync for Frame {}

/// An unused frame.
pub struct IdleFrames(NonNull<Frame>);

// SAFETY: frames are `Send`.
unsafe impl Send for IdleFrames {}

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
            shares: AtomicUsize::new(0),
            execution: None,
            gpu: None,
        }
    }

    /// `me` is this frame: shares need a pointer that outlives the borrow of `self`.
    fn fill(
        &mut self,
        me: NonNull<Frame>,
        id: u64,
        requests: &mut Vec<InferRequest>,
        options: &ViewOptions<'_>,
        execution: &Arc<BatchExecution>,
    ) {
        // Statistics may count fewer rows: they exclude null requests.
        let rows = requests.iter().map(|r| r.context().batch).sum();
        self.execution = Some(Arc::clone(execution));
        self.gpu = options.gpu.cloned();
        *self.shares.get_mut() = requests.len() + 1;
        self.requests.fill(requests, options, || FrameShare::new(me.cast()));
        let batch = self.batch.get_mut();
        (batch.id, batch.n_requests, batch.rows) = (id, self.requests.slots().len() as u32, rows);
        batch.requests = self.requests.views.requests();
        (batch.exec_start_ns, batch.compute_start_ns, batch.compute_end_ns, batch.exec_end_ns) =
            (0, 0, 0, 0);
    }

    fn clear(&mut self) {
        self.requests.clear();
        self.gathered.get_mut().clear();
        *self.scattered.get_mut() = ScatteredOutputs::default();
        self.execution = None;
        self.gpu = None;
    }

    /// The input at `position` of all requests as one block, in CPU memory or, with `on_gpu`, on
    /// the GPU of the instance. Later work of `stream` waits for it, unless that is null.
    ///
    /// # Safety
    /// `stream` is null or a CUDA stream.
    pub unsafe fn gather(&self, position: u32, on_gpu: bool, stream: *mut u8) -> Result<Buf> {
        let buf =
            self.gathered.lock().gather(&self.requests, position, self.gpu.as_ref(), on_gpu)?;
        // SAFETY: null, or an event that lives as long as the block.
        let ready = unsafe { buf.ready.cast::<CudaEvent>().as_ref() };
        if let Some(ready) = ready.filter(|_| !stream.is_null()) {
            // SAFETY: by the caller's promise.
            ready.block(&unsafe { CudaStream::borrowed(ready.context(), stream.cast()) })?;
        }
        Ok(buf)
    }

    pub fn scatter(&self) -> Scatter<'_> {
        Scatter { requests: &self.requests, scattered: &self.scattered, gpu: self.gpu.as_ref() }
    }

    /// The execution that the requests are outstanding in.
    pub fn execution(&self) -> Option<&Arc<BatchExecution>> {
        self.execution.as_ref()
    }

    pub fn gpu(&self) -> Option<&Arc<GpuInstance>> {
        self.gpu.as_ref()
    }

    /// Has inputs reused, and outputs dropped, only after `event`.
    pub fn continue_after(&self, event: &CudaEvent) {
        let waits = match &self.gpu {
            Some(gpu) => gpu.continue_after(event),
            None => event.synchronize(),
        };
        // Only a lost device refuses, and memory of a lost device is not reused.
        drop(waits);
    }

    /// Releases one share; the last one makes the frame unused.
    ///
    /// # Safety
    /// The caller owns the share.
    unsafe fn release_share(this: NonNull<Frame>) {
        // SAFETY: the share keeps the frame up to here.
        if unsafe { this.as_ref() }.shares.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: this was the last share.
            let frame = unsafe { &mut *this.as_ptr() };
            frame.clear();
            // It may be unused for long.
            *frame.gathered.get_mut() = GatheredInputs::default();
            HOST.frames.lock().push(IdleFrames(this));
        }
    }

    /// The frame of a batch pointer from a backend.
    ///
    /// # Errors
    /// Null, or a batch whose `execute` has returned.
    ///
    /// # Safety
    /// `batch` is null or was given to `execute`, however long ago.
    pub unsafe fn from_batch<'a>(batch: *const Batch) -> Result<&'a Frame> {
        if batch.is_null() {
            return Err(Error::invalid("no batch was given"));
        }
        let offset = std::mem::offset_of!(Frame, batch);
        // SAFETY: the batch is a field of its frame, derived from the frame's pointer; frames are
        // never freed.
        let frame = unsafe { &*batch.byte_sub(offset).cast::<Frame>() };
        if frame.executing.load(Ordering::Acquire) {
            Ok(frame)
        } else {
            Err(Error::internal("a batch was used after its execute had returned"))
        }
    }

    /// Fails the requests that the backend neither finished nor retained, and releases them.
    /// Returns their number.
    pub fn fail_unanswered(&self, error: &dyn Fn(&Responder) -> Error) -> usize {
        let mut failed = 0;
        for slot in self.requests.slots() {
            let Some(responder) = slot.unretained() else { continue };
            if !responder.is_finished() && self.finish_slot(slot, &responder, error) {
                failed += 1;
            }
            release(slot);
        }
        failed
    }

    /// Finishes an unfinished request with an error, after its responses that wait for the device.
    /// False if it is finished already, or its final response waits.
    fn finish_slot(
        &self,
        slot: &RequestSlot,
        responder: &Arc<Responder>,
        error: &dyn Fn(&Responder) -> Error,
    ) -> bool {
        match (slot.deferred(), &self.gpu) {
            (DeferredResponses::Final, _) => false,
            (DeferredResponses::Some, Some(gpu)) => {
                gpu.finish_later(Arc::clone(responder), Err(error(responder)));
                slot.defer_final();
                true
            }
            _ => responder.finish(Err(error(responder))).is_ok(),
        }
    }

    /// Fails every unfinished request with `error`, and releases all requests.
    pub fn fail(&self, error: &Error) {
        for slot in self.requests.slots() {
            if let Some(responder) = slot.responder().filter(|r| !r.is_finished()) {
                let _ = responder.finish(Err(error.clone()));
            }
            release(slot);
        }
    }
}

/// Releases the request of a handle, whose inputs are reused after `after`.
///
/// # Errors
/// The handle is stale, or the request was released before.
pub fn release_request(handle: ExecutingHandle, after: Option<&CudaEvent>) -> Result<()> {
    let released = handle.take_request()?;
    if let Some(after) = after {
        // SAFETY: the share keeps its frame.
        unsafe { released.share.owner_ref().cast::<Frame>().as_ref() }.continue_after(after);
    }
    drop_released(released);
    Ok(())
}

fn release(slot: &RequestSlot) {
    if let Some(released) = slot.take_request() {
        drop_released(released);
    }
}

fn drop_released(ReleasedRequest { request, share }: ReleasedRequest) {
    drop(request);
    // SAFETY: only `Frame::fill` makes shares, of its frame; this one was taken from its slot once.
    unsafe { Frame::release_share(share.owner().cast()) };
}

/// The instance's share in a frame. A raw pointer, because backends hold addresses into the frame
/// at the same time.
pub struct FrameHold(NonNull<Frame>);

// SAFETY: frames are `Send` and `Sync`; operations exclusive to the hold need `&mut` or happen
// inside `execute`.
unsafe impl Send for FrameHold {}

impl FrameHold {
    pub fn new() -> Self {
        let idle = HOST.frames.lock().pop();
        let IdleFrames(frame) =
            idle.unwrap_or_else(|| IdleFrames(NonNull::from(Box::leak(Box::new(Frame::new())))));
        // SAFETY: the frame is unused or new.
        unsafe { *(*frame.as_ptr()).shares.get_mut() = 1 };
        Self(frame)
    }

    /// Takes `requests` and builds their views; the hold must be new or recycled.
    pub fn fill(
        &mut self,
        id: u64,
        requests: &mut Vec<InferRequest>,
        options: &ViewOptions<'_>,
        execution: &Arc<BatchExecution>,
    ) {
        // SAFETY: the frame is empty, so this is the only share.
        unsafe { (*self.0.as_ptr()).fill(self.0, id, requests, options, execution) }
    }

    pub fn frame(&self) -> &Frame {
        // SAFETY: this hold keeps the frame.
        unsafe { self.0.as_ref() }
    }

    /// Runs `execute` on this thread with the batch.
    pub fn enter<T>(&self, execute: impl FnOnce(*mut Batch) -> T) -> T {
        let frame = self.frame();
        let execution = frame.execution.as_ref().map_or(std::ptr::null(), Arc::as_ptr);
        frame.executing.store(true, Ordering::Release);
        // SAFETY: a field of the frame, with the provenance of the whole frame for
        // `Frame::from_batch`.
        let batch = unsafe { UnsafeCell::raw_get(&raw const (*self.0.as_ptr()).batch) };
        let result = timing::time_execution(batch, execution, execute);
        self.frame().executing.store(false, Ordering::Release);
        result
    }

    /// Exchanges the frame for an empty one: the same, if no request is retained, else another.
    pub fn recycle(&mut self) {
        // SAFETY: this hold keeps the frame up to here.
        let shares = &unsafe { self.0.as_ref() }.shares;
        if shares.load(Ordering::Acquire) == 1 {
            // SAFETY: this is the only share, and others come only from `fill`.
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
        unsafe { Frame::release_share(self.0) };
    }
}

impl Default for FrameHold {
    fn default() -> Self {
        Self::new()
    }
}
