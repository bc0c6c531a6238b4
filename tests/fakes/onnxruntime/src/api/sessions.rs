//! Sessions: their inputs and outputs, and runs without a binding.

use super::handles::{OK, Texts, handle, new_text, release, status, text};
use crate::model::{Declared, Model};
use crate::session::{Session, SessionOptions, Target};
use crate::value::Value;
use ort_sys::*;
use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

pub unsafe extern "system" fn CreateSession(
    _: *const OrtEnv,
    path: *const c_char,
    options: *const OrtSessionOptions,
    out: *mut *mut OrtSession,
) -> OrtStatusPtr {
    let opened = std::fs::read_to_string(text(path))
        .map_err(|e| e.to_string())
        .and_then(|model| Session::open(&model, at!(options, SessionOptions)));
    status(opened.map(|session| give!(out, handle(session))))
}

pub unsafe extern "system" fn ReleaseSession(session: *mut OrtSession) {
    // SAFETY: the caller's handle.
    unsafe { release::<Session, _>(session) }
}

fn inputs(model: &Model) -> Vec<&Declared> {
    model.inputs.iter().collect()
}

fn outputs(model: &Model) -> Vec<&Declared> {
    model.outputs.iter().map(|(declared, _)| declared).collect()
}

fn none(_: &Model) -> Vec<&Declared> {
    Vec::new()
}

macro_rules! tensors {
    ($($list:ident: $count:ident $name:ident $info:ident;)*) => { $(
        pub unsafe extern "system" fn $count(session: *const OrtSession, out: *mut usize) -> OrtStatusPtr {
            give!(out, $list(&at!(session, Session).model).len());
            OK
        }
        pub unsafe extern "system" fn $name(
            session: *const OrtSession,
            index: usize,
            _: *mut OrtAllocator,
            out: *mut *mut c_char,
        ) -> OrtStatusPtr {
            give!(out, new_text(&$list(&at!(session, Session).model)[index].name));
            OK
        }
        pub unsafe extern "system" fn $info(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) -> OrtStatusPtr {
            let declared = $list(&at!(session, Session).model)[index];
            give!(out, handle((declared.element, declared.dims.clone())));
            OK
        }
    )* };
}

tensors! {
    inputs: SessionGetInputCount SessionGetInputName SessionGetInputTypeInfo;
    outputs: SessionGetOutputCount SessionGetOutputName SessionGetOutputTypeInfo;
    none: NoCount NoName NoInfo;
}

macro_rules! places {
    ($($list:ident: $name:ident;)*) => { $(
        pub unsafe extern "system" fn $name(session: *const OrtSession, out: *mut *const OrtMemoryInfo, n: usize) -> OrtStatusPtr {
            let session = at!(session, Session);
            for (i, declared) in $list(&session.model).into_iter().enumerate().take(n) {
                // SAFETY: the caller passes a list of `n`.
                unsafe { out.add(i).write(ptr::from_ref(session.info_of(declared)).cast()) };
            }
            OK
        }
    )* };
}

places! {
    inputs: SessionGetMemoryInfoForInputs;
    outputs: SessionGetMemoryInfoForOutputs;
}

/// Runs on the CPU, without a binding.
pub unsafe extern "system" fn Run(
    session: *mut OrtSession,
    _: *const OrtRunOptions,
    input_names: Texts,
    inputs: *const *const OrtValue,
    n_inputs: usize,
    output_names: Texts,
    n_outputs: usize,
    outputs: *mut *mut OrtValue,
) -> OrtStatusPtr {
    // SAFETY: the caller passes lists of these lengths.
    let (input_names, inputs, output_names, wanted) = unsafe {
        use std::slice::from_raw_parts;
        (
            from_raw_parts(input_names, n_inputs),
            from_raw_parts(inputs, n_inputs),
            from_raw_parts(output_names, n_outputs),
            from_raw_parts(outputs, n_outputs),
        )
    };
    let given = input_names.iter().zip(inputs);
    let given: Vec<_> =
        given.map(|(name, value)| (text(*name), Arc::clone(at!(*value, Value)))).collect();
    let target = |value: *mut OrtValue| match value.is_null() {
        true => Target::Allocated,
        false => Target::Value(Arc::clone(at!(value, Value))),
    };
    let requested = output_names.iter().zip(wanted);
    let requested: Vec<_> = requested.map(|(name, value)| (text(*name), target(*value))).collect();
    let ran = at!(session, Session).run(&given, &requested, true, "0");
    status(ran.map(|results| {
        for (i, value) in results.into_iter().enumerate() {
            // SAFETY: the caller passes a list of `n_outputs` values, as many as there are results.
            unsafe {
                if (*outputs.add(i)).is_null() {
                    outputs.add(i).write(handle(value));
                }
            }
        }
    }))
}
