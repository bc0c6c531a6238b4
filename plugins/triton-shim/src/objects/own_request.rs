//! A request that a backend makes itself, for nested inference: `TRITONSERVER_InferenceRequest` until it is sent and after it was
//! released.

use super::allocator::Allocator;
use super::model::Model;
use super::parameter::Value;
use super::request::Request;
use super::response::Response;
use crate::fault::{Fault, Result};
use crate::handles::Live;
use std::ffi::{CStr, CString, c_void};
use std::sync::{Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::abi::inference::Nested;
use trtserver_plugin_api::abi::types::Buf;

/// Gives the request back: request, flags, user pointer.
pub type Released = unsafe extern "C" fn(*mut Request, u32, *mut c_void);
/// Receives a response, which is null if there are flags only: response, flags, user pointer.
pub type Responded = unsafe extern "C" fn(*mut Response, u32, *mut c_void);

pub struct OwnRequest {
    /// Whose token it was made with.
    pub sender: Live<Model>,
    pub model: CString,
    /// Below 0 = the one that clients reach without a number.
    pub version: i64,
    state: Mutex<State>,
}

/// What the backend has set.
#[derive(Default)]
pub struct State {
    pub id: CString,
    pub flags: u32,
    pub correlation: Correlation,
    pub priority: u64,
    pub timeout_us: u64,
    pub params: Vec<(CString, Value)>,
    pub inputs: Vec<OwnInput>,
    pub outputs: Vec<CString>,
    pub released: Option<(Released, Pointer)>,
    pub responded: Option<Receiver>,
    /// Set while the request is on its way.
    pub sent: Option<Sent>,
    /// Whether the server was asked to cancel it.
    pub cancelled: bool,
}

#[derive(Default)]
pub enum Correlation {
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
pub struct Receiver {
    pub allocator: Live<Allocator>,
    pub allocator_user: Pointer,
    pub function: Responded,
    pub user: Pointer,
}

/// A pointer of the backend, which this library only passes on.
#[derive(Clone, Copy)]
pub struct Pointer(pub *mut c_void);

// SAFETY: not followed here; the interface lets the server pass it to callbacks on any thread.
unsafe impl Send for Pointer {}
// SAFETY: a shared `Pointer` gives out its value only and is not followed here.
unsafe impl Sync for Pointer {}

/// The host's handle of a request on its way.
#[derive(Clone, Copy)]
pub struct Sent(pub *mut Nested);

// SAFETY: the host allows its use on any thread.
unsafe impl Send for Sent {}

// SAFETY: pieces of inputs are memory of the backend, only read, and only while it keeps them.
unsafe impl Send for OwnInput {}

impl OwnRequest {
    pub fn new(sender: Live<Model>, model: &CStr, version: i64) -> Self {
        Self { sender, model: model.to_owned(), version, state: Mutex::default() }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the backend may change now.
    ///
    /// # Errors
    /// The request is on its way.
    pub fn editable(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        if state.sent.is_some() {
            let model = self.model.to_string_lossy();
            return Err(Fault::misuse(format_args!(
                "the request to model '{model}' was sent and not released yet"
            )));
        }
        Ok(state)
    }
}

impl State {
    /// # Errors
    /// There is no such input.
    pub fn input(&mut self, name: &CStr) -> Result<&mut OwnInput> {
        let found = self.inputs.iter_mut().find(|input| *input.name == *name);
        found.ok_or_else(|| {
            let name = name.to_string_lossy();
            Fault::not_found(format_args!("the request has no input '{name}'"))
        })
    }

    /// A parameter with the name of one that is there replaces it.
    pub fn set_param(&mut self, name: &CStr, value: Value) {
        match self.params.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, known)) => *known = value,
            None => self.params.push((name.to_owned(), value)),
        }
    }
}
