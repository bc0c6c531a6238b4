//! One batch as a plugin sees it: flat views over requests that stay where they are.
//!
//! A frame is built by the instance's thread, lives until the last of its requests is released, and
//! is then used again, so that steady work allocates nothing here. Requests that a plugin keeps past
//! `execute` keep the whole frame; the instance takes a new one meanwhile.

use super::text::{EMPTY, c_text, view};
use crate::error::Error;
use crate::request::buffer::AlignedBuf;
use crate::request::{CorrelationId, InferRequest, Parameter, Reply, Signature};
use crate::stats::Execution;
use bytes::Bytes;
use std::cell::{Cell, UnsafeCell};
use std::ffi::CString;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trtserver_plugin_api::abi::call::{Batch, Call, Wanted, call_flags};
use trtserver_plugin_api::abi::types::{Buf, Param, Place, Str, Tensor, param, tensor_flags};

/// Names of a model's tensors as NUL-terminated text, made once per model.
pub struct TensorNames {
    pub inputs: Vec<CString>,
    pub outputs: Vec<CString>,
}

impl TensorNames {
    pub fn new(signature: &Signature) -> Self {
        Self {
            inputs: signature.inputs.iter().map(|i| c_text(&i.name)).collect(),
            outputs: signature.outputs.iter().map(|o| c_text(&o.name)).collect(),
        }
    }
}

/// What a `trts_request` points at.
pub struct Slot {
    frame: *const Frame,
    released: AtomicBool,
    /// Some until the release: the request's own memory, which the views point into.
    request: UnsafeCell<Option<InferRequest>>,
}

/// See the module text. The address must not change while a plugin sees it: always boxed.
pub struct Frame {
    batch: UnsafeCell<Batch>,
    slots: Vec<Slot>,
    replies: Vec<Arc<Reply>>,
    calls: Vec<Call>,
    call_ptrs: Vec<*const Call>,
    tensors: Vec<Tensor>,
    bufs: Vec<Buf>,
    shapes: Vec<i64>,
    wanted: Vec<Wanted>,
    params: Vec<Param>,
    texts: Vec<CString>,
    /// Inputs that had to be copied to an aligned place.
    aligned: Vec<Bytes>,
    /// Requests not released, plus one while the instance's thread holds the frame.
    open: AtomicUsize,
    execution: Option<Arc<Execution>>,
}

// SAFETY: a frame is filled by one thread, then only read, but for its atomics and the cells: the
// batch's times are touched by the executing thread alone, a request cell only by whoever wins `released`.
unsafe impl Send for Frame {}
// SAFETY: as above.
unsafe impl Sync for Frame {}

impl Frame {
    fn new() -> Box<Self> {
        Box::new(Self {
            batch: UnsafeCell::new(Batch {
                size: std::mem::size_of::<Batch>() as u64,
                id: 0,
                n: 0,
                rows: 0,
                calls: std::ptr::null(),
                t_start: 0,
                t_compute: 0,
                t_output: 0,
                t_end: 0,
                reserved: [0; 4],
            }),
            slots: Vec::new(),
            replies: Vec::new(),
            calls: Vec::new(),
            call_ptrs: Vec::new(),
            tensors: Vec::new(),
            bufs: Vec::new(),
            shapes: Vec::new(),
            wanted: Vec::new(),
            params: Vec::new(),
            texts: Vec::new(),
            aligned: Vec::new(),
            open: AtomicUsize::new(0),
            execution: None,
        })
    }

    /// Builds the views. `align`: what the backend wants of its inputs, 0 = natural alignment.
    pub fn fill(
        &mut self,
        id: u64,
        requests: &mut Vec<InferRequest>,
        signature: &Signature,
        names: &TensorNames,
        align: usize,
        execution: &Arc<Execution>,
    ) {
        self.clear();
        let frame: *const Frame = self;
        let rows = execution.rows;
        self.execution = Some(Arc::clone(execution));
        *self.open.get_mut() = requests.len() + 1;
        self.replies.extend(requests.iter().map(|r| Arc::clone(&r.reply)));
        self.slots.extend(requests.drain(..).map(|request| Slot {
            frame,
            released: AtomicBool::new(false),
            request: UnsafeCell::new(Some(request)),
        }));

        // Pointers into the arrays are taken once the arrays have their final size.
        let mut counts = Counts::default();
        for i in 0..self.slots.len() {
            // SAFETY: nobody else sees the frame yet.
            if let Some(request) = unsafe { &*self.slots[i].request.get() } {
                counts.add(request);
            }
        }
        counts.reserve(self);
        for i in 0..self.slots.len() {
            let slot: *const Slot = &self.slots[i];
            // SAFETY: the slot stays in place until the frame is cleared, which needs `&mut self` and no open request.
            if let Some(request) = unsafe { &*(*slot).request.get() } {
                let call = self.call(slot, request, signature, names, align);
                self.calls.push(call);
            }
        }
        self.call_ptrs.extend(self.calls.iter().map(|c| c as *const Call));
        let batch = self.batch.get_mut();
        (batch.id, batch.n, batch.rows) = (id, self.slots.len() as u32, rows);
        batch.calls = self.call_ptrs.as_ptr();
        (batch.t_start, batch.t_compute, batch.t_output, batch.t_end) = (0, 0, 0, 0);
    }

    fn call(
        &mut self,
        slot: *const Slot,
        request: &InferRequest,
        signature: &Signature,
        names: &TensorNames,
        align: usize,
    ) -> Call {
        let inputs = self.tensors.len();
        for input in &request.inputs {
            let spec = &signature.inputs[input.index];
            let shape_at = self.shapes.len();
            self.shapes.extend_from_slice(&signature.to_model(spec, &input.shape));
            let need = align.max(spec.dtype.size().unwrap_or(1));
            let data =
                if (input.data.as_ptr() as usize).is_multiple_of(need) || input.data.is_empty() {
                    &input.data
                } else {
                    self.aligned.push(AlignedBuf::copy_of(&[&input.data]).into_bytes());
                    &self.aligned[self.aligned.len() - 1]
                };
            self.bufs.push(Buf {
                ptr: data.as_ptr().cast_mut(),
                bytes: data.len() as u64,
                place: Place::CPU,
                ready: std::ptr::null_mut(),
                lease: 0,
            });
            self.tensors.push(Tensor {
                name: view(&names.inputs[input.index]),
                index: input.index as u32,
                dtype: input.dtype.number(),
                rank: (self.shapes.len() - shape_at) as u32,
                flags: if spec.optional { tensor_flags::OPTIONAL } else { 0 }
                    | if spec.shape_tensor { tensor_flags::SHAPE_TENSOR } else { 0 },
                shape: self.shapes[shape_at..].as_ptr(),
                bytes: data.len() as u64,
                n_parts: 1,
                pad: 0,
                parts: &self.bufs[self.bufs.len() - 1],
            });
        }
        let wanted = self.wanted.len();
        self.wanted.extend(request.outputs.iter().map(|o| Wanted {
            name: view(&names.outputs[o.index]),
            index: o.index as u32,
            classes: o.classes,
        }));
        let params = self.params.len();
        for (key, value) in &request.parameters {
            let key = self.text(key);
            let (kind, text, bits) = match value {
                Parameter::String(s) => (param::STRING, self.text(s), 0),
                Parameter::Int(i) => (param::INT, EMPTY, *i as u64),
                Parameter::Bool(b) => (param::BOOL, EMPTY, u64::from(*b)),
                Parameter::Double(d) => (param::DOUBLE, EMPTY, d.to_bits()),
            };
            self.params.push(Param { key, kind, pad: 0, text, bits });
        }
        let (sequence, sequence_text) = match &request.sequence.id {
            CorrelationId::None => (0, EMPTY),
            CorrelationId::Number(n) => (*n, EMPTY),
            CorrelationId::Text(t) => (0, self.text(t)),
        };
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        Call {
            size: std::mem::size_of::<Call>() as u64,
            request: slot.cast_mut().cast(),
            reply: Arc::as_ptr(&request.reply).cast_mut().cast(),
            id: self.text(&request.id),
            sequence_text,
            sequence,
            flags: flag(request.sequence.start, call_flags::SEQUENCE_START)
                | flag(request.sequence.end, call_flags::SEQUENCE_END)
                | flag(request.streaming, call_flags::STREAMING),
            batch: request.batch,
            priority: request.priority,
            received_ns: request.reply.received_ns(),
            queued_ns: request.reply.queued_ns(),
            deadline_ns: request.deadline_ns,
            cancelled: request.reply.cancelled_word(),
            n_inputs: (self.tensors.len() - inputs) as u32,
            n_outputs: (self.wanted.len() - wanted) as u32,
            n_params: (self.params.len() - params) as u32,
            pad: 0,
            inputs: self.tensors[inputs..].as_ptr(),
            outputs: self.wanted[wanted..].as_ptr(),
            params: self.params[params..].as_ptr(),
            reserved: [0; 4],
        }
    }

    fn text(&mut self, text: &str) -> Str {
        if text.is_empty() {
            return EMPTY;
        }
        // Text lives on the heap: the vector may move its elements, not what they point at.
        self.texts.push(c_text(text));
        view(&self.texts[self.texts.len() - 1])
    }

    fn clear(&mut self) {
        self.slots.clear();
        self.replies.clear();
        self.calls.clear();
        self.call_ptrs.clear();
        self.tensors.clear();
        self.bufs.clear();
        self.shapes.clear();
        self.wanted.clear();
        self.params.clear();
        self.texts.clear();
        self.aligned.clear();
        self.execution = None;
    }

    /// Runs `execute` on this thread with the batch as the plugin gets it.
    pub fn enter<T>(&self, execute: impl FnOnce(*mut Batch) -> T) -> T {
        CURRENT.set(self);
        let result = execute(self.batch.get());
        CURRENT.set(std::ptr::null());
        result
    }

    /// The frame of a batch that a plugin hands back.
    ///
    /// # Safety
    /// `batch` came from [`Frame::batch`] of a frame that still lives.
    pub unsafe fn of_batch<'a>(batch: *const Batch) -> &'a Frame {
        let offset = std::mem::offset_of!(Frame, batch);
        // SAFETY: the batch is a field of its frame.
        unsafe { &*batch.cast::<u8>().sub(offset).cast::<Frame>() }
    }

    /// After `execute` accepted the batch: ends what the plugin neither answered nor kept, and
    /// releases its request. Gives the number of such omissions.
    pub fn settle(&self, omission: &dyn Fn(&Reply) -> Error) -> usize {
        let mut omissions = 0;
        for (slot, reply) in self.slots.iter().zip(&self.replies) {
            if reply.is_retained() {
                continue;
            }
            if !reply.is_ended() {
                omissions += 1;
                let _ = reply.end(Err(omission(reply)));
            }
            // SAFETY: the caller holds the frame.
            unsafe { slot.release() };
        }
        omissions
    }

    /// Ends every reply that is still open with `error` and releases every request.
    pub fn fail(&self, error: &Error) {
        for (slot, reply) in self.slots.iter().zip(&self.replies) {
            if !reply.is_ended() {
                let _ = reply.end(Err(error.clone()));
            }
            // SAFETY: the caller holds the frame.
            unsafe { slot.release() };
        }
    }
}

/// The instance's hold on a frame; a raw pointer, because plugins hold addresses into it at the same time.
pub struct FrameHold(NonNull<Frame>);

impl FrameHold {
    pub fn new() -> Self {
        Self(NonNull::from(Box::leak(Frame::new())))
    }

    /// Only between [`FrameHold::new`] or [`FrameHold::recycle`] and the call of the plugin.
    pub fn frame_mut(&mut self) -> &mut Frame {
        // SAFETY: no request is in the frame, so nobody else has its address.
        unsafe { self.0.as_mut() }
    }

    pub fn frame(&self) -> &Frame {
        // SAFETY: this hold keeps the frame alive.
        unsafe { self.0.as_ref() }
    }

    /// Gives the hold back and gets an empty frame: the same one if nobody else holds it; otherwise
    /// the old one frees itself with the last release.
    pub fn recycle(&mut self) {
        if self.frame().open.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.frame_mut().clear();
        } else {
            *self = Self::new();
        }
    }
}

impl Drop for FrameHold {
    fn drop(&mut self) {
        if self.frame().open.load(Ordering::Acquire) == 0 {
            // SAFETY: no request is in the frame and this was the only hold.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl Default for FrameHold {
    fn default() -> Self {
        Self::new()
    }
}

impl Slot {
    /// Releases the request; false if that was done before.
    ///
    /// # Safety
    /// The frame still lives: true until every slot was released once.
    pub unsafe fn release(&self) -> bool {
        if self.released.swap(true, Ordering::AcqRel) {
            return false;
        }
        // SAFETY: the swap above lets one caller only come here.
        drop(unsafe { (*self.request.get()).take() });
        let frame = self.frame.cast_mut();
        // SAFETY: this slot's share keeps the frame alive up to here.
        if unsafe { (*frame).open.fetch_sub(1, Ordering::AcqRel) } == 1 {
            // SAFETY: last holder; the instance's thread let go before.
            drop(unsafe { Box::from_raw(frame) });
        }
        true
    }
}

thread_local! {
    /// The frame that this thread executes, null in between.
    static CURRENT: Cell<*const Frame> = const { Cell::new(std::ptr::null()) };
}

/// Passes on the times that the plugin has written so far, if this thread executes the batch of
/// `execution`; the batch's times belong to that thread alone.
pub fn note_times(execution: &Arc<Execution>) {
    // SAFETY: set by `enter` for as long as the frame is held by the caller of `enter`.
    let Some(frame) = (unsafe { CURRENT.get().as_ref() }) else { return };
    if frame.execution.as_ref().is_some_and(|e| Arc::ptr_eq(e, execution)) {
        // SAFETY: written by the plugin's `execute` on this very thread.
        let (compute, output) =
            unsafe { ((*frame.batch.get()).t_compute, (*frame.batch.get()).t_output) };
        execution.note_times(compute, output);
    }
}

/// How much room the arrays of a frame need.
#[derive(Default)]
struct Counts {
    inputs: usize,
    dims: usize,
    outputs: usize,
    params: usize,
}

impl Counts {
    fn add(&mut self, request: &InferRequest) {
        self.inputs += request.inputs.len();
        // A reshape may give a tensor more dimensions than the caller's; 8 more is beyond any real model.
        self.dims += request.inputs.iter().map(|i| i.shape.len() + 8).sum::<usize>();
        self.outputs += request.outputs.len();
        self.params += request.parameters.len();
    }

    fn reserve(&self, frame: &mut Frame) {
        frame.calls.reserve(frame.slots.len());
        frame.tensors.reserve(self.inputs);
        frame.bufs.reserve(self.inputs);
        frame.aligned.reserve(self.inputs);
        frame.shapes.reserve(self.dims);
        frame.wanted.reserve(self.outputs);
        frame.params.reserve(self.params);
    }
}
