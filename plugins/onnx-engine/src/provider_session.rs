//! Adds execution providers to the options of a session.

use crate::accelerators::ProviderOptions;
use crate::provider::ExecutionProvider;
use crate::runtime::{OnnxRuntime, ort};
use ort_sys::OrtSessionOptions;
use std::collections::BTreeMap;
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::author::Stream;

/// The GPU of a session, and the CUDA stream on which it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionDevice {
    pub id: i32,
    /// Valid as long as the session.
    pub stream: Stream,
}

/// Option names and values as C strings.
struct Pairs {
    _texts: Vec<[CString; 2]>,
    keys: Vec<*const c_char>,
    values: Vec<*const c_char>,
}

impl Pairs {
    fn new(options: &BTreeMap<String, String>) -> Result<Self, PluginFault> {
        let mut texts = Vec::with_capacity(options.len());
        for (key, value) in options {
            let (Ok(key), Ok(value)) = (CString::new(key.as_str()), CString::new(value.as_str()))
            else {
                return Err(PluginFault::invalid(format!("option '{key}' holds a NUL byte")));
            };
            texts.push([key, value]);
        }
        let keys = texts.iter().map(|[key, _]| key.as_ptr()).collect();
        let values = texts.iter().map(|[_, value]| value.as_ptr()).collect();
        Ok(Self { _texts: texts, keys, values })
    }
}

/// Adds a provider behind the present ones of `options`.
///
/// # Safety
/// `options` are alive; the stream of the device outlives the session.
pub unsafe fn append_provider(
    runtime: &OnnxRuntime,
    options: *mut OrtSessionOptions,
    requested: &ProviderOptions,
    device: Option<SessionDevice>,
) -> Result<(), PluginFault> {
    let mut all = requested.options.clone();
    if let Some(device) = device {
        all.insert("device_id".to_owned(), device.id.to_string());
    }
    let pairs = Pairs::new(&all)?;
    let stream = device.map_or(ptr::null_mut(), |device| device.stream.as_raw().cast());
    // SAFETY: by the caller's promise; the pairs are copied during the calls.
    let added = unsafe {
        match requested.provider {
            ExecutionProvider::Cuda => append_cuda(runtime, options, &pairs, stream),
            ExecutionProvider::TensorRt => append_tensorrt(runtime, options, &pairs, stream),
            ExecutionProvider::OpenVino => ort!(
                runtime,
                SessionOptionsAppendExecutionProvider_OpenVINO_V2(
                    options,
                    pairs.keys.as_ptr(),
                    pairs.values.as_ptr(),
                    pairs.keys.len()
                )
            ),
        }
    };
    added.map_err(|fault| fault.within(requested.provider.name()))
}

/// Creates the options of a provider, sets them, adds the provider and frees the options. Expands
/// to an unsafe expression.
macro_rules! append_with {
    ($runtime:ident, $session:ident, $pairs:ident, $stream:ident,
     $create:ident, $update:ident, $with_value:ident, $append:ident, $release:ident) => {{
        let mut made = ptr::null_mut();
        ort!($runtime, $create(&raw mut made))?;
        let set = || {
            let (keys, values) = ($pairs.keys.as_ptr(), $pairs.values.as_ptr());
            ort!($runtime, $update(made, keys, values, $pairs.keys.len()))?;
            ort!($runtime, $with_value(made, c"user_compute_stream".as_ptr(), $stream))?;
            ort!($runtime, $append($session, made))
        };
        let added = set();
        ((*$runtime.api).$release)(made);
        added
    }};
}

/// # Safety
/// The conditions of [`append_provider`].
unsafe fn append_cuda(
    runtime: &OnnxRuntime,
    session: *mut OrtSessionOptions,
    pairs: &Pairs,
    stream: *mut c_void,
) -> Result<(), PluginFault> {
    // SAFETY: by the caller's promise; the provider's options are alive until their release.
    unsafe {
        append_with!(
            runtime,
            session,
            pairs,
            stream,
            CreateCUDAProviderOptions,
            UpdateCUDAProviderOptions,
            UpdateCUDAProviderOptionsWithValue,
            SessionOptionsAppendExecutionProvider_CUDA_V2,
            ReleaseCUDAProviderOptions
        )
    }
}

/// # Safety
/// The conditions of [`append_provider`].
unsafe fn append_tensorrt(
    runtime: &OnnxRuntime,
    session: *mut OrtSessionOptions,
    pairs: &Pairs,
    stream: *mut c_void,
) -> Result<(), PluginFault> {
    // SAFETY: the caller promises live session options and stream; the provider's options are alive
    // until their release.
    unsafe {
        append_with!(
            runtime,
            session,
            pairs,
            stream,
            CreateTensorRTProviderOptions,
            UpdateTensorRTProviderOptions,
            UpdateTensorRTProviderOptionsWithValue,
            SessionOptionsAppendExecutionProvider_TensorRT_V2,
            ReleaseTensorRTProviderOptions
        )
    }
}
