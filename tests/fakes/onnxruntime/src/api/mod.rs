//! The functions of the table, over the types of the other files.

#[macro_use]
mod handles; // handles, texts, statuses
mod bindings; // bindings, and runs with one
mod memory; // memory, allocators, arenas
mod options; // environment, options, execution providers
mod sessions; // sessions, and runs without a binding
mod tensors; // tensors, types and shapes

use bindings::*;
use memory::*;
use options::*;
use ort_sys::stub::{self, Error};
use ort_sys::{OrtApi, OrtStatus};
use sessions::*;
use tensors::*;

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
        GetSymbolicDimensions,
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
        RunOptionsSetRunLogSeverityLevel: SetRunLevel,
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
        SetSessionLogId,
        SetSessionGraphOptimizationLevel: SetLevel,
        UpdateCUDAProviderOptions,
        UpdateCUDAProviderOptionsWithValue,
        UpdateTensorRTProviderOptions,
        UpdateTensorRTProviderOptionsWithValue,
        ..stub::api()
    }
}
