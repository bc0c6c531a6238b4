//! `TRITONBACKEND_ModelInstance`: what executes batches.

use super::message::MessageObject;
use super::model::ModelObject;
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use crate::scope::Scope;
use std::ffi::{CString, c_void};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;

pub struct InstanceObject {
    pub model: LiveObject<ModelObject>,
    pub name: CString,
    /// As Triton numbers kinds.
    pub kind: i32,
    pub device_id: i32,
    /// `{"<policy>": {…}}`
    pub host_policy: LiveObject<MessageObject>,
    pub passive: bool,
    pub profiles: Vec<CString>,
    pub secondary: Vec<(CString, i64)>,
    pub scope: Arc<Scope>,
    /// Pointer that the backend stores here for its own use.
    pub state: AtomicPtr<c_void>,
}

impl TypedObject for InstanceObject {
    const KIND: ObjectKind = ObjectKind::Instance;
}

/// Triton's numbers of instance kinds.
pub mod kind {
    pub const AUTO: i32 = 0;
    pub const CPU: i32 = 1;
    pub const GPU: i32 = 2;
    pub const MODEL: i32 = 3;
}
