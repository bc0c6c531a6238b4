//! The few functions of the CUDA driver that the plugin calls: whether there is a device, its
//! primary context, CUDA graphs.
//!
//! The library is found at run time. TensorRT without a device returns an address that is not an
//! object, so the presence of one is checked first.

use libloading::os::unix::Library;
use std::ffi::c_void;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::OnceLock;
use trtserver_framework::search::load_library;

type Handle = *mut c_void;
type Result0 = unsafe extern "C" fn(u32) -> u32;

macro_rules! functions {
    ($($name:ident = $symbol:literal: fn($($argument:ty),*);)*) => {
        struct Functions { $($name: unsafe extern "C" fn($($argument),*) -> u32,)* }
        impl Functions {
            /// # Errors
            /// The name of a function that the library lacks.
            fn find(library: &Library) -> Result<Self, &'static str> {
                $(
                    // SAFETY: the function of this name has this type.
                    let $name = unsafe {
                        *library
                            .get::<unsafe extern "C" fn($($argument),*) -> u32>($symbol.as_bytes())
                            .map_err(|_| $symbol)?
                    };
                )*
                Ok(Self { $($name,)* })
            }
        }
    };
}

mod base {
    use super::*;
    functions! {
        driver_version = "cuDriverGetVersion": fn(*mut i32);
        device_count = "cuDeviceGetCount": fn(*mut i32);
        device = "cuDeviceGet": fn(*mut i32, i32);
        attribute = "cuDeviceGetAttribute": fn(*mut i32, i32, i32);
        retain = "cuDevicePrimaryCtxRetain": fn(*mut Handle, i32);
        release = "cuDevicePrimaryCtxRelease_v2": fn(i32);
        push = "cuCtxPushCurrent_v2": fn(Handle);
        pop = "cuCtxPopCurrent_v2": fn(*mut Handle);
    }
    pub(super) struct DriverFunctions(Functions);
    impl DriverFunctions {
        pub(super) fn find(library: &Library) -> Result<Self, &'static str> {
            Functions::find(library).map(DriverFunctions)
        }
        pub(super) fn version(&self) -> i32 {
            let mut version = 0;
            // SAFETY: the pointer is that of a local variable.
            unsafe { (self.0.driver_version)(&raw mut version) };
            version
        }
        pub(super) fn devices(&self) -> Result<i32, u32> {
            let mut count = 0;
            // SAFETY: the result is written to a local variable.
            check_result(unsafe { (self.0.device_count)(&raw mut count) }).map(|()| count)
        }
        pub(super) fn device(&self, ordinal: i32) -> Result<i32, u32> {
            let mut device = 0;
            // SAFETY: the result is written to a local variable; the driver checks the ordinal.
            check_result(unsafe { (self.0.device)(&raw mut device, ordinal) }).map(|()| device)
        }
        pub(super) fn attribute(&self, device: i32, which: i32) -> i32 {
            let mut value = 0;
            // SAFETY: the result is written to a local variable; the driver checks device and
            // attribute.
            unsafe { (self.0.attribute)(&raw mut value, which, device) };
            value
        }
        pub(super) fn retain_and_push(&self, device: i32) -> Result<(), u32> {
            let mut context = null_mut();
            // SAFETY: the handle is written to a local variable. A context is pushed only after the
            // driver retained it, and stays retained until `pop_and_release`.
            unsafe {
                check_result((self.0.retain)(&raw mut context, device))?;
                check_result((self.0.push)(context)).inspect_err(|_| {
                    (self.0.release)(device);
                })
            }
        }
        pub(super) fn pop_and_release(&self, device: i32) {
            let mut context = null_mut();
            // SAFETY: pushed and retained before.
            unsafe {
                (self.0.pop)(&raw mut context);
                (self.0.release)(device);
            }
        }
    }
}

mod graph {
    use super::*;
    functions! {
        begin = "cuStreamBeginCapture_v2": fn(Handle, u32);
        end = "cuStreamEndCapture": fn(Handle, *mut Handle);
        instantiate = "cuGraphInstantiateWithFlags": fn(*mut Handle, Handle, u64);
        launch = "cuGraphLaunch": fn(Handle, Handle);
        destroy_exec = "cuGraphExecDestroy": fn(Handle);
        destroy = "cuGraphDestroy": fn(Handle);
    }
    pub(super) struct GraphFunctions(Functions);
    impl GraphFunctions {
        pub(super) fn find(library: &Library) -> Result<Self, &'static str> {
            Functions::find(library).map(GraphFunctions)
        }
        /// # Safety
        /// `stream` is a stream of the current context.
        pub(super) unsafe fn capture(
            &self,
            stream: Handle,
            work: impl FnOnce() -> Result<(), String>,
        ) -> Result<Handle, String> {
            /// `CU_STREAM_CAPTURE_MODE_THREAD_LOCAL`: other threads may allocate meanwhile.
            const THREAD_LOCAL: u32 = 1;
            let (mut graph, mut exec) = (null_mut(), null_mut());
            // SAFETY: by the caller's promise; the pointers are those of local variables.
            unsafe {
                function_named("cuStreamBeginCapture_v2", (self.0.begin)(stream, THREAD_LOCAL))?;
                let queued = work();
                let ended =
                    function_named("cuStreamEndCapture", (self.0.end)(stream, &raw mut graph));
                let result = queued.and(ended).and_then(|()| {
                    let code = (self.0.instantiate)(&raw mut exec, graph, 0);
                    function_named("cuGraphInstantiateWithFlags", code)
                });
                if !graph.is_null() {
                    (self.0.destroy)(graph);
                }
                result.map(|()| exec)
            }
        }
        /// # Safety
        /// `exec` was returned by [`GraphFunctions::capture`], `stream` is a stream of its context.
        pub(super) unsafe fn launch(&self, exec: Handle, stream: Handle) -> Result<(), String> {
            // SAFETY: by the caller's promise.
            function_named("cuGraphLaunch", unsafe { (self.0.launch)(exec, stream) })
        }
        /// # Safety
        /// `exec` was returned by [`GraphFunctions::capture`] and is not used afterwards.
        pub(super) unsafe fn destroy(&self, exec: Handle) {
            // SAFETY: by the caller's promise.
            unsafe { (self.0.destroy_exec)(exec) };
        }
    }
}

/// The driver library with at least one device. Never closed.
pub struct CudaDriver {
    base: base::DriverFunctions,
    graphs: Result<graph::GraphFunctions, &'static str>,
    devices: i32,
}

static DRIVER: OnceLock<Result<CudaDriver, String>> = OnceLock::new();

/// The driver.
///
/// # Errors
/// There is no driver or no device: the reason.
pub fn cuda_driver() -> Result<&'static CudaDriver, String> {
    DRIVER.get_or_init(CudaDriver::open).as_ref().map_err(Clone::clone)
}

impl CudaDriver {
    fn open() -> Result<CudaDriver, String> {
        let file = "libcuda.so.1";
        let library = load_library(Path::new(file)).map_err(|e| format!("no CUDA driver: {e}"))?;
        let lacks = |name| format!("{file} is not a CUDA driver: it lacks the function {name}");
        // SAFETY: the function of this name has this type.
        let init = unsafe { library.get::<Result0>(b"cuInit").map(|f| *f) };
        let init = init.map_err(|_| lacks("cuInit"))?;
        let base = base::DriverFunctions::find(&library).map_err(lacks)?;
        let graphs = graph::GraphFunctions::find(&library);
        // The functions point into the library, so it must not be closed.
        std::mem::forget(library);
        // SAFETY: the first call of the driver.
        function_named("cuInit", unsafe { init(0) })?;
        let devices = base.devices().map_err(|code| error_text("cuDeviceGetCount", code))?;
        if devices < 1 {
            return Err("the CUDA driver shows no device to this process".to_owned());
        }
        Ok(CudaDriver { base, graphs, devices })
    }

    /// The CUDA version that the driver supports, such as `12.8`.
    pub fn version(&self) -> String {
        let version = self.base.version();
        format!("{}.{}", version / 1000, version % 1000 / 10)
    }

    /// Compute capability of a device, such as `9.0`.
    pub fn compute_capability(&self, ordinal: i32) -> String {
        let Ok(device) = self.base.device(ordinal) else { return "unknown".to_owned() };
        format!("{}.{}", self.base.attribute(device, 75), self.base.attribute(device, 76))
    }

    /// Runs `work` with the primary context of a device current.
    ///
    /// # Errors
    /// There is no such device, or it has no context.
    pub fn on_device<R>(&self, ordinal: i32, work: impl FnOnce() -> R) -> Result<R, String> {
        let device = self.base.device(ordinal).map_err(|code| {
            format!(
                "{}; the process sees {} devices",
                error_text("cuDeviceGet", code),
                self.devices
            )
        })?;
        let pushed = self.base.retain_and_push(device);
        pushed.map_err(|code| error_text("cuDevicePrimaryCtxRetain", code))?;
        let result = work();
        self.base.pop_and_release(device);
        Ok(result)
    }

    /// Captures what `work` queues on the stream as a graph.
    ///
    /// # Safety
    /// `stream` is a stream of the current context.
    ///
    /// # Errors
    /// The driver has no graphs, or the work cannot be captured.
    pub unsafe fn capture(
        &'static self,
        stream: *mut u8,
        work: impl FnOnce() -> Result<(), String>,
    ) -> Result<CudaGraph, String> {
        let graphs = self.graphs.as_ref().map_err(|name| {
            format!("the CUDA driver ({}) lacks the function {name}", self.version())
        })?;
        // SAFETY: by the caller's promise.
        let exec = unsafe { graphs.capture(stream.cast(), work)? };
        Ok(CudaGraph { graphs, exec })
    }
}

/// A captured graph. Destroyed when dropped; the driver waits for a launch that is running.
pub struct CudaGraph {
    graphs: &'static graph::GraphFunctions,
    exec: Handle,
}

impl CudaGraph {
    /// # Safety
    /// `stream` is a stream of the context in which the graph was captured.
    ///
    /// # Errors
    /// The name of the function that failed, with the code.
    pub unsafe fn launch(&self, stream: *mut u8) -> Result<(), String> {
        // SAFETY: by the caller's promise.
        unsafe { self.graphs.launch(self.exec, stream.cast()) }
    }
}

impl Drop for CudaGraph {
    fn drop(&mut self) {
        // SAFETY: not used afterwards.
        unsafe { self.graphs.destroy(self.exec) }
    }
}

fn check_result(code: u32) -> Result<(), u32> {
    if code == 0 { Ok(()) } else { Err(code) }
}

fn error_text(function: &str, code: u32) -> String {
    format!("{function} failed with CUDA error {code}")
}

fn function_named(function: &str, code: u32) -> Result<(), String> {
    check_result(code).map_err(|code| error_text(function, code))
}
