//! The few functions of the CUDA driver that the fake needs.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{c_char, c_uint, c_void};
use std::ptr::null_mut;

type Alloc = unsafe extern "C" fn(*mut u64, usize) -> u32;
type Free = unsafe extern "C" fn(u64) -> u32;
type Copy = unsafe extern "C" fn(u64, u64, usize, *mut c_void) -> u32;
type Query = unsafe extern "C" fn(*mut c_void) -> u32;
type Synchronize = unsafe extern "C" fn(*mut c_void) -> u32;
type GetContext = unsafe extern "C" fn(*mut *mut c_void) -> u32;
type SetContext = unsafe extern "C" fn(*mut c_void) -> u32;
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
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> u32;

/// The driver in the context that was current when it was opened.
pub struct Driver {
    alloc: Alloc,
    free: Free,
    copy: Copy,
    query: Query,
    synchronize: Synchronize,
    set_context: SetContext,
    unload: Unload,
    launch: Launch,
    context: *mut c_void,
    module: *mut c_void,
    add: *mut c_void,
    _library: Library,
}

// SAFETY: driver handles may be used from any thread.
unsafe impl Send for Driver {}
// SAFETY: the driver accepts calls with its handles from several threads at once.
unsafe impl Sync for Driver {}

impl Driver {
    pub fn open() -> Result<Self, String> {
        // SAFETY: the functions have these types, and a context is current on the thread of an
        // instance.
        unsafe {
            let library = Library::open(Some("libcuda.so.1"), RTLD_NOW | RTLD_LOCAL)
                .map_err(|e| format!("CUDA failure 35: {e}"))?;
            macro_rules! entry {
                ($type:ty, $name:literal) => {
                    *library.get::<$type>($name).map_err(|e| e.to_string())?
                };
            }
            let (mut context, mut module, mut add) = (null_mut(), null_mut(), null_mut());
            check(entry!(GetContext, b"cuCtxGetCurrent")(&raw mut context))?;
            if context.is_null() {
                return Err("CUDA failure 201: no context is current on the thread of the session"
                    .to_owned());
            }
            check(entry!(LoadData, b"cuModuleLoadData")(&raw mut module, c".entry add".as_ptr()))?;
            check(entry!(GetFunction, b"cuModuleGetFunction")(
                &raw mut add,
                module,
                c"add".as_ptr(),
            ))?;
            Ok(Self {
                alloc: entry!(Alloc, b"cuMemAlloc_v2"),
                free: entry!(Free, b"cuMemFree_v2"),
                copy: entry!(Copy, b"cuMemcpyDtoDAsync_v2"),
                query: entry!(Query, b"cuStreamQuery"),
                synchronize: entry!(Synchronize, b"cuStreamSynchronize"),
                set_context: entry!(SetContext, b"cuCtxSetCurrent"),
                unload: entry!(Unload, b"cuModuleUnload"),
                launch: entry!(Launch, b"cuLaunchKernel"),
                context,
                module,
                add,
                _library: library,
            })
        }
    }

    pub fn alloc(&self, bytes: usize) -> Result<u64, String> {
        let mut at = 0;
        // SAFETY: the pointer is that of a local variable.
        check(unsafe { (self.alloc)(&raw mut at, bytes) }).map(|()| at)
    }

    pub fn free(&self, at: u64) {
        // SAFETY: an allocation of this driver, freed once; on any thread, hence the context.
        unsafe {
            (self.set_context)(self.context);
            (self.free)(at);
        }
    }

    pub fn copy(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: *mut c_void,
    ) -> Result<(), String> {
        // SAFETY: device memory of this size, as the caller has checked.
        check(unsafe { (self.copy)(to, from, bytes, stream) })
    }

    pub fn synchronize(&self, stream: *mut c_void) -> Result<(), String> {
        // SAFETY: a stream of the session.
        check(unsafe { (self.synchronize)(stream) })
    }

    /// Whether all work of the stream is done. On any thread, hence the context.
    pub fn is_idle(&self, stream: *mut c_void) -> bool {
        // SAFETY: a stream of the session.
        unsafe {
            (self.set_context)(self.context);
            (self.query)(stream) == 0
        }
    }

    /// Queues `sum[i] = a[i] + b[i]` for `n` floats.
    pub fn add(
        &self,
        [mut a, mut b, mut sum]: [u64; 3],
        mut n: u32,
        stream: *mut c_void,
    ) -> Result<(), String> {
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut sum).cast(), (&raw mut n).cast()];
        // SAFETY: the kernel has these parameters, device memory of `n` floats.
        check(unsafe {
            (self.launch)(self.add, 1, 1, 1, 1, 1, 1, 0, stream, arguments.as_mut_ptr(), null_mut())
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // SAFETY: loaded by this value.
        unsafe {
            (self.set_context)(self.context);
            (self.unload)(self.module);
        }
    }
}

fn check(code: u32) -> Result<(), String> {
    if code == 0 { Ok(()) } else { Err(format!("CUDA failure {code}: of the fake driver ; GPU=0")) }
}
