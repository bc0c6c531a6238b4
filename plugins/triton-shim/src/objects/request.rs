//! `TRITONBACKEND_Request`, which is also `TRITONSERVER_InferenceRequest`, and
//! `TRITONBACKEND_Input`.

use super::attributes::BufferAttributes;
use super::nested_request::OwnRequest;
use super::reply::RequestReply;
use super::trace::TraceObject;
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, ObjectKind, TypedObject, create_object};
use smallvec::SmallVec;
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_plugin_api::abi::request::{self, request_flags};
use trtserver_plugin_api::abi::types::{Buf, Tensor, tensor_flags};

pub struct RequestObject {
    pub source: RequestSource,
}

/// Where a request comes from.
pub enum RequestSource {
    /// The host passed it to `execute`.
    Host(HostRequest),
    /// The backend made it, for nested inference.
    Own(Box<OwnRequest>),
}

/// A request of the host, valid until the backend releases it.
pub struct HostRequest {
    view: *const request::Request,
    /// One reference of it.
    pub reply: LiveObject<RequestReply>,
    pub inputs: SmallVec<[LiveObject<InputObject>; 4]>,
    /// Made when the backend asks for it.
    trace: OnceLock<Option<LiveObject<TraceObject>>>,
}

// SAFETY: a view is read-only, and the host allows its use on any thread.
unsafe impl Send for HostRequest {}
// SAFETY: threads only read a view, which the host keeps valid until the request is released.
unsafe impl Sync for HostRequest {}

impl TypedObject for RequestObject {
    const KIND: ObjectKind = ObjectKind::Request;
}

impl HostRequest {
    /// Makes the handles of a request; `reply` has one reference for it.
    ///
    /// # Safety
    /// The view stays valid until the request is released.
    pub unsafe fn new(
        view: *const request::Request,
        reply: LiveObject<RequestReply>,
    ) -> HostRequest {
        // SAFETY: by the caller's promise.
        let tensors = unsafe { view_slice((*view).inputs, (*view).n_inputs) };
        // Backends make the inputs that describe a batch themselves, from the configuration.
        let tensors = tensors.iter().filter(|tensor| tensor.flags & tensor_flags::BATCH == 0);
        let inputs = tensors.map(|tensor| create_object(InputObject::new(tensor))).collect();
        HostRequest { view, reply, inputs, trace: OnceLock::new() }
    }

    pub fn view(&self) -> &request::Request {
        // SAFETY: valid until the release, which frees this object.
        unsafe { &*self.view }
    }

    /// The outputs that the client asked for. Those that the host added for the state of a sequence
    /// have no place in the configuration's list of outputs.
    pub fn requested_outputs(&self) -> impl Iterator<Item = &request::RequestedOutput> {
        let view = self.view();
        // SAFETY: valid as long as the view.
        let all = unsafe { view_slice(view.requested_outputs, view.n_requested_outputs) };
        all.iter().filter(|output| output.index != u32::MAX)
    }

    /// Names of the states that the request may write.
    pub fn states(&self) -> impl Iterator<Item = &[u8]> {
        let view = self.view();
        // SAFETY: valid as long as the view.
        let all = unsafe { view_slice(view.requested_outputs, view.n_requested_outputs) };
        let states = all.iter().filter(|output| output.index == u32::MAX);
        // SAFETY: the host keeps the names of requested outputs valid as long as the view.
        states.map(|output| unsafe { view_slice(output.name.p, output.name.n as u32) })
    }

    pub fn params(&self) -> &[trtserver_plugin_api::abi::types::Param] {
        // SAFETY: valid as long as the view.
        unsafe { view_slice(self.view().params, self.view().n_params) }
    }

    /// The trace of the request, if it has one.
    pub fn trace(&self) -> Option<LiveObject<TraceObject>> {
        if self.view().flags & request_flags::TRACED == 0 {
            return None;
        }
        let make = || TraceObject::new(self.reply.responder()).map(create_object);
        *self.trace.get_or_init(make)
    }

    /// Ends the life of the inputs and of the trace.
    pub fn free_parts(&mut self) {
        if let Some(Some(trace)) = self.trace.take() {
            let _ = handles::free_object(trace.raw());
        }
        for input in self.inputs.drain(..) {
            if let Ok(input) = handles::free_object(input.raw()) {
                input.free_attributes();
            }
        }
    }
}

/// A list of the host.
///
/// # Safety
/// `n` elements at `p` are valid for `'a`.
pub unsafe fn view_slice<'a, T>(p: *const T, n: u32) -> &'a [T] {
    if p.is_null() || n == 0 {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

impl RequestObject {
    /// The host's request behind the handle.
    ///
    /// # Errors
    /// The backend made the request itself, for nested inference.
    pub fn host(&self) -> Result<&HostRequest> {
        match &self.source {
            RequestSource::Host(request) => Ok(request),
            RequestSource::Own(own) => Err(TritonFault::misuse(format_args!(
                "the request was made for nested inference in model '{}', the server did not pass it",
                own.model.to_string_lossy()
            ))),
        }
    }

    /// The request that the backend has made.
    ///
    /// # Errors
    /// The server passed it to the backend.
    pub fn own(&self) -> Result<&OwnRequest> {
        match &self.source {
            RequestSource::Own(request) => Ok(request),
            RequestSource::Host(_) => Err(TritonFault::misuse(
                "the server passed the request, it was not made for nested inference",
            )),
        }
    }
}

/// One input; valid as long as its request.
pub struct InputObject {
    tensor: *const Tensor,
    /// Attributes of each buffer, made when they are first read.
    attributes: Mutex<SmallVec<[LiveObject<BufferAttributes>; 2]>>,
}

// SAFETY: tensors are read-only, and the host allows their use on any thread.
unsafe impl Send for InputObject {}
// SAFETY: threads only read a tensor, which the host keeps valid as long as its request.
unsafe impl Sync for InputObject {}

impl TypedObject for InputObject {
    const KIND: ObjectKind = ObjectKind::Input;
}

impl InputObject {
    fn new(tensor: &Tensor) -> InputObject {
        InputObject { tensor, attributes: Mutex::default() }
    }

    pub fn tensor(&self) -> &Tensor {
        // SAFETY: valid until the request is released, which frees this object.
        unsafe { &*self.tensor }
    }

    pub fn parts(&self) -> &[Buf] {
        // SAFETY: valid as long as the tensor.
        unsafe { view_slice(self.tensor().parts, self.tensor().n_parts) }
    }

    /// # Errors
    /// There is no such buffer.
    pub fn part(&self, index: u32) -> Result<&Buf> {
        let (parts, n) = (self.parts(), self.tensor().n_parts);
        parts.get(index as usize).ok_or_else(|| {
            let name = self.name();
            TritonFault::invalid(format_args!(
                "input '{name}' has {n} buffers, index {index} is none of them"
            ))
        })
    }

    pub fn is_named(&self, name: &std::ffi::CStr) -> bool {
        // SAFETY: valid as long as the tensor.
        let own = unsafe { view_slice(self.tensor().name.p, self.tensor().name.n as u32) };
        own == name.to_bytes()
    }

    pub fn name(&self) -> std::borrow::Cow<'_, str> {
        // SAFETY: valid as long as the tensor.
        unsafe { crate::host::str_text(self.tensor().name) }
    }

    pub fn attributes(&self, index: u32) -> Result<LiveObject<BufferAttributes>> {
        self.part(index)?;
        let mut made = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        if made.is_empty() {
            made.extend(self.parts().iter().map(|p| BufferAttributes::create(p.bytes, p.memory)));
        }
        made.get(index as usize).copied().ok_or_else(|| TritonFault::internal("no such buffer"))
    }

    fn free_attributes(self) {
        for attributes in self.attributes.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let _ = handles::free_object(attributes.raw());
        }
    }
}
