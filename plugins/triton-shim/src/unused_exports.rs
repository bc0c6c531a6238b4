//! Functions that no known backend calls, such as those for programs that embed Triton. Backends
//! import them all the same, and the loader resolves every import; so they exist, and answer
//! "unsupported", which is logged once for each.
#![allow(non_snake_case, reason = "the names are Triton's")]
#![allow(clippy::missing_safety_doc, reason = "nothing is read or written")]

use crate::exports::guard::guard_export;
use crate::fault::TritonFault;
use crate::objects::error::ErrorObject;
use crate::scope;
use std::sync::atomic::{AtomicBool, Ordering};

/// Refuses a call.
fn refuse(name: &str, subject: &str, logged: &AtomicBool) -> *mut ErrorObject {
    guard_export(name, || {
        let text = format!("{name} is not supported: {subject}");
        if !logged.swap(true, Ordering::Relaxed)
            && let Some(scope) = scope::current_scope()
        {
            scope.warn(&format!("backend '{}' called it: {text}", scope.backend()));
        }
        Err(TritonFault::unsupported(text))
    })
}

/// Exports functions that answer "unsupported". Their arguments are not looked at, so they need not
/// be declared: by the C calling conventions of Linux the caller passes and removes them.
macro_rules! unsupported {
    ($($subject:literal: $($name:ident)*;)*) => { $($(
        #[doc = concat!("Unsupported: ", $subject, ".")]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() -> *mut ErrorObject {
            static LOGGED: AtomicBool = AtomicBool::new(false);
            refuse(stringify!($name), $subject, &LOGGED)
        }
    )*)* };
}

unsupported! {
    "a nested request names its inputs":
        TRITONSERVER_InferenceRequestAddRawInput;

    "nested requests have no classification":
        TRITONSERVER_InferenceResponseOutputClassificationLabel;

    "the server writes traces itself":
        TRITONSERVER_InferenceTraceId
        TRITONSERVER_InferenceTraceModelName
        TRITONSERVER_InferenceTraceModelVersion
        TRITONSERVER_InferenceTraceNew
        TRITONSERVER_InferenceTraceParentId
        TRITONSERVER_InferenceTraceRequestId
        TRITONSERVER_InferenceTraceSetContext
        TRITONSERVER_InferenceTraceTensorNew;

    "the server is configured by its command line":
        TRITONSERVER_ServerOptionsAddRateLimiterResource
        TRITONSERVER_ServerOptionsDelete
        TRITONSERVER_ServerOptionsNew
        TRITONSERVER_ServerOptionsSetBackendConfig
        TRITONSERVER_ServerOptionsSetBackendDirectory
        TRITONSERVER_ServerOptionsSetBufferManagerThreadCount
        TRITONSERVER_ServerOptionsSetCacheConfig
        TRITONSERVER_ServerOptionsSetCacheDirectory
        TRITONSERVER_ServerOptionsSetCpuMetrics
        TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize
        TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize
        TRITONSERVER_ServerOptionsSetEnablePeerAccess
        TRITONSERVER_ServerOptionsSetExitOnError
        TRITONSERVER_ServerOptionsSetExitTimeout
        TRITONSERVER_ServerOptionsSetGpuMetrics
        TRITONSERVER_ServerOptionsSetHostPolicy
        TRITONSERVER_ServerOptionsSetLogError
        TRITONSERVER_ServerOptionsSetLogFile
        TRITONSERVER_ServerOptionsSetLogFormat
        TRITONSERVER_ServerOptionsSetLogInfo
        TRITONSERVER_ServerOptionsSetLogVerbose
        TRITONSERVER_ServerOptionsSetLogWarn
        TRITONSERVER_ServerOptionsSetMetrics
        TRITONSERVER_ServerOptionsSetMetricsConfig
        TRITONSERVER_ServerOptionsSetMetricsInterval
        TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability
        TRITONSERVER_ServerOptionsSetModelConfigName
        TRITONSERVER_ServerOptionsSetModelControlMode
        TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit
        TRITONSERVER_ServerOptionsSetModelLoadRetryCount
        TRITONSERVER_ServerOptionsSetModelLoadThreadCount
        TRITONSERVER_ServerOptionsSetModelNamespacing
        TRITONSERVER_ServerOptionsSetModelRepositoryPath
        TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize
        TRITONSERVER_ServerOptionsSetRateLimiterMode
        TRITONSERVER_ServerOptionsSetRepoAgentDirectory
        TRITONSERVER_ServerOptionsSetResponseCacheByteSize
        TRITONSERVER_ServerOptionsSetServerId
        TRITONSERVER_ServerOptionsSetStartupModel
        TRITONSERVER_ServerOptionsSetStrictModelConfig
        TRITONSERVER_ServerOptionsSetStrictReadiness;

    "a backend cannot do this to the server that runs it":
        TRITONSERVER_ServerDelete
        TRITONSERVER_ServerIsLive
        TRITONSERVER_ServerIsReady
        TRITONSERVER_ServerMetadata
        TRITONSERVER_ServerMetrics
        TRITONSERVER_ServerModelBatchProperties
        TRITONSERVER_ServerModelConfig
        TRITONSERVER_ServerModelIndex
        TRITONSERVER_ServerModelMetadata
        TRITONSERVER_ServerModelStatistics
        TRITONSERVER_ServerNew
        TRITONSERVER_ServerPollModelRepository
        TRITONSERVER_ServerRegisterModelRepository
        TRITONSERVER_ServerSetExitTimeout
        TRITONSERVER_ServerStop
        TRITONSERVER_ServerUnregisterModelRepository;

    "the server shows its metrics itself":
        TRITONSERVER_MetricsDelete
        TRITONSERVER_MetricsFormatted;

    "this server has no repository agents":
        TRITONREPOAGENT_ModelConfig
        TRITONREPOAGENT_ModelParameter
        TRITONREPOAGENT_ModelParameterCount
        TRITONREPOAGENT_ModelRepositoryLocation
        TRITONREPOAGENT_ModelRepositoryLocationAcquire
        TRITONREPOAGENT_ModelRepositoryLocationRelease
        TRITONREPOAGENT_ModelRepositoryUpdate
        TRITONREPOAGENT_ModelSetState
        TRITONREPOAGENT_ModelState
        TRITONREPOAGENT_SetState
        TRITONREPOAGENT_State;

    "this server has no response caches":
        TRITONCACHE_CacheEntryAddBuffer
        TRITONCACHE_CacheEntryBufferCount
        TRITONCACHE_CacheEntryGetBuffer
        TRITONCACHE_CacheEntrySetBuffer
        TRITONCACHE_Copy;
}
