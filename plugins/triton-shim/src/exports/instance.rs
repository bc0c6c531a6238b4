//! `TRITONBACKEND_ModelInstance*`: name, kind, devices, state.

use super::guard::{List, Out, export};
use super::model::report_memory;
use crate::fault::Fault;
use crate::handles::Live;
use crate::objects::attributes::BufferAttributes;
use crate::objects::instance::Instance;
use crate::objects::message::Message;
use crate::objects::model::Model;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

fn no_such(what: &str, index: u32, n: usize) -> Fault {
    Fault::invalid(format_args!("the instance has {n} {what}, index {index} is none of them"))
}

export! {
    /// The name, owned by the instance.
    fn TRITONBACKEND_ModelInstanceName(instance: Live<Instance>, name: Out<*const c_char>) {
        name.set(instance.name.as_ptr());
    }

    /// The kind: 1 CPU, 2 GPU, 3 model.
    fn TRITONBACKEND_ModelInstanceKind(instance: Live<Instance>, kind: Out<c_int>) {
        kind.set(instance.kind);
    }

    /// The GPU; 0 for other kinds.
    fn TRITONBACKEND_ModelInstanceDeviceId(instance: Live<Instance>, device_id: Out<i32>) {
        device_id.set(instance.device_id);
    }

    /// Name and settings of the host policy, a message owned by the server.
    fn TRITONBACKEND_ModelInstanceHostPolicy(
        instance: Live<Instance>,
        host_policy: Out<*mut Message>,
    ) {
        host_policy.set(instance.host_policy.raw());
    }

    /// Whether the instance is loaded and never executed.
    fn TRITONBACKEND_ModelInstanceIsPassive(instance: Live<Instance>, is_passive: Out<u8>) {
        is_passive.set(instance.passive.into());
    }

    /// Number of optimisation profiles.
    fn TRITONBACKEND_ModelInstanceProfileCount(instance: Live<Instance>, count: Out<u32>) {
        count.set(instance.profiles.len() as u32);
    }

    /// Name of a profile, owned by the instance.
    fn TRITONBACKEND_ModelInstanceProfileName(
        instance: Live<Instance>,
        index: u32,
        profile_name: Out<*const c_char>,
    ) {
        let n = instance.profiles.len();
        let profile = instance.profiles.get(index as usize);
        profile_name.set(profile.ok_or_else(|| no_such("profiles", index, n))?.as_ptr());
    }

    /// Number of secondary devices.
    fn TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance: Live<Instance>, count: Out<u32>) {
        count.set(instance.secondary.len() as u32);
    }

    /// Kind, owned by the instance, and id of a secondary device.
    fn TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
        instance: Live<Instance>,
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
    fn TRITONBACKEND_ModelInstanceModel(instance: Live<Instance>, model: Out<*mut Model>) {
        model.set(instance.model.raw());
    }

    /// The backend's own pointer.
    fn TRITONBACKEND_ModelInstanceState(instance: Live<Instance>, state: Out<*mut c_void>) {
        state.set(instance.state.load(Ordering::Acquire));
    }

    /// Stores the backend's own pointer.
    fn TRITONBACKEND_ModelInstanceSetState(instance: Live<Instance>, state: *mut c_void) {
        instance.state.store(state, Ordering::Release);
    }

    /// Reports memory that the instance has beside the server's. The list stays the caller's.
    fn TRITONBACKEND_ModelInstanceReportMemoryUsage(
        instance: Live<Instance>,
        usage: List<BufferAttributes>,
        usage_size: u32,
    ) {
        report_memory(&instance.scope, &usage.of(usage_size.into())?)?;
    }
}
