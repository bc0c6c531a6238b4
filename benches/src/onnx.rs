//! ONNX Runtime called directly: one session, sequential runs, preallocated tensors of FP32 values.

use crate::Result;
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use ort_sys::{
    ONNXTensorElementDataType, OrtAllocatorType, OrtApi, OrtApiBase, OrtLoggingLevel, OrtMemType,
    OrtSession, OrtStatusPtr, OrtValue,
};
use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// API version; every release since 1.18 has it.
const API: u32 = 18;

/// A model with one thread. Library, session and values stay until the process ends.
pub struct BareModel {
    api: *const OrtApi,
    session: *mut OrtSession,
    names: [Vec<CString>; 2],
    inputs: Vec<*const OrtValue>,
    outputs: Vec<*mut OrtValue>,
    /// Memory of the values: inputs, then outputs. Addresses are stable.
    memory: Vec<Box<[f32]>>,
}

impl BareModel {
    /// Opens `model`, whose inputs have these names and values and whose outputs have these names
    /// and numbers of values, each in one row.
    pub fn open(
        library: &Path,
        model: &Path,
        inputs: &[(&str, Vec<f32>)],
        outputs: &[(&str, usize)],
    ) -> Result<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|e| e.to_string());
        let path = text(model.as_os_str().as_bytes())?;
        let [of_inputs, of_outputs] = [
            inputs.iter().map(|(name, _)| text(name.as_bytes())).collect::<Result<Vec<_>>>()?,
            outputs.iter().map(|(name, _)| text(name.as_bytes())).collect::<Result<Vec<_>>>()?,
        ];
        let memory = inputs.iter().map(|(_, values)| values.clone().into_boxed_slice());
        let zeros = outputs.iter().map(|(_, count)| vec![0.0; *count].into_boxed_slice());
        let mut this = BareModel {
            api: table(library)?,
            session: ptr::null_mut(),
            names: [of_inputs, of_outputs],
            inputs: Vec::new(),
            outputs: Vec::new(),
            memory: memory.chain(zeros).collect(),
        };
        this.create_session(&path)?;
        for at in 0..this.memory.len() {
            let value = this.create_value(at)?;
            match at < inputs.len() {
                true => this.inputs.push(value),
                false => this.outputs.push(value),
            }
        }
        Ok(this)
    }

    fn create_session(&mut self, path: &CStr) -> Result<()> {
        let (api, mut env, mut options) = (self.api, ptr::null_mut(), ptr::null_mut());
        // SAFETY: the table is valid for the life of the process; out pointers are ours; strings
        // end with NUL and are copied; what is passed on was made by the call before.
        unsafe {
            let warning = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
            self.done(((*api).CreateEnv)(warning, c"bench".as_ptr(), &raw mut env))?;
            self.done(((*api).CreateSessionOptions)(&raw mut options))?;
            // As the server opens a model on one core.
            self.done(((*api).SetIntraOpNumThreads)(options, 1))?;
            let session = &raw mut self.session;
            self.done(((*api).CreateSession)(env, path.as_ptr(), options, session))
        }
    }

    fn create_value(&mut self, at: usize) -> Result<*mut OrtValue> {
        let (api, mut cpu, mut value) = (self.api, ptr::null_mut(), ptr::null_mut());
        let data = &mut self.memory[at];
        let shape = [1, data.len() as i64];
        let (address, bytes) = (data.as_mut_ptr().cast(), size_of_val(&**data));
        let device = OrtAllocatorType::OrtDeviceAllocator;
        let usual = OrtMemType::OrtMemTypeDefault;
        // SAFETY: the table is valid and out pointers are ours; the memory belongs to this value
        // and is of that size; the shape is copied.
        unsafe {
            self.done(((*api).CreateCpuMemoryInfo)(device, usual, &raw mut cpu))?;
            self.done(((*api).CreateTensorWithDataAsOrtValue)(
                cpu,
                address,
                bytes,
                shape.as_ptr(),
                shape.len(),
                ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                &raw mut value,
            ))?;
        }
        Ok(value)
    }

    /// One run.
    pub fn run(&mut self) -> Result<()> {
        let pointers = |names: &[CString]| -> Vec<*const c_char> {
            names.iter().map(|name| name.as_ptr()).collect()
        };
        let [inputs, outputs] = [pointers(&self.names[0]), pointers(&self.names[1])];
        // SAFETY: session and values are open, the arrays have an entry for each value, and the
        // memory is not shared.
        let status = unsafe {
            ((*self.api).Run)(
                self.session,
                ptr::null(),
                inputs.as_ptr(),
                self.inputs.as_ptr(),
                inputs.len(),
                outputs.as_ptr(),
                outputs.len(),
                self.outputs.as_mut_ptr(),
            )
        };
        self.done(status)
    }

    /// Value `i` of tensor `tensor`: the inputs, then the outputs.
    pub fn value(&self, tensor: usize, i: usize) -> f32 {
        let values = &self.memory[tensor];
        assert!(i < values.len(), "tensor {tensor} has no value {i}");
        // SAFETY: the index is within the block, which this object owns, and no run is in progress.
        // The library writes through the values, so it is read through a raw pointer.
        unsafe { ptr::read_volatile(values.as_ptr().add(i)) }
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
