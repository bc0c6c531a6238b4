//! Bindings, and runs with one.

use super::handles::{OK, handle, release, status, text};
use crate::session::{Binding, RunOptions, Session, Target};
use crate::value::{MemoryInfo, Place, Value};
use ort_sys::*;
use std::ffi::c_char;
use std::sync::Arc;

pub unsafe extern "system" fn CreateIoBinding(
    session: *mut OrtSession,
    out: *mut *mut OrtIoBinding,
) -> OrtStatusPtr {
    let session = session.cast_const().cast();
    give!(out, handle(Binding { session, inputs: vec![], outputs: vec![], results: vec![] }));
    OK
}

pub unsafe extern "system" fn ReleaseIoBinding(it: *mut OrtIoBinding) {
    // SAFETY: the caller's handle.
    unsafe { release::<Binding, _>(it) }
}

pub unsafe extern "system" fn BindInput(
    it: *mut OrtIoBinding,
    name: *const c_char,
    value: *const OrtValue,
) -> OrtStatusPtr {
    let (binding, name, value) = (at_mut!(it, Binding), text(name), Arc::clone(at!(value, Value)));
    let fits = at!(binding.session, Session).check_place(&name, value.place);
    status(fits.map(|()| binding.inputs.push((name, value))))
}

fn bind_output(
    it: *mut OrtIoBinding,
    name: *const c_char,
    target: Target,
    place: Place,
) -> OrtStatusPtr {
    let (binding, name) = (at_mut!(it, Binding), text(name));
    let fits = at!(binding.session, Session).check_place(&name, place);
    status(fits.map(|()| binding.outputs.push((name, target))))
}

pub unsafe extern "system" fn BindOutput(
    it: *mut OrtIoBinding,
    name: *const c_char,
    value: *const OrtValue,
) -> OrtStatusPtr {
    let value = Arc::clone(at!(value, Value));
    let place = value.place;
    bind_output(it, name, Target::Value(value), place)
}

pub unsafe extern "system" fn BindOutputToDevice(
    it: *mut OrtIoBinding,
    name: *const c_char,
    info: *const OrtMemoryInfo,
) -> OrtStatusPtr {
    let place = at!(info, MemoryInfo).place;
    bind_output(it, name, Target::Allocated, place)
}

pub unsafe extern "system" fn ClearBoundInputs(it: *mut OrtIoBinding) {
    at_mut!(it, Binding).inputs.clear();
}

pub unsafe extern "system" fn ClearBoundOutputs(it: *mut OrtIoBinding) {
    at_mut!(it, Binding).outputs.clear();
    at_mut!(it, Binding).results.clear();
}

pub unsafe extern "system" fn RunWithBinding(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    it: *const OrtIoBinding,
) -> OrtStatusPtr {
    let binding = at_mut!(it.cast_mut(), Binding);
    let entries = &at!(options, RunOptions).entries;
    let wait =
        entries.get("disable_synchronize_execution_providers").is_none_or(|value| value != "1");
    let graph = entries.get("gpu_graph_id").map_or("0", String::as_str);
    let ran = at!(session, Session).run(&binding.inputs, &binding.outputs, wait, graph);
    status(ran.map(|results| binding.results = results))
}

pub unsafe extern "system" fn GetBoundOutputValues(
    it: *const OrtIoBinding,
    _: *mut OrtAllocator,
    out: *mut *mut *mut OrtValue,
    n: *mut usize,
) -> OrtStatusPtr {
    let mut list: Vec<*mut OrtValue> =
        at!(it, Binding).results.iter().map(|value| handle(Arc::clone(value))).collect();
    give!(n, list.len());
    give!(out, list.as_mut_ptr());
    std::mem::forget(list); // see `AllocatorFree`
    OK
}
