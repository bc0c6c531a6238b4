//! The functions of the table, over the types of the other files.

use crate::model::{Declared, Model};
use crate::session::{Binding, Provider, RunOptions, Session, SessionOptions, Target};
use crate::value::{MemoryInfo, Place, Tensor, Value};
use ort_sys::stub::{self, Error};
use ort_sys::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{self, null_mut};
use std::sync::Arc;

const OK: OrtStatusPtr = OrtStatusPtr(null_mut());

fn status(result: Result<(), String>) -> OrtStatusPtr {
    result.map_or_else(|text| Error::new_sys(OrtErrorCode::ORT_RUNTIME_EXCEPTION, text), |()| OK)
}

/// A reference to what a handle points at.
macro_rules! at {
    ($handle:expr, $type:ty) => {
        // SAFETY: the caller passes handles of this library, which are alive.
        unsafe { &*$handle.cast::<$type>() }
    };
}

/// The same, to change it.
macro_rules! at_mut {
    ($handle:expr, $type:ty) => {
        // SAFETY: as above; only one thread at a time uses a handle that functions change.
        unsafe { &mut *$handle.cast::<$type>() }
    };
}

/// Writes a result of a function.
macro_rules! give {
    ($out:expr, $value:expr) => {{
        let (out, value) = ($out, $value);
        // SAFETY: the caller passes a pointer for the result.
        unsafe { out.write(value) }
    }};
}

fn handle<T, H>(value: T) -> *mut H {
    Box::into_raw(Box::new(value)).cast()
}

/// # Safety
/// A handle of `handle`, not used any more, or null.
unsafe fn release<T, H>(handle: *mut H) {
    if !handle.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(handle.cast::<T>()) });
    }
}

fn text(p: *const c_char) -> String {
    // SAFETY: the caller passes C strings.
    unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
}

fn new_text(text: &str) -> *mut c_char {
    CString::new(text).unwrap_or_default().into_raw()
}

/// Functions that only make or free a handle.
macro_rules! handles {
    ($($new:ident($type:ty, $raw:ty) $release:ident;)*) => { $(
        unsafe extern "system" fn $new(out: *mut *mut $raw) -> OrtStatusPtr {
            give!(out, handle(<$type>::default()));
            OK
        }
        unsafe extern "system" fn $release(it: *mut $raw) {
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

type Texts = *const *const c_char;

fn pairs(keys: Texts, values: Texts, n: usize) -> BTreeMap<String, String> {
    // SAFETY: the caller passes `n` C strings each.
    (0..n).map(|i| unsafe { (text(*keys.add(i)), text(*values.add(i))) }).collect()
}

macro_rules! providers {
    ($($name:literal $raw:ty: $update:ident $with_value:ident $append:ident;)*) => { $(
        unsafe extern "system" fn $update(it: *mut $raw, k: Texts, v: Texts, n: usize) -> OrtStatusPtr {
            at_mut!(it, Provider).options.extend(pairs(k, v, n));
            OK
        }
        unsafe extern "system" fn $with_value(it: *mut $raw, key: *const c_char, value: *mut c_void) -> OrtStatusPtr {
            if text(key) == "user_compute_stream" {
                at_mut!(it, Provider).stream = value.addr();
            }
            OK
        }
        unsafe extern "system" fn $append(options: *mut OrtSessionOptions, it: *const $raw) -> OrtStatusPtr {
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

unsafe extern "system" fn CreateEnvWithCustomLogger(
    _: OrtLoggingFunction,
    _: *mut c_void,
    _: OrtLoggingLevel,
    _: *const c_char,
    out: *mut *mut OrtEnv,
) -> OrtStatusPtr {
    give!(out, handle(0u64));
    OK
}

unsafe extern "system" fn DisableTelemetryEvents(_: *const OrtEnv) -> OrtStatusPtr {
    OK
}

unsafe extern "system" fn CreateCpuMemoryInfo(
    _: OrtAllocatorType,
    _: OrtMemType,
    out: *mut *mut OrtMemoryInfo,
) -> OrtStatusPtr {
    give!(out, handle(MemoryInfo { place: Place::Cpu }));
    OK
}

unsafe extern "system" fn CreateMemoryInfo(
    name: *const c_char,
    _: OrtAllocatorType,
    id: c_int,
    _: OrtMemType,
    out: *mut *mut OrtMemoryInfo,
) -> OrtStatusPtr {
    let place = if text(name) == "Cuda" { Place::Cuda(id) } else { Place::Cpu };
    give!(out, handle(MemoryInfo { place }));
    OK
}

unsafe extern "system" fn ReleaseMemoryInfo(info: *mut OrtMemoryInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<MemoryInfo, _>(info) }
}

unsafe extern "system" fn MemoryInfoGetDeviceType(
    info: *const OrtMemoryInfo,
    out: *mut OrtMemoryInfoDeviceType,
) {
    give!(
        out,
        match at!(info, MemoryInfo).place {
            Place::Cpu => OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_CPU,
            Place::Cuda(_) => OrtMemoryInfoDeviceType::OrtMemoryInfoDeviceType_GPU,
        }
    );
}

unsafe extern "system" fn MemoryInfoGetDeviceMemType(
    _: *const OrtMemoryInfo,
) -> OrtDeviceMemoryType {
    OrtDeviceMemoryType::OrtDeviceMemoryType_DEFAULT
}

unsafe extern "system" fn AddRunConfigEntry(
    it: *mut OrtRunOptions,
    key: *const c_char,
    value: *const c_char,
) -> OrtStatusPtr {
    at_mut!(it, RunOptions).entries.insert(text(key), text(value));
    OK
}

unsafe extern "system" fn AddSessionConfigEntry(
    _: *mut OrtSessionOptions,
    _: *const c_char,
    _: *const c_char,
) -> OrtStatusPtr {
    OK
}

macro_rules! ignored {
    ($($name:ident($($type:ty),*);)*) => { $(
        unsafe extern "system" fn $name($(_: $type),*) -> OrtStatusPtr { OK }
    )* };
}

ignored! {
    SetNumThreads(*mut OrtSessionOptions, c_int);
    SetMode(*mut OrtSessionOptions, ExecutionMode);
    SetLevel(*mut OrtSessionOptions, GraphOptimizationLevel);
    Switch(*mut OrtSessionOptions);
}

unsafe extern "system" fn GetAllocatorWithDefaultOptions(
    out: *mut *mut OrtAllocator,
) -> OrtStatusPtr {
    // Its memory is freed by `AllocatorFree`, which needs no state.
    give!(out, ptr::without_provenance_mut(64));
    OK
}

/// Texts and lists are some bytes per session and run of a test: they are leaked.
unsafe extern "system" fn AllocatorFree(_: *mut OrtAllocator, _: *mut c_void) -> OrtStatusPtr {
    OK
}

unsafe extern "system" fn GetAvailableProviders(
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

unsafe extern "system" fn ReleaseAvailableProviders(_: *mut *mut c_char, _: c_int) -> OrtStatusPtr {
    OK // leaked, see `AllocatorFree`
}

unsafe extern "system" fn CreateSession(
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

unsafe extern "system" fn ReleaseSession(session: *mut OrtSession) {
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
        unsafe extern "system" fn $count(session: *const OrtSession, out: *mut usize) -> OrtStatusPtr {
            give!(out, $list(&at!(session, Session).model).len());
            OK
        }
        unsafe extern "system" fn $name(
            session: *const OrtSession,
            index: usize,
            _: *mut OrtAllocator,
            out: *mut *mut c_char,
        ) -> OrtStatusPtr {
            give!(out, new_text(&$list(&at!(session, Session).model)[index].name));
            OK
        }
        unsafe extern "system" fn $info(session: *const OrtSession, index: usize, out: *mut *mut OrtTypeInfo) -> OrtStatusPtr {
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
        unsafe extern "system" fn $name(session: *const OrtSession, out: *mut *const OrtMemoryInfo, n: usize) -> OrtStatusPtr {
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

/// A tensor's element type and dimensions, as type info and as shape info.
type Info = (i32, Vec<i64>);

unsafe extern "system" fn GetOnnxTypeFromTypeInfo(
    _: *const OrtTypeInfo,
    out: *mut ONNXType,
) -> OrtStatusPtr {
    give!(out, ONNXType::ONNX_TYPE_TENSOR);
    OK
}

unsafe extern "system" fn CastTypeInfoToTensorInfo(
    info: *const OrtTypeInfo,
    out: *mut *const OrtTensorTypeAndShapeInfo,
) -> OrtStatusPtr {
    give!(out, info.cast());
    OK
}

unsafe extern "system" fn GetTensorElementType(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut ONNXTensorElementDataType,
) -> OrtStatusPtr {
    give!(out.cast::<i32>(), at!(info, Info).0);
    OK
}

unsafe extern "system" fn GetDimensionsCount(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut usize,
) -> OrtStatusPtr {
    give!(out, at!(info, Info).1.len());
    OK
}

unsafe extern "system" fn GetDimensions(
    info: *const OrtTensorTypeAndShapeInfo,
    out: *mut i64,
    n: usize,
) -> OrtStatusPtr {
    for (i, dim) in at!(info, Info).1.iter().enumerate().take(n) {
        // SAFETY: the caller passes a list of `n`.
        unsafe { out.add(i).write(*dim) };
    }
    OK
}

unsafe extern "system" fn GetTensorTypeAndShape(
    value: *const OrtValue,
    out: *mut *mut OrtTensorTypeAndShapeInfo,
) -> OrtStatusPtr {
    let value = at!(value, Value);
    give!(out, handle((value.element, value.shape.clone())));
    OK
}

unsafe extern "system" fn ReleaseTypeInfo(info: *mut OrtTypeInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<Info, _>(info) }
}

unsafe extern "system" fn ReleaseTensorTypeAndShapeInfo(info: *mut OrtTensorTypeAndShapeInfo) {
    // SAFETY: the caller's handle.
    unsafe { release::<Info, _>(info) }
}

unsafe extern "system" fn CreateTensorWithDataAsOrtValue(
    info: *const OrtMemoryInfo,
    data: *mut c_void,
    bytes: usize,
    shape: *const i64,
    rank: usize,
    element: ONNXTensorElementDataType,
    out: *mut *mut OrtValue,
) -> OrtStatusPtr {
    // SAFETY: the caller passes `rank` dimensions.
    let shape = unsafe { std::slice::from_raw_parts(shape, rank) };
    let place = at!(info, MemoryInfo).place;
    let made = Tensor::over(element as i32, shape, data.cast(), bytes, place);
    status(made.map(|tensor| give!(out, handle(Arc::new(tensor)))))
}

unsafe extern "system" fn ReleaseValue(value: *mut OrtValue) {
    // SAFETY: the caller's handle.
    unsafe { release::<Value, _>(value) }
}

unsafe extern "system" fn IsTrue(_: *const OrtValue, out: *mut c_int) -> OrtStatusPtr {
    give!(out, 1);
    OK
}

unsafe extern "system" fn GetTensorMutableData(
    value: *mut OrtValue,
    out: *mut *mut c_void,
) -> OrtStatusPtr {
    give!(out, at!(value, Value).data.cast());
    OK
}

unsafe extern "system" fn CreateIoBinding(
    session: *mut OrtSession,
    out: *mut *mut OrtIoBinding,
) -> OrtStatusPtr {
    let session = session.cast_const().cast();
    give!(out, handle(Binding { session, inputs: vec![], outputs: vec![], results: vec![] }));
    OK
}

unsafe extern "system" fn ReleaseIoBinding(it: *mut OrtIoBinding) {
    // SAFETY: the caller's handle.
    unsafe { release::<Binding, _>(it) }
}

unsafe extern "system" fn BindInput(
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

unsafe extern "system" fn BindOutput(
    it: *mut OrtIoBinding,
    name: *const c_char,
    value: *const OrtValue,
) -> OrtStatusPtr {
    let value = Arc::clone(at!(value, Value));
    let place = value.place;
    bind_output(it, name, Target::Value(value), place)
}

unsafe extern "system" fn BindOutputToDevice(
    it: *mut OrtIoBinding,
    name: *const c_char,
    info: *const OrtMemoryInfo,
) -> OrtStatusPtr {
    let place = at!(info, MemoryInfo).place;
    bind_output(it, name, Target::Allocated, place)
}

unsafe extern "system" fn ClearBoundInputs(it: *mut OrtIoBinding) {
    at_mut!(it, Binding).inputs.clear();
}

unsafe extern "system" fn ClearBoundOutputs(it: *mut OrtIoBinding) {
    at_mut!(it, Binding).outputs.clear();
    at_mut!(it, Binding).results.clear();
}

unsafe extern "system" fn RunWithBinding(
    session: *mut OrtSession,
    options: *const OrtRunOptions,
    it: *const OrtIoBinding,
) -> OrtStatusPtr {
    let binding = at_mut!(it.cast_mut(), Binding);
    let entries = &at!(options, RunOptions).entries;
    let wait =
        entries.get("disable_synchronize_execution_providers").is_none_or(|value| value != "1");
    let ran = at!(session, Session).run(&binding.inputs, &binding.outputs, wait);
    status(ran.map(|results| binding.results = results))
}

unsafe extern "system" fn GetBoundOutputValues(
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

/// Runs on the CPU, without a binding.
unsafe extern "system" fn Run(
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
    let ran = at!(session, Session).run(&given, &requested, true);
    status(ran.map(|results| {
        for (i, value) in results.into_iter().enumerate() {
            // SAFETY: as above.
            unsafe {
                if (*outputs.add(i)).is_null() {
                    outputs.add(i).write(handle(value));
                }
            }
        }
    }))
}

unsafe extern "system" fn CreateAllocator(
    session: *const OrtSession,
    _: *const OrtMemoryInfo,
    out: *mut *mut OrtAllocator,
) -> OrtStatusPtr {
    let Some(gpu) = &at!(session, Session).gpu else {
        return status(Err("the session has no arena of a device".to_owned()));
    };
    give!(out, handle(Arc::clone(&gpu.arena)));
    OK
}

type ArenaHandle = Arc<crate::arena::Arena>;

unsafe extern "system" fn ReleaseAllocator(it: *mut OrtAllocator) {
    // SAFETY: the caller's handle.
    unsafe { release::<ArenaHandle, _>(it) }
}

unsafe extern "system" fn AllocatorGetStats(
    it: *const OrtAllocator,
    out: *mut *mut OrtKeyValuePairs,
) -> OrtStatusPtr {
    let total = at!(it, ArenaHandle).total();
    give!(out, handle(CString::new(total.to_string()).unwrap_or_default()));
    OK
}

unsafe extern "system" fn GetKeyValue(
    it: *const OrtKeyValuePairs,
    key: *const c_char,
) -> *const c_char {
    if text(key) == "TotalAllocated" { at!(it, CString).as_ptr() } else { ptr::null() }
}

unsafe extern "system" fn ReleaseKeyValuePairs(it: *mut OrtKeyValuePairs) {
    // SAFETY: the caller's handle.
    unsafe { release::<CString, _>(it) }
}

unsafe extern "system" fn ReleaseStatus(status: *mut OrtStatus) {
    // SAFETY: the caller's status, made by `stub::Error`.
    drop(unsafe { Error::consume_sys(status) });
}

pub fn table() -> OrtApi {
    OrtApi {
        AddRunConfigEntry,
        AddSessionConfigEntry,
        AllocatorFree,
        AllocatorGetStats,
        BindInput,
        BindOutput,
        BindOutputToDevice,
        CastTypeInfoToTensorInfo,
        ClearBoundInputs,
        ClearBoundOutputs,
        CreateAllocator,
        CreateCUDAProviderOptions,
        CreateCpuMemoryInfo,
        CreateEnvWithCustomLogger,
        CreateIoBinding,
        CreateMemoryInfo,
        CreateRunOptions,
        CreateSession,
        CreateSessionOptions,
        CreateTensorRTProviderOptions,
        CreateTensorWithDataAsOrtValue,
        DisableCpuMemArena: Switch,
        DisableMemPattern: Switch,
        DisableTelemetryEvents,
        EnableCpuMemArena: Switch,
        EnableMemPattern: Switch,
        GetAllocatorWithDefaultOptions,
        GetAvailableProviders,
        GetBoundOutputValues,
        GetDimensions,
        GetDimensionsCount,
        GetKeyValue,
        GetOnnxTypeFromTypeInfo,
        GetTensorElementType,
        GetTensorMutableData,
        GetTensorTypeAndShape,
        HasValue: IsTrue,
        IsTensor: IsTrue,
        MemoryInfoGetDeviceMemType,
        MemoryInfoGetDeviceType,
        ReleaseAllocator,
        ReleaseAvailableProviders,
        ReleaseCUDAProviderOptions,
        ReleaseIoBinding,
        ReleaseKeyValuePairs,
        ReleaseMemoryInfo,
        ReleaseRunOptions,
        ReleaseSession,
        ReleaseSessionOptions,
        ReleaseStatus,
        ReleaseTensorRTProviderOptions,
        ReleaseTensorTypeAndShapeInfo,
        ReleaseTypeInfo,
        ReleaseValue,
        Run,
        RunWithBinding,
        SessionGetInputCount,
        SessionGetInputName,
        SessionGetInputTypeInfo,
        SessionGetMemoryInfoForInputs,
        SessionGetMemoryInfoForOutputs,
        SessionGetOutputCount,
        SessionGetOutputName,
        SessionGetOutputTypeInfo,
        SessionGetOverridableInitializerCount: NoCount,
        SessionGetOverridableInitializerName: NoName,
        SessionGetOverridableInitializerTypeInfo: NoInfo,
        SessionOptionsAppendExecutionProvider_CUDA_V2: AppendCuda,
        SessionOptionsAppendExecutionProvider_TensorRT_V2: AppendTensorRt,
        SetInterOpNumThreads: SetNumThreads,
        SetIntraOpNumThreads: SetNumThreads,
        SetSessionExecutionMode: SetMode,
        SetSessionGraphOptimizationLevel: SetLevel,
        UpdateCUDAProviderOptions,
        UpdateCUDAProviderOptionsWithValue,
        UpdateTensorRTProviderOptions,
        UpdateTensorRTProviderOptionsWithValue,
        ..stub::api()
    }
}
