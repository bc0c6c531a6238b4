//! The few functions of the CUDA driver that launch a kernel, from a library of the backend's own
//! search, as a framework has it.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CString, c_char, c_uint, c_void};
use std::ptr::null_mut;
use trtserver_plugin_api::author::{Error, Stream};

type LoadData = unsafe extern "C" fn(*mut *mut c_void, *const c_char) -> u32;
type GetFunction = unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> u32;
type Unload = unsafe extern "C" fn(*mut c_void) -> u32;
type Launch = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut u8,
    *mut *mut c_void,
    *mut *mut c_void,
) -> u32;

const THREADS: u32 = 256;

/// A module with its kernels, in the context that is current on this thread.
pub struct Module {
    module: *mut c_void,
    add: *mut c_void,
    spin: *mut c_void,
    fault: *mut c_void,
    launch: Launch,
    unload: Unload,
    _library: Library,
}

impl Module {
    /// # Errors
    /// The driver is missing or refuses the text.
    pub fn load(text: &str) -> Result<Self, Error> {
        // SAFETY: the driver's initialisers are harmless, and the functions have these types.
        unsafe {
            let library = Library::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL)
                .map_err(|e| Error::unavailable(format_args!("the CUDA driver: {e}")))?;
            let missing =
                |e: libloading::Error| Error::unavailable(format_args!("the CUDA driver: {e}"));
            let load = *library.get::<LoadData>(b"cuModuleLoadData").map_err(missing)?;
            let get = *library.get::<GetFunction>(b"cuModuleGetFunction").map_err(missing)?;
            let unload = *library.get::<Unload>(b"cuModuleUnload").map_err(missing)?;
            let launch = *library.get::<Launch>(b"cuLaunchKernel").map_err(missing)?;
            let text = CString::new(text).map_err(Error::internal)?;
            let mut module = null_mut();
            check("cuModuleLoadData", load(&raw mut module, text.as_ptr()))?;
            let kernel = |name: &std::ffi::CStr| {
                let mut function = null_mut();
                let code = get(&raw mut function, module, name.as_ptr());
                check("cuModuleGetFunction", code).map(|()| function)
            };
            let (add, spin, fault) = (kernel(c"add")?, kernel(c"spin")?, kernel(c"fault")?);
            Ok(Self { module, add, spin, fault, launch, unload, _library: library })
        }
    }

    /// Queues `sum[i] = a[i] + b[i]` for `n` floats.
    ///
    /// # Safety
    /// The addresses are device memory of `n` floats, valid until the work is done.
    pub unsafe fn add(
        &self,
        stream: Stream,
        [mut a, mut b, mut sum]: [u64; 3],
        mut n: u32,
    ) -> Result<(), Error> {
        let mut arguments =
            [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut sum).cast(), (&raw mut n).cast()];
        // SAFETY: the kernel has these parameters; by the caller's promise.
        unsafe { self.queue(self.add, n.div_ceil(THREADS).max(1), THREADS, stream, &mut arguments) }
    }

    /// Queues a kernel that takes this long.
    pub fn spin(&self, stream: Stream, mut ns: u64) -> Result<(), Error> {
        // SAFETY: the kernel has this parameter.
        unsafe { self.queue(self.spin, 1, 1, stream, &mut [(&raw mut ns).cast()]) }
    }

    /// Queues a kernel that ends the context with an illegal address.
    pub fn fault(&self, stream: Stream) -> Result<(), Error> {
        // SAFETY: the kernel has no parameters.
        unsafe { self.queue(self.fault, 1, 1, stream, &mut []) }
    }

    /// # Safety
    /// `arguments` are those of the kernel.
    unsafe fn queue(
        &self,
        kernel: *mut c_void,
        blocks: u32,
        threads: u32,
        stream: Stream,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        let (arguments, raw) = (arguments.as_mut_ptr(), stream.as_raw());
        // SAFETY: by the caller's promise.
        let code = unsafe {
            (self.launch)(kernel, blocks, 1, 1, threads, 1, 1, 0, raw, arguments, null_mut())
        };
        check("cuLaunchKernel", code)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: loaded by this value; a lost device refuses.
        unsafe { (self.unload)(self.module) };
    }
}

fn check(call: &str, code: u32) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        code => Err(Error::device_lost(format_args!("{call} failed with CUDA error {code}"))),
    }
}
