//! A bare loop over ONNX Runtime: what the server's figures are compared with. Tensors are in CPU
//! memory, so a run copies them to the GPU and back, and waits.

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use ort_sys::*;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::ptr::{self, null_mut};

use crate::onnx_model::{CLASSES, IMAGE, SIDE};

/// The library for GPUs: named by the environment, else where `cargo xtask runtimes --gpu` installs
/// it.
///
/// # Errors
/// The library is not installed; says how to get it.
pub fn library(dist: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os("TRTSERVER_ONNXRUNTIME_LIBRARY").filter(|path| !path.is_empty());
    if let Some(path) = named {
        return Ok(path.into());
    }
    let folder = dist.join("lib/onnxruntime-gpu");
    let mut files =
        std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let found = files.find(|file| {
        file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("libonnxruntime.so"))
    });
    found.ok_or_else(|| {
        format!(
            "no ONNX Runtime for GPUs in {}: `cargo xtask runtimes --gpu` installs it, TRTSERVER_ONNXRUNTIME_LIBRARY names another",
            folder.display()
        )
    })
}

/// A session with values over buffers of its own.
pub struct Bare {
    api: *const OrtApi,
    session: *mut OrtSession,
    input: Vec<f32>,
    output: Vec<f32>,
    values: [*mut OrtValue; 2],
}

/// Calls an entry of the table; its error becomes a text. Expands to an unsafe expression.
macro_rules! call {
    ($api:expr, $entry:ident($($argument:expr),* $(,)?)) => {{
        let status = ((*$api).$entry)($($argument),*);
        if status.0.is_null() {
            Ok(())
        } else {
            let text = CStr::from_ptr(((*$api).GetErrorMessage)(status.0)).to_string_lossy().into_owned();
            ((*$api).ReleaseStatus)(status.0);
            Err(format!("{}: {text}", stringify!($entry)))
        }
    }};
}

impl Bare {
    /// A session for batches of `rows` images, on a GPU or on the CPU. Libraries of CUDA that lie
    /// beside the library are opened first, as the plugin does.
    pub fn open(
        library: &Path,
        model: &[u8],
        gpu: Option<i32>,
        rows: usize,
    ) -> Result<Self, String> {
        if gpu.is_some() {
            trtserver_onnx_engine::preload_cuda(&library.to_string_lossy());
        }
        // SAFETY: the library's initialisers are harmless, its symbol has this type, and it stays
        // open.
        let api = unsafe {
            let opened = Library::open(Some(library), RTLD_NOW | RTLD_LOCAL)
                .map_err(|e| format!("{}: {e}", library.display()))?;
            let base = *opened
                .get::<unsafe extern "system" fn() -> *const OrtApiBase>(b"OrtGetApiBase")
                .map_err(|e| e.to_string())?;
            std::mem::forget(opened);
            ((*base()).GetApi)(18)
        };
        if api.is_null() {
            return Err(format!("{} is older than ONNX Runtime 1.18", library.display()));
        }
        let mut bare = Self {
            api,
            session: null_mut(),
            input: vec![0.0; rows * IMAGE],
            output: vec![0.0; rows * CLASSES],
            values: [null_mut(); 2],
        };
        // SAFETY: the table is valid, out pointers are local or fields, and the buffers outlive the
        // values.
        unsafe {
            let (mut env, mut options) = (null_mut(), null_mut());
            let level = OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR;
            call!(api, CreateEnv(level, c"gpu-test".as_ptr(), &raw mut env))?;
            call!(api, CreateSessionOptions(&raw mut options))?;
            if let Some(id) = gpu {
                let id = format!("{id}\0");
                // The search is that of the plugin.
                let keys = [c"device_id".as_ptr(), c"cudnn_conv_algo_search".as_ptr()];
                let values = [id.as_ptr().cast::<c_char>(), c"HEURISTIC".as_ptr()];
                let mut cuda = null_mut();
                call!(api, CreateCUDAProviderOptions(&raw mut cuda))?;
                call!(
                    api,
                    UpdateCUDAProviderOptions(cuda, keys.as_ptr(), values.as_ptr(), keys.len())
                )?;
                call!(api, SessionOptionsAppendExecutionProvider_CUDA_V2(options, cuda))?;
                ((*api).ReleaseCUDAProviderOptions)(cuda);
            }
            let (bytes, len) = (model.as_ptr().cast(), model.len());
            call!(api, CreateSessionFromArray(env, bytes, len, options, &raw mut bare.session))?;
            ((*api).ReleaseSessionOptions)(options);
            let mut memory = null_mut();
            let (kind, of) = (OrtAllocatorType::OrtDeviceAllocator, OrtMemType::OrtMemTypeDefault);
            call!(api, CreateCpuMemoryInfo(kind, of, &raw mut memory))?;
            let side = SIDE as i64;
            let float = ONNXTensorElementDataType::ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
            let shapes: [&[i64]; 2] =
                [&[rows as i64, 3, side, side], &[rows as i64, CLASSES as i64]];
            for (nth, (buffer, shape)) in
                [&mut bare.input, &mut bare.output].into_iter().zip(shapes).enumerate()
            {
                let (data, bytes) = (buffer.as_mut_ptr().cast(), 4 * buffer.len());
                let out = &raw mut bare.values[nth];
                call!(
                    api,
                    CreateTensorWithDataAsOrtValue(
                        memory,
                        data,
                        bytes,
                        shape.as_ptr(),
                        shape.len(),
                        float,
                        out
                    )
                )?;
            }
            ((*api).ReleaseMemoryInfo)(memory);
        }
        Ok(bare)
    }

    /// The scores of the images.
    pub fn run(&mut self, images: &[f32]) -> Result<&[f32], String> {
        self.input.copy_from_slice(images);
        let [input, output] = self.values;
        let (mut outputs, inputs) = ([output], [input.cast_const()]);
        let (from, to) = ([c"X".as_ptr()], [c"Y".as_ptr()]);
        // SAFETY: session and values are alive; lists of one each.
        unsafe {
            call!(
                self.api,
                Run(
                    self.session,
                    ptr::null(),
                    from.as_ptr(),
                    inputs.as_ptr(),
                    1,
                    to.as_ptr(),
                    1,
                    outputs.as_mut_ptr()
                )
            )?;
        }
        Ok(&self.output)
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // SAFETY: ours, or null, which the library accepts.
        unsafe {
            self.values.iter().for_each(|value| ((*self.api).ReleaseValue)(*value));
            ((*self.api).ReleaseSession)(self.session);
        }
    }
}
