//! The environment, options of sessions and runs, execution providers.

use super::handles::{OK, Texts, handle, new_text, release, text};
use crate::session::{Provider, RunOptions, SessionOptions};
use ort_sys::*;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_void};

/// Functions that only make or free a handle.
macro_rules! handles {
    ($($new:ident($type:ty, $raw:ty) $release:ident;)*) => { $(
        pub unsafe extern "system" fn $new(out: *mut *mut $raw) -> OrtStatusPtr {
            give!(out, handle(<$type>::default()));
            OK
        }
        pub unsafe extern "system" fn $release(it: *mut $raw) {
            // SAFETY: the caller's handle.
            unsafe { release::<$type, _>(it) }
        }
    )* };
}

handles! {
    CreateSessionOptions(SessionOptions, OrtSessionOptions) ReleaseSessionOptions;
    CreateRunOptions(RunOptions, OrtRunOptions) ReleaseRunOptions;
    CreateCUDAProviderOptions(Provider, OrtCUDAProviderOptionsV2) ReleaseCUDAProviderOptions;
    CreateTensorRTProviderOptions(Provider, OrtTensorRTProviderOptionsV2) ReleaseTensorRTProviderOptions;
}

fn pairs(keys: Texts, values: Texts, n: usize) -> BTreeMap<String, String> {
    // SAFETY: the caller passes `n` C strings each.
    (0..n).map(|i| unsafe { (text(*keys.add(i)), text(*values.add(i))) }).collect()
}

macro_rules! providers {
    ($($name:literal $raw:ty: $update:ident $with_value:ident $append:ident;)*) => { $(
        pub unsafe extern "system" fn $update(it: *mut $raw, k: Texts, v: Texts, n: usize) -> OrtStatusPtr {
            at_mut!(it, Provider).options.extend(pairs(k, v, n));
            OK
        }
        pub unsafe extern "system" fn $with_value(it: *mut $raw, key: *const c_char, value: *mut c_void) -> OrtStatusPtr {
            if text(key) == "user_compute_stream" {
                at_mut!(it, Provider).stream = value.addr();
            }
            OK
        }
        pub unsafe extern "system" fn $append(options: *mut OrtSessionOptions, it: *const $raw) -> OrtStatusPtr {
            let provider = Provider { name: $name, ..at!(it, Provider).clone() };
            at_mut!(options, SessionOptions).providers.push(provider);
            OK
        }
    )* };
}

providers! {
    "CUDA" OrtCUDAProviderOptionsV2: UpdateCUDAProviderOptions UpdateCUDAProviderOptionsWithValue AppendCuda;
    "TensorRT" OrtTensorRTProviderOptionsV2: UpdateTensorRTProviderOptions UpdateTensorRTProviderOptionsWithValue AppendTensorRt;
}

pub unsafe extern "system" fn CreateEnvWithCustomLogger(
    _: OrtLoggingFunction,
    _: *mut c_void,
    _: OrtLoggingLevel,
    _: *const c_char,
    out: *mut *mut OrtEnv,
) -> OrtStatusPtr {
    give!(out, handle(0u64));
    OK
}

pub unsafe extern "system" fn DisableTelemetryEvents(_: *const OrtEnv) -> OrtStatusPtr {
    OK
}

pub unsafe extern "system" fn AddRunConfigEntry(
    it: *mut OrtRunOptions,
    key: *const c_char,
    value: *const c_char,
) -> OrtStatusPtr {
    at_mut!(it, RunOptions).entries.insert(text(key), text(value));
    OK
}

pub unsafe extern "system" fn AddSessionConfigEntry(
    _: *mut OrtSessionOptions,
    _: *const c_char,
    _: *const c_char,
) -> OrtStatusPtr {
    OK
}

macro_rules! ignored {
    ($($name:ident($($type:ty),*);)*) => { $(
        pub unsafe extern "system" fn $name($(_: $type),*) -> OrtStatusPtr { OK }
    )* };
}

ignored! {
    SetNumThreads(*mut OrtSessionOptions, c_int);
    SetMode(*mut OrtSessionOptions, ExecutionMode);
    SetLevel(*mut OrtSessionOptions, GraphOptimizationLevel);
    Switch(*mut OrtSessionOptions);
    SetSessionLogId(*mut OrtSessionOptions, *const c_char);
    SetRunLevel(*mut OrtRunOptions, c_int);
}

pub unsafe extern "system" fn GetAvailableProviders(
    out: *mut *mut *mut c_char,
    n: *mut c_int,
) -> OrtStatusPtr {
    let names = std::env::var("FAKE_ORT_PROVIDERS").unwrap_or_else(|_| {
        "TensorrtExecutionProvider,CUDAExecutionProvider,CPUExecutionProvider".to_owned()
    });
    let mut list: Vec<_> = names.split(',').map(new_text).collect();
    give!(n, list.len() as c_int);
    give!(out, list.as_mut_ptr());
    std::mem::forget(list);
    OK
}

pub unsafe extern "system" fn ReleaseAvailableProviders(
    _: *mut *mut c_char,
    _: c_int,
) -> OrtStatusPtr {
    OK // leaked, see `AllocatorFree`
}
