//! `TRITONBACKEND_Backend`: a backend library under the name that configurations use.

use super::memory::MemoryManager;
use super::message::MessageObject;
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use crate::loader::entries::BackendEntries;
use std::ffi::{CString, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr};

pub struct BackendObject {
    pub name: CString,
    /// Directory of the library, or of a backend's model.py; no slash at the end.
    pub dir: CString,
    pub entries: &'static BackendEntries,
    /// `{"cmdline": {…}}`
    pub config: LiveObject<MessageObject>,
    pub memory: LiveObject<MemoryManager>,
    /// Pointer that the backend stores here for its own use.
    pub state: AtomicPtr<c_void>,
    /// 0 blocking, 1 device-blocking.
    pub policy: AtomicI32,
    /// `TRITONBACKEND_Initialize` is running.
    pub initializing: AtomicBool,
}

impl TypedObject for BackendObject {
    const KIND: ObjectKind = ObjectKind::Backend;
}

/// `TRITONBACKEND_BackendAttribute`: what a backend says of itself in
/// `TRITONBACKEND_GetBackendAttribute`.
#[derive(Default)]
pub struct BackendAttribute {
    /// Kind as Triton numbers it, and count; the most preferred first.
    pub preferred: Mutex<Vec<(i32, u64)>>,
    pub parallel: AtomicBool,
}

impl TypedObject for BackendAttribute {
    const KIND: ObjectKind = ObjectKind::Attribute;
}
