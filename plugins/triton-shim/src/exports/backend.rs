//! `TRITONBACKEND_ApiVersion`, `TRITONBACKEND_Backend*`, `TRITONBACKEND_BackendAttribute*`.

use super::guard::{Flag, Out, export};
use crate::fault::TritonFault;
use crate::handles::LiveObject;
use crate::objects::backend::{BackendAttribute, BackendObject};
use crate::objects::instance::kind;
use crate::objects::memory::MemoryManager;
use crate::objects::message::MessageObject;
use std::ffi::{c_char, c_int, c_void};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

/// The version of the backend interface that this library offers.
pub const API_VERSION: (u32, u32) = (1, 19);

export! {
    /// The version of this interface. A backend built for another major, or a later minor, version
    /// refuses it.
    fn TRITONBACKEND_ApiVersion(major: Out<u32>, minor: Out<u32>) {
        major.set(API_VERSION.0);
        minor.set(API_VERSION.1);
    }

    /// The name that configurations use, owned by the backend.
    fn TRITONBACKEND_BackendName(backend: LiveObject<BackendObject>, name: Out<*const c_char>) {
        name.set(backend.name.as_ptr());
    }

    /// The settings of the backend, a message owned by the server.
    fn TRITONBACKEND_BackendConfig(backend: LiveObject<BackendObject>, backend_config: Out<*mut MessageObject>) {
        backend_config.set(backend.config.raw());
    }

    /// 0 if an instance blocks in its Execute, 1 if its device does.
    fn TRITONBACKEND_BackendExecutionPolicy(backend: LiveObject<BackendObject>, policy: Out<c_int>) {
        policy.set(backend.policy.load(Ordering::Relaxed));
    }

    /// Sets the policy, during `TRITONBACKEND_Initialize` only. Instances execute independently
    /// with either policy: each has a thread of its own.
    fn TRITONBACKEND_BackendSetExecutionPolicy(backend: LiveObject<BackendObject>, policy: c_int) {
        if !matches!(policy, 0 | 1) {
            return Err(TritonFault::misuse(format_args!("execution policy {policy} is unknown")));
        }
        if !backend.initializing.load(Ordering::Acquire) {
            return Err(TritonFault::misuse("the policy is set in TRITONBACKEND_Initialize only"));
        }
        backend.policy.store(policy, Ordering::Relaxed);
    }

    /// The directory of the library, owned by the backend.
    fn TRITONBACKEND_BackendArtifacts(
        backend: LiveObject<BackendObject>,
        artifact_type: Out<c_int>,
        location: Out<*const c_char>,
    ) {
        artifact_type.set(0);
        location.set(backend.dir.as_ptr());
    }

    /// The memory manager, owned by the server.
    fn TRITONBACKEND_BackendMemoryManager(
        backend: LiveObject<BackendObject>,
        manager: Out<*mut MemoryManager>,
    ) {
        manager.set(backend.memory.raw());
    }

    /// The backend's own pointer.
    fn TRITONBACKEND_BackendState(backend: LiveObject<BackendObject>, state: Out<*mut c_void>) {
        state.set(backend.state.load(Ordering::Acquire));
    }

    /// Stores the backend's own pointer.
    fn TRITONBACKEND_BackendSetState(backend: LiveObject<BackendObject>, state: *mut c_void) {
        backend.state.store(state, Ordering::Release);
    }

    /// Instances to make where the configuration names none, the most preferred first. The server
    /// chooses the devices.
    fn TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
        backend_attributes: LiveObject<BackendAttribute>,
        kind: c_int,
        count: u64,
        _device_ids: *const u64,
        _id_count: u64,
    ) {
        if !matches!(kind, kind::AUTO..=kind::MODEL) {
            return Err(TritonFault::misuse(format_args!("instance kind {kind} is unknown")));
        }
        let mut preferred =
            backend_attributes.preferred.lock().unwrap_or_else(PoisonError::into_inner);
        preferred.push((kind, count));
    }

    /// Instances may be initialised at the same time.
    fn TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(
        backend_attributes: LiveObject<BackendAttribute>,
        enabled: Flag,
    ) {
        backend_attributes.parallel.store(enabled.0, Ordering::Relaxed);
    }
}
