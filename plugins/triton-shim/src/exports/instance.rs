//! `TRITONBACKEND_ModelInstance*`: name, kind, devices, state.

use super::guard::{List, Out, export};
use super::model::report_memory;
use crate::fault::TritonFault;
use crate::handles::LiveObject;
use crate::objects::attributes::BufferAttributes;
use crate::objects::instance::InstanceObject;
use crate::objects::message::MessageObject;
use crate::objects::model::ModelObject;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

fn no_such(what: &str, index: u32, n: usize) -> TritonFault {
    TritonFault::invalid(format_args!("the instance has {n} {what}, index {index} is none of them"))
}

export! {
    /// The name, owned by the instance.
    fn TRITONBACKEND_ModelInstanceName(instance: LiveObject<InstanceObject>, name: Out<*const c_char>) {
        name.set(instance.name.as_ptr());
    }

    /// The kind: 1 CPU, 2 GPU, 3 model.
    fn TRITONBACKEND_ModelInstanceKind(instance: LiveObject<InstanceObject>, kind: Out<c_int>) {
        kind.set(instance.kind);
    }

    /// The GPU; 0 for other kinds.
    fn TRITONBACKEND_ModelInstanceDeviceId(instance: LiveObject<InstanceObject>, device_id: Out<i32>) {
        device_id.set(instance.device_id);
    }

    /// Name and settings of the host policy, a message owned by the server.
    fn TRITONBACKEND_ModelInstanceHostPolicy(
        instance: LiveObject<InstanceObject>,
        host_policy: Out<*mut MessageObject>,
    ) {
        host_policy.set(instance.host_policy.raw());
    }

    /// Whether the instance is loaded and never executed.
    fn TRITONBACKEND_ModelInstanceIsPassive(instance: LiveObject<InstanceObject>, is_passive: Out<u8>) {
        is_passive.set(instance.passive.into());
    }

    /// Number of optimisation profiles.
    fn TRITONBACKEND_ModelInstanceProfileCount(instance: LiveObject<InstanceObject>, count: Out<u32>) {
        count.set(instance.profiles.len() as u32);
    }

    /// Name of a profile, owned by the instance.
    fn TRITONBACKEND_ModelInstanceProfileName(
        instance: LiveObject<InstanceObject>,
        index: u32,
        profile_name: Out<*const c_char>,
    ) {
        let n = instance.profiles.len();
        let profile = instance.profiles.get(index as usize);
        profile_name.set(profile.ok_or_else(|| no_such("profiles", index, n))?.as_ptr());
    }

    /// Number of secondary devices.
    fn TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance: LiveObject<InstanceObject>, count: Out<u32>) {
        count.set(instance.secondary.len() as u32);
    }

    /// Kind, owned by the instance, and id of a secondary device.
    fn TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
        instance: LiveObject<InstanceObject>,
        index: u32,
        kind: Out<*const c_char>,
        id: Out<i64>,
    ) {
        let n = instance.secondary.len();
        let device = instance.secondary.get(index as usize);
        let device = device.ok_or_else(|| no_such("secondary devices", index, n))?;
        kind.set(device.0.as_ptr());
        id.set(device.1);
    }

    /// The model of the instance.
    fn TRITONBACKEND_ModelInstanceModel(instance: LiveObject<InstanceObject>, model: Out<*mut ModelObject>) {
        model.set(instance.model.raw());
    }

    /// The backend's own pointer.
    fn TRITONBACKEND_ModelInstanceState(instance: LiveObject<InstanceObject>, state: Out<*mut c_void>) {
        state.set(instance.state.load(Ordering::Acquire));
    }

    /// Stores the backend's own pointer.
    fn TRITONBACKEND_ModelInstanceSetState(instance: LiveObject<InstanceObject>, state: *mut c_void) {
        instance.state.store(state, Ordering::Release);
    }

    /// Reports memory that the instance has beside the server's. The list stays the caller's.
    fn TRITONBACKEND_ModelInstanceReportMemoryUsage(
        instance: LiveObject<InstanceObject>,
        usage: List<BufferAttributes>,
        usage_size: u32,
    ) {
        report_memory(&instance.scope, &usage.objects(usage_size.into())?)?;
    }
}
