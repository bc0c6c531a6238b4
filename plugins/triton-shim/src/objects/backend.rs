//! `TRITONBACKEND_Backend`: a backend library under the name that configurations use.

use super::memory::MemoryManager;
use super::message::Message;
use crate::handles::{Kind, Live, Object};
use crate::loader::entries::Entries;
use std::ffi::{CString, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr};

pub struct Backend {
    pub name: CString,
    /// Directory of the library, or of a backend's model.py; no slash at the end.
    pub dir: CString,
    pub entries: &'static Entries,
    /// `{"cmdline": {…}}`
    pub config: Live<Message>,
    pub memory: Live<MemoryManager>,
    /// Pointer that the backend stores here for its own use.
    pub state: AtomicPtr<c_void>,
    /// 0 blocking, 1 device-blocking.
    pub policy: AtomicI32,
    /// `TRITONBACKEND_Initialize` is running.
    pub initializing: AtomicBool,
}

impl Object for Backend {
    const KIND: Kind = Kind::Backend;
}

/// `TRITONBACKEND_BackendAttribute`: what a backend says of itself in `TRITONBACKEND_GetBackendAttribute`.
#[derive(Default)]
pub struct Attribute {
    /// Kind as Triton numbers it, and count; the most preferred first.
    pub preferred: Mutex<Vec<(i32, u64)>>,
    pub parallel: AtomicBool,
}

impl Object for Attribute {
    const KIND: Kind = Kind::Attribute;
}
