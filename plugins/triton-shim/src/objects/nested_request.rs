//! A request that a backend makes itself, for nested inference: `TRITONSERVER_InferenceRequest`
//! until it is sent and after it was released.

use super::allocator::ResponseAllocator;
use super::model::ModelObject;
use super::parameter::ParameterValue;
use super::request::RequestObject;
use super::response::ResponseObject;
use crate::fault::{Result, TritonFault};
use crate::handles::LiveObject;
use std::ffi::{CStr, CString, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::abi::inference::Nested;
use trtserver_plugin_api::abi::types::Buf;

/// Gives the request back: request, flags, user pointer.
pub type Released = unsafe extern "C" fn(*mut RequestObject, u32, *mut c_void);
/// Receives a response, which is null if there are flags only: response, flags, user pointer.
pub type Responded = unsafe extern "C" fn(*mut ResponseObject, u32, *mut c_void);

pub struct OwnRequest {
    /// Whose token it was made with.
    pub sender: LiveObject<ModelObject>,
    pub model: CString,
    /// Below 0 = the one that clients reach without a number.
    pub version: i64,
    state: Mutex<RequestState>,
}

/// What the backend has set.
#[derive(Default)]
pub struct RequestState {
    pub id: CString,
    pub flags: u32,
    pub correlation: CorrelationId,
    pub priority: u64,
    pub timeout_us: u64,
    pub params: Vec<(CString, ParameterValue)>,
    pub inputs: Vec<OwnInput>,
    pub outputs: Vec<CString>,
    pub released: Option<(Released, SendPointer)>,
    pub responded: Option<ResponseReceiver>,
    /// Set while the request is on its way.
    pub sent: Option<SentRequest>,
    /// Whether the server was asked to cancel it.
    pub cancelled: bool,
}

#[derive(Default)]
pub enum CorrelationId {
    #[default]
    None,
    Number(u64),
    Text(CString),
}

/// An input; the data stays the backend's until the request is released.
pub struct OwnInput {
    pub name: CString,
    pub dtype: u32,
    pub shape: Vec<i64>,
    pub parts: Vec<Buf>,
}

/// Who receives the responses.
#[derive(Clone, Copy)]
pub struct ResponseReceiver {
    pub allocator: LiveObject<ResponseAllocator>,
    pub allocator_user: SendPointer,
    pub function: Responded,
    pub user: SendPointer,
}

/// A pointer of the backend, which this library only passes on.
#[derive(Clone, Copy)]
pub struct SendPointer(pub *mut c_void);

// SAFETY: not followed here; the interface lets the server pass it to callbacks on any thread.
unsafe impl Send for SendPointer {}
// SAFETY: a shared `SendPointer` gives out its value only and is not followed here.
unsafe impl Sync for SendPointer {}

/// The host's handle of a request on its way.
#[derive(Clone, Copy)]
pub struct SentRequest(pub *mut Nested);

// SAFETY: the host allows its use on any thread.
unsafe impl Send for SentRequest {}

// SAFETY: pieces of inputs are memory of the backend, only read, and only while it keeps them.
unsafe impl Send for OwnInput {}

impl OwnRequest {
    pub fn new(sender: LiveObject<ModelObject>, model: &CStr, version: i64) -> Self {
        Self { sender, model: model.to_owned(), version, state: Mutex::default() }
    }

    pub fn state(&self) -> MutexGuard<'_, RequestState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the backend may change now.
    ///
    /// # Errors
    /// The request is on its way.
    pub fn editable(&self) -> Result<MutexGuard<'_, RequestState>> {
        let state = self.state();
        if state.sent.is_some() {
            let model = self.model.to_string_lossy();
            return Err(TritonFault::misuse(format_args!(
                "the request to model '{model}' was sent and not released yet"
            )));
        }
        Ok(state)
    }
}

impl RequestState {
    /// # Errors
    /// There is no such input.
    pub fn input(&mut self, name: &CStr) -> Result<&mut OwnInput> {
        let found = self.inputs.iter_mut().find(|input| *input.name == *name);
        found.ok_or_else(|| {
            let name = name.to_string_lossy();
            TritonFault::not_found(format_args!("the request has no input '{name}'"))
        })
    }

    /// A parameter with the name of one that is there replaces it.
    pub fn set_param(&mut self, name: &CStr, value: ParameterValue) {
        match self.params.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = value,
            None => self.params.push((name.to_owned(), value)),
        }
    }
}
