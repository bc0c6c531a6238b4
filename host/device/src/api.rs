//! The functions of the CUDA driver library that the server calls, looked up at run time.
//!
//! Types and constants are cudarc's. Its functions are not used: they end the process where the
//! library or one of its functions is missing, though an old driver lacks some that the server can
//! do without, and their result is an enum, which a newer driver's code would make undefined
//! behaviour.

use super::codes::SUCCESS;
use cudarc::driver::sys;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::path::Path;
use std::ptr::null;

pub type CuContext = sys::CUcontext;
pub type CuStream = sys::CUstream;
pub type CuEvent = sys::CUevent;
pub type CuPool = sys::CUmemoryPool;
/// An address in the unified address space of host and devices.
pub type CuPtr = sys::CUdeviceptr;

pub const STREAM_NON_BLOCKING: c_uint = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as c_uint;
/// A thread that waits for the event sleeps; the event has no time stamp.
pub const EVENT_FLAGS: c_uint = sys::CUevent_flags::CU_EVENT_BLOCKING_SYNC as c_uint
    | sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as c_uint;
/// The memory is pinned for all contexts.
pub const HOST_ALLOC_PORTABLE: c_uint = sys::CU_MEMHOSTALLOC_PORTABLE;
pub const HOST_REGISTER_PORTABLE: c_uint = sys::CU_MEMHOSTREGISTER_PORTABLE;
pub const IPC_LAZY_PEER_ACCESS: c_uint =
    sys::CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as c_uint;

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CudaError {
    pub function: &'static str,
    pub code: u32,
    /// The driver's name and description of the code.
    pub text: String,
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed: {}", self.function, self.text)
    }
}

/// Writes a constant string for a result code.
type ErrorText = unsafe extern "C" fn(u32, *mut *const c_char) -> u32;

/// Declares [`CudaApi`]: for each function its name here, its symbols (newest first) and its
/// arguments. A function behind `optional` may be missing.
macro_rules! functions {
    (
        texts { $($text:ident $text_symbols:tt;)* }
        required { $($name:ident $symbols:tt ($($arg:ident: $kind:ty),*);)* }
        optional { $($may:ident $may_symbols:tt ($($may_arg:ident: $may_kind:ty),*);)* }
    ) => {
        /// The functions, resolved. The library is never closed.
        pub struct CudaApi {
            $($text: ErrorText,)*
            $($name: unsafe extern "C" fn($($kind),*) -> u32,)*
            $($may: Option<unsafe extern "C" fn($($may_kind),*) -> u32>,)*
        }

        impl CudaApi {
            fn resolve(library: &libloading::Library) -> Result<Self, String> {
                Ok(Self {
                    $($text: find_symbol(library, &$text_symbols).ok_or_else(|| missing_symbol(&$text_symbols))?,)*
                    $($name: find_symbol(library, &$symbols).ok_or_else(|| missing_symbol(&$symbols))?,)*
                    $($may: find_symbol(library, &$may_symbols),)*
                })
            }

            $(
                /// # Safety
                /// As the driver's documentation of the function requires.
                #[allow(clippy::too_many_arguments, reason = "the driver's signature")]
                pub unsafe fn $name(&self, $($arg: $kind),*) -> Result<(), CudaError> {
                    // SAFETY: the caller keeps the function's requirements.
                    let code = unsafe { (self.$name)($($arg),*) };
                    self.check($symbols[0], code)
                }
            )*
            $(
                /// # Safety
                /// As the driver's documentation of the function requires.
                pub unsafe fn $may(&self, $($may_arg: $may_kind),*) -> Result<(), CudaError> {
                    let Some(function) = self.$may else {
                        return Err(self.lacks($may_symbols[0]));
                    };
                    // SAFETY: the caller keeps the function's requirements.
                    let code = unsafe { function($($may_arg),*) };
                    self.check($may_symbols[0], code)
                }
            )*
        }
    };
}

functions! {
    texts {
        error_name ["cuGetErrorName"];
        error_string ["cuGetErrorString"];
    }
    required {
        init ["cuInit"] (flags: c_uint);
        driver_version ["cuDriverGetVersion"] (version: *mut c_int);
        device_count ["cuDeviceGetCount"] (count: *mut c_int);
        device_get ["cuDeviceGet"] (device: *mut c_int, ordinal: c_int);
        device_name ["cuDeviceGetName"] (name: *mut c_char, size: c_int, device: c_int);
        device_total_memory ["cuDeviceTotalMem_v2"] (bytes: *mut usize, device: c_int);
        device_attribute ["cuDeviceGetAttribute"] (value: *mut c_int, attribute: sys::CUdevice_attribute, device: c_int);
        device_pci_bus_id ["cuDeviceGetPCIBusId"] (text: *mut c_char, size: c_int, device: c_int);
        device_uuid ["cuDeviceGetUuid_v2", "cuDeviceGetUuid"] (uuid: *mut sys::CUuuid, device: c_int);
        primary_context_retain ["cuDevicePrimaryCtxRetain"] (context: *mut CuContext, device: c_int);
        context_current ["cuCtxGetCurrent"] (context: *mut CuContext);
        context_push ["cuCtxPushCurrent_v2"] (context: CuContext);
        context_pop ["cuCtxPopCurrent_v2"] (context: *mut CuContext);
        context_set ["cuCtxSetCurrent"] (context: CuContext);
        stream_priority_range ["cuCtxGetStreamPriorityRange"] (least: *mut c_int, greatest: *mut c_int);
        stream_create ["cuStreamCreateWithPriority"] (stream: *mut CuStream, flags: c_uint, priority: c_int);
        stream_destroy ["cuStreamDestroy_v2"] (stream: CuStream);
        stream_synchronize ["cuStreamSynchronize"] (stream: CuStream);
        stream_wait_event ["cuStreamWaitEvent"] (stream: CuStream, event: CuEvent, flags: c_uint);
        event_create ["cuEventCreate"] (event: *mut CuEvent, flags: c_uint);
        event_record ["cuEventRecord"] (event: CuEvent, stream: CuStream);
        event_query ["cuEventQuery"] (event: CuEvent);
        event_synchronize ["cuEventSynchronize"] (event: CuEvent);
        memory_alloc ["cuMemAlloc_v2"] (address: *mut CuPtr, bytes: usize);
        memory_free ["cuMemFree_v2"] (address: CuPtr);
        memory_info ["cuMemGetInfo_v2"] (free: *mut usize, total: *mut usize);
        address_range ["cuMemGetAddressRange_v2"] (base: *mut CuPtr, bytes: *mut usize, address: CuPtr);
        host_alloc ["cuMemHostAlloc"] (address: *mut *mut c_void, bytes: usize, flags: c_uint);
        host_free ["cuMemFreeHost"] (address: *mut c_void);
        copy_async ["cuMemcpyAsync"] (to: CuPtr, from: CuPtr, bytes: usize, stream: CuStream);
        set_async ["cuMemsetD8Async"] (address: CuPtr, value: u8, bytes: usize, stream: CuStream);
        ipc_open ["cuIpcOpenMemHandle_v2", "cuIpcOpenMemHandle"] (address: *mut CuPtr, handle: sys::CUipcMemHandle, flags: c_uint);
        ipc_close ["cuIpcCloseMemHandle"] (address: CuPtr);
    }
    optional {
        pool_create ["cuMemPoolCreate"] (pool: *mut CuPool, props: *const sys::CUmemPoolProps);
        pool_set ["cuMemPoolSetAttribute"] (pool: CuPool, attribute: sys::CUmemPool_attribute, value: *mut c_void);
        pool_get ["cuMemPoolGetAttribute"] (pool: CuPool, attribute: sys::CUmemPool_attribute, value: *mut c_void);
        pool_trim ["cuMemPoolTrimTo"] (pool: CuPool, keep: usize);
        pool_alloc ["cuMemAllocFromPoolAsync"] (address: *mut CuPtr, bytes: usize, pool: CuPool, stream: CuStream);
        free_async ["cuMemFreeAsync"] (address: CuPtr, stream: CuStream);
        host_register ["cuMemHostRegister_v2", "cuMemHostRegister"] (address: *mut c_void, bytes: usize, flags: c_uint);
        host_unregister ["cuMemHostUnregister"] (address: *mut c_void);
        profiler_start ["cuProfilerStart"] ();
        profiler_stop ["cuProfilerStop"] ();
    }
}

impl CudaApi {
    /// Opens the library at `path`, or the one that the system finds under that name.
    ///
    /// # Errors
    /// It cannot be opened, or a function that the server needs is missing.
    pub fn open(path: &Path) -> Result<Self, String> {
        // SAFETY: the driver library's initialisers have no requirements.
        let library = unsafe { libloading::Library::new(path) }.map_err(library_error)?;
        let api = Self::resolve(&library);
        // Threads of the driver may be running.
        std::mem::forget(library);
        api
    }

    /// Whether the driver has memory pools: CUDA 11.2 or later.
    pub fn has_pools(&self) -> bool {
        self.pool_create.is_some()
            && self.pool_set.is_some()
            && self.pool_get.is_some()
            && self.pool_alloc.is_some()
            && self.free_async.is_some()
    }

    fn check(&self, function: &'static str, code: u32) -> Result<(), CudaError> {
        match code {
            SUCCESS => Ok(()),
            code => Err(self.error(function, code)),
        }
    }

    #[cold]
    fn error(&self, function: &'static str, code: u32) -> CudaError {
        let text = |get: ErrorText| {
            let mut text = null();
            // SAFETY: the driver writes a pointer to a constant string, or null for an unknown
            // code.
            unsafe {
                if get(code, &mut text) != SUCCESS || text.is_null() {
                    return None;
                }
                Some(CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let text = match (text(self.error_name), text(self.error_string)) {
            (Some(name), Some(description)) => format!("{name} ({description})"),
            (Some(name), None) => name,
            _ => format!("CUDA error {code}"),
        };
        CudaError { function, code, text }
    }

    #[cold]
    fn lacks(&self, function: &'static str) -> CudaError {
        CudaError { function, code: 801, text: "the driver does not have it".to_owned() }
    }
}

/// The first of `names` that the library has.
fn find_symbol<F: Copy>(library: &libloading::Library, names: &[&str]) -> Option<F> {
    names.iter().find_map(|name| {
        // SAFETY: `functions!` gives each name the type that the driver documents for it.
        unsafe { library.get::<F>(name.as_bytes()) }.ok().map(|found| *found)
    })
}

/// The system's text, which the error keeps to itself.
fn library_error(e: libloading::Error) -> String {
    std::error::Error::source(&e).map_or_else(|| e.to_string(), ToString::to_string)
}

fn missing_symbol(names: &[&str]) -> String {
    format!("it has no function {}", names.join(" or "))
}
