//! ONNX Runtime called directly: one session, sequential runs, preallocated tensors.

use crate::Result;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use ort_sys::{
    ONNXTensorElementDataType, OrtAllocatorType, OrtApi, OrtApiBase, OrtLoggingLevel, OrtMemType,
    OrtSession, OrtStatusPtr, OrtValue,
};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// API version; every release since 1.18 has it.
const API: u32 = 18;
const SHAPE: [i64; 2] = [1, 16];

/// `addsub_fp32`, opened. Library, session and values stay until the process ends.
pub struct AddSub {
    api: *const OrtApi,
    session: *mut OrtSession,
    inputs: [*const OrtValue; 2],
    outputs: [*mut OrtValue; 2],
    /// Memory of the values: two inputs, two outputs. Addresses are stable.
    memory: [Box<[f32]>; 4],
}

impl AddSub {
    pub fn open(library: &Path, model: &Path) -> Result<Self> {
        let path = CString::new(model.as_os_str().as_bytes()).map_err(|e| e.to_string())?;
        let api = table(library)?;
        let numbers = |step: f32| (0..16).map(|i| i as f32 * step).collect::<Box<[f32]>>();
        let memory = [numbers(1.0), numbers(0.5), numbers(0.0), numbers(0.0)];
        let (inputs, outputs) = ([ptr::null(); 2], [ptr::null_mut(); 2]);
        let mut this = AddSub { api, session: ptr::null_mut(), inputs, outputs, memory };
        let (mut env, mut options) = (ptr::null_mut(), ptr::null_mut());
        let mut cpu = ptr::null_mut();
        // SAFETY: the table is valid for the life of the process; out pointers are ours; strings
        // end with NUL and are copied; what is passed on was made by the call before.
        unsafe {
            let warning = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
            this.done(((*api).CreateEnv)(warning, c"bench".as_ptr(), &raw mut env))?;
            this.done(((*api).CreateSessionOptions)(&raw mut options))?;
            // As the server opens a model on one core.
            this.done(((*api).SetIntraOpNumThreads)(options, 1))?;
            let session = &raw mut this.session;
            this.done(((*api).CreateSession)(env, path.as_ptr(), options, session))?;
            let device = OrtAllocatorType::OrtDeviceAllocator;
            let usual = OrtMemType::OrtMemTypeDefault;
            this.done(((*api).CreateCpuMemoryInfo)(device, usual, &raw mut cpu))?;
        }
        for i in 0..this.memory.len() {
            let (data, mut value) = (&mut this.memory[i], ptr::null_mut());
            let (address, bytes) = (data.as_mut_ptr().cast(), size_of_val(&**data));
            // SAFETY: the memory belongs to this value and is of that size; the shape is copied.
            let status = unsafe {
                ((*api).CreateTensorWithDataAsOrtValue)(
                    cpu,
                    address,
                    bytes,
                    SHAPE.as_ptr(),
                    SHAPE.len(),
                    ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                    &raw mut value,
                )
            };
            this.done(status)?;
            match i {
                0 | 1 => this.inputs[i] = value,
                _ => this.outputs[i - 2] = value,
            }
        }
        Ok(this)
    }

    /// One run; the result is checked.
    pub fn call(&mut self) -> Result<()> {
        let names = [c"INPUT0".as_ptr(), c"INPUT1".as_ptr()];
        let outputs = [c"OUTPUT0".as_ptr(), c"OUTPUT1".as_ptr()];
        // SAFETY: session and values are open, each array has two entries, and the memory is not
        // shared.
        let status = unsafe {
            ((*self.api).Run)(
                self.session,
                ptr::null(),
                names.as_ptr(),
                self.inputs.as_ptr(),
                2,
                outputs.as_ptr(),
                2,
                self.outputs.as_mut_ptr(),
            )
        };
        self.done(status)?;
        // SAFETY: the run is over, so nothing else accesses the four blocks of 16 values, which
        // this object owns. The library wrote through the values, so they are read through raw
        // pointers.
        let read = |tensor: usize, i: usize| unsafe {
            ptr::read_volatile(self.memory[tensor].as_ptr().add(i))
        };
        let right =
            |i| read(2, i) == read(0, i) + read(1, i) && read(3, i) == read(0, i) - read(1, i);
        if (0..16).all(right) { Ok(()) } else { Err("ONNX Runtime gave a wrong sum".into()) }
    }

    fn done(&self, status: OrtStatusPtr) -> Result<()> {
        if status.0.is_null() {
            return Ok(());
        }
        // SAFETY: a status that is not null is ours until it is released; its text is a string
        // within it.
        let text = unsafe { CStr::from_ptr(((*self.api).GetErrorMessage)(status.0)) };
        let text = format!("ONNX Runtime: {}", text.to_string_lossy());
        // SAFETY: the status is not null and ours; it is released once, and its text is copied
        // before.
        unsafe { ((*self.api).ReleaseStatus)(status.0) };
        Err(text)
    }
}

fn table(library: &Path) -> Result<*const OrtApi> {
    let wrap = |e: libloading::Error| format!("{}: {e}", library.display());
    // SAFETY: opening runs the initialisers of the library that the install came with.
    let opened = unsafe { Library::open(Some(library), RTLD_NOW | RTLD_LOCAL) }.map_err(wrap)?;
    // SAFETY: this is the documented type of the one symbol that every ONNX Runtime exports.
    let base = unsafe {
        opened.get::<unsafe extern "system" fn() -> *const OrtApiBase>(b"OrtGetApiBase\0")
    }
    .map_err(wrap)?;
    // SAFETY: it takes nothing and gives a static table, whose entry takes any number.
    let api = unsafe { ((*base()).GetApi)(API) };
    // Its functions are kept, so it is never unloaded.
    std::mem::forget(opened);
    match api.is_null() {
        true => Err(format!("{} does not offer version {API} of its interface", library.display())),
        false => Ok(api),
    }
}
