//! The CUDA driver as a client uses it: bare calls, for regions of this process and for the figures
//! that the server is compared with. Nothing is shared with the server's own wrapper, so that both
//! cannot make the same mistake.

use libloading::Library;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr::{null, null_mut};
use std::sync::Arc;

const COMPUTE_MAJOR: c_int = 75;
const COMPUTE_MINOR: c_int = 76;
const NON_BLOCKING: c_uint = 1;

/// A kernel that adds two vectors: `add(a, b, sum, n)`.
const ADD: &CStr = c"
.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 n) {
    .reg .pred %p; .reg .b32 %r<6>; .reg .b64 %d<8>; .reg .f32 %f<4>;
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [sum]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    setp.ge.u32 %p, %r4, %r0;
    @%p bra done;
    cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1; cvta.to.global.u64 %d2, %d2;
    mul.wide.u32 %d3, %r4, 4;
    add.s64 %d4, %d0, %d3; add.s64 %d5, %d1, %d3; add.s64 %d6, %d2, %d3;
    ld.global.f32 %f0, [%d4]; ld.global.f32 %f1, [%d5];
    add.f32 %f2, %f0, %f1;
    st.global.f32 [%d6], %f2;
done:
    ret;
}
";

#[derive(Clone)]
pub struct Device {
    pub ordinal: c_int,
    pub name: String,
    /// `GPU-` and groups of digits, as nvidia-smi writes it.
    pub uuid: String,
    pub compute: (c_int, c_int),
    pub memory: u64,
    handle: c_int,
}

pub struct Driver {
    library: Arc<Library>,
    devices: Vec<Device>,
}

/// Calls a function of the driver; the error names it and its result code.
macro_rules! call {
    ($library:expr, $name:literal, ($($kind:ty),*), ($($value:expr),*)) => {{
        // SAFETY: the type of the function in the driver's interface; the callers pass valid
        // pointers.
        let code = unsafe {
            $library.get::<unsafe extern "C" fn($($kind),*) -> c_int>(concat!($name, "\0").as_bytes())
                .map_err(|e| e.to_string())
                .map(|function| function($($value),*))
        };
        match code {
            Ok(0) => Ok(()),
            Ok(code) => Err(format!("{} returned {code}", $name)),
            Err(e) => Err(e),
        }
    }};
}

impl Driver {
    /// # Errors
    /// Why there is no usable GPU.
    pub fn open() -> Result<Self, String> {
        // SAFETY: the system's driver library.
        let library = unsafe { Library::new("libcuda.so.1") }.map_err(|e| e.to_string())?;
        call!(library, "cuInit", (c_uint), (0))?;
        let mut count = 0;
        call!(library, "cuDeviceGetCount", (*mut c_int), (&raw mut count))?;
        if count < 1 {
            return Err("the driver finds no GPU".to_owned());
        }
        let devices =
            (0..count).map(|ordinal| device(&library, ordinal)).collect::<Result<_, _>>()?;
        Ok(Self { library: Arc::new(library), devices })
    }

    /// Whether it is the fake driver of the unit tests.
    pub fn is_test_double(&self) -> bool {
        // SAFETY: the symbol is looked up, not called.
        unsafe { self.library.get::<*const c_void>(b"fake_cuda_set\0") }.is_ok()
    }

    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Retains the primary context of a device and binds it to this thread, for the rest of the
    /// process.
    pub fn context(&self, device: &Device) -> Result<Context, String> {
        let mut context = null_mut();
        call!(
            self.library,
            "cuDevicePrimaryCtxRetain",
            (*mut *mut c_void, c_int),
            (&raw mut context, device.handle)
        )?;
        call!(self.library, "cuCtxSetCurrent", (*mut c_void), (context))?;
        let mut stream = null_mut();
        call!(
            self.library,
            "cuStreamCreate",
            (*mut *mut c_void, c_uint),
            (&raw mut stream, NON_BLOCKING)
        )?;
        Ok(Context { library: Arc::clone(&self.library), stream })
    }
}

fn device(library: &Library, ordinal: c_int) -> Result<Device, String> {
    let (mut handle, mut memory, mut uuid, mut name) = (0, 0usize, [0u8; 16], [0 as c_char; 256]);
    call!(library, "cuDeviceGet", (*mut c_int, c_int), (&raw mut handle, ordinal))?;
    call!(
        library,
        "cuDeviceGetName",
        (*mut c_char, c_int, c_int),
        (name.as_mut_ptr(), 256, handle)
    )?;
    call!(library, "cuDeviceGetUuid", (*mut [u8; 16], c_int), (&raw mut uuid, handle))?;
    call!(library, "cuDeviceTotalMem_v2", (*mut usize, c_int), (&raw mut memory, handle))?;
    let attribute = |number: c_int| {
        let mut value = 0;
        call!(
            library,
            "cuDeviceGetAttribute",
            (*mut c_int, c_int, c_int),
            (&raw mut value, number, handle)
        )
        .map(|()| value)
    };
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    // SAFETY: the driver ends the name with NUL, and the array is longer than any name.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    Ok(Device {
        ordinal,
        name,
        uuid: format!(
            "GPU-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        ),
        compute: (attribute(COMPUTE_MAJOR)?, attribute(COMPUTE_MINOR)?),
        memory: memory as u64,
        handle,
    })
}

/// The primary context of a device, bound to the thread that made it, and a stream.
pub struct Context {
    library: Arc<Library>,
    stream: *mut c_void,
}

impl Context {
    /// Free and total bytes of the device, of all processes.
    pub fn memory(&self) -> Result<(u64, u64), String> {
        let (mut free, mut total) = (0usize, 0usize);
        call!(
            self.library,
            "cuMemGetInfo_v2",
            (*mut usize, *mut usize),
            (&raw mut free, &raw mut total)
        )?;
        Ok((free as u64, total as u64))
    }

    pub fn alloc(&self, bytes: usize) -> Result<Memory<'_>, String> {
        let mut address = 0;
        call!(self.library, "cuMemAlloc_v2", (*mut u64, usize), (&raw mut address, bytes))?;
        Ok(Memory { context: self, address, bytes })
    }

    pub fn synchronize(&self) -> Result<(), String> {
        call!(self.library, "cuStreamSynchronize", (*mut c_void), (self.stream))
    }

    /// Loads the kernel.
    pub fn add(&self) -> Result<Add<'_>, String> {
        let (mut module, mut function) = (null_mut(), null_mut());
        call!(
            self.library,
            "cuModuleLoadData",
            (*mut *mut c_void, *const c_char),
            (&raw mut module, ADD.as_ptr())
        )?;
        call!(
            self.library,
            "cuModuleGetFunction",
            (*mut *mut c_void, *mut c_void, *const c_char),
            (&raw mut function, module, c"add".as_ptr())
        )?;
        Ok(Add { context: self, function })
    }
}

/// A kernel that adds two vectors.
pub struct Add<'a> {
    context: &'a Context,
    function: *mut c_void,
}

impl Add<'_> {
    /// Queues `sum = a + b` of `n` floats.
    pub fn launch(
        &self,
        a: &Memory<'_>,
        b: &Memory<'_>,
        sum: &Memory<'_>,
        n: u32,
    ) -> Result<(), String> {
        let (mut a, mut b, mut sum, mut n) = (a.address, b.address, sum.address, n);
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut sum).cast(), (&raw mut n).cast()];
        call!(
            self.context.library,
            "cuLaunchKernel",
            (
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
                *const c_void
            ),
            (
                self.function,
                n.div_ceil(256),
                1,
                1,
                256,
                1,
                1,
                0,
                self.context.stream,
                arguments.as_mut_ptr(),
                null()
            )
        )
    }
}

/// Device memory, freed when dropped.
pub struct Memory<'a> {
    context: &'a Context,
    address: u64,
    bytes: usize,
}

impl Memory<'_> {
    /// Queues a copy from the CPU; the data must live until the stream is synchronized.
    pub fn upload(&self, from: &[u8]) -> Result<(), String> {
        assert!(from.len() <= self.bytes, "{} bytes for a region of {}", from.len(), self.bytes);
        call!(
            self.context.library,
            "cuMemcpyHtoDAsync_v2",
            (u64, *const c_void, usize, *mut c_void),
            (self.address, from.as_ptr().cast(), from.len(), self.context.stream)
        )
    }

    /// Queues a copy to the CPU; the buffer must live until the stream is synchronized.
    pub fn download(&self, to: &mut [u8]) -> Result<(), String> {
        assert!(to.len() <= self.bytes, "{} bytes of a region of {}", to.len(), self.bytes);
        call!(
            self.context.library,
            "cuMemcpyDtoHAsync_v2",
            (*mut c_void, u64, usize, *mut c_void),
            (to.as_mut_ptr().cast(), self.address, to.len(), self.context.stream)
        )
    }

    /// The handle by which another process opens the memory.
    pub fn ipc_handle(&self) -> Result<[u8; 64], String> {
        let mut handle = [0; 64];
        call!(
            self.context.library,
            "cuIpcGetMemHandle",
            (*mut [u8; 64], u64),
            (&raw mut handle, self.address)
        )?;
        Ok(handle)
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let _ = call!(self.context.library, "cuMemFree_v2", (u64), (self.address));
    }
}
