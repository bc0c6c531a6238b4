//! The ONNX Runtime library: opened when the first model needs it, never closed.
//!
//! Nothing is linked. The library exports one symbol, `OrtGetApiBase`; it returns a table of
//! functions that later releases only append to, so one build of this plugin runs with every
//! release that supports [`API`]. One environment per process, because the library itself has only
//! one: of two plugins in a process the first to open it receives the log lines of both.

use crate::log::{ENVIRONMENT_ID, Logger, on_message};
use ort_sys::{
    OrtAllocator, OrtAllocatorType, OrtApi, OrtApiBase, OrtEnv, OrtLoggingFunction,
    OrtLoggingLevel, OrtMemType, OrtMemoryInfo, OrtRunOptions, OrtStatus, OrtStatusPtr,
};
use std::ffi::c_char;
use std::path::Path;
use std::ptr;
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_framework::search::{Framework, SETTING, load_library, read_c_text};
use trtserver_plugin_api::abi::types::{code, level};

/// Version of the function table: all functions that this plugin uses are in every release since
/// 1.18.
pub const API: u32 = 18;

/// Version that has what sessions on GPUs need.
pub const GPU_API: u32 = 23;

/// Environment variable that names the library.
pub const VARIABLE: &str = "TRTSERVER_ONNXRUNTIME_LIBRARY";

/// What is searched for a plugin's backend.
const fn onnx_framework(backend: &'static str) -> Framework {
    Framework {
        name: "ONNX Runtime",
        backend,
        setting: SETTING,
        variable: VARIABLE,
        files: &["libonnxruntime.so"],
        system: &["libonnxruntime.so.1", "libonnxruntime.so"],
        packages: &["onnxruntime/capi"],
        advice: "`cargo xtask runtimes`, or `pip install onnxruntime`, which installs \
                 onnxruntime/capi/libonnxruntime.so.<version>,",
    }
}

/// Calls an entry of the table and turns its status into a `Result`. Expands to an unsafe call: the
/// surrounding block states why the arguments are valid.
macro_rules! ort {
    ($runtime:expr, $entry:ident($($argument:expr),* $(,)?)) => {{
        let status = ((*$runtime.api).$entry)($($argument),*);
        $runtime.outcome(status)
    }};
}
pub(crate) use ort;

/// The opened library. There is one, and it is never closed, hence `&'static OnnxRuntime`.
pub struct OnnxRuntime {
    /// Raw, never a reference: entries that this plugin does not use may be null, and a reference
    /// to a table with null functions would be undefined behaviour.
    pub api: *const OrtApi,
    pub env: *mut OrtEnv,
    /// Describes ordinary CPU memory, for tensors over memory that the library does not own.
    pub memory: *mut OrtMemoryInfo,
    pub allocator: *mut OrtAllocator,
    /// Default options, created once: without options each run would create its own.
    pub run_options: *mut OrtRunOptions,
    /// Whether the table has the functions of version [`GPU_API`].
    pub offers_gpu_api: bool,
    /// For example `1.31.1`.
    pub version: String,
    /// Its path, or the name that the dynamic loader resolved.
    pub origin: String,
}

// SAFETY: the table is constant; environment, memory info, default allocator and run options are
// documented as usable from any thread, and they do not change after `OnnxRuntime` was created.
unsafe impl Send for OnnxRuntime {}
// SAFETY: threads only read the fields; the library accepts all four objects from several threads
// at once.
unsafe impl Sync for OnnxRuntime {}

static RUNTIME: OnceLock<OnnxRuntime> = OnceLock::new();
/// Held while the library is opened, so that concurrent loads open it once.
static OPENING: Mutex<()> = Mutex::new(());

/// The runtime, if it is open.
pub fn opened_runtime() -> Option<&'static OnnxRuntime> {
    RUNTIME.get()
}

/// Opens the library unless it is open. A failure is not cached: the next load tries again, so
/// installing the library needs no restart.
pub fn open_runtime(
    backend: &'static str,
    setting: Option<&str>,
    plugin_dir: &Path,
) -> Result<&'static OnnxRuntime, PluginFault> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let variable = std::env::var_os(VARIABLE);
    let framework = onnx_framework(backend);
    let plan = framework.plan(setting, variable.as_deref(), plugin_dir);
    let runtime = framework.open(plan, OnnxRuntime::open)?;
    log::write_line(level::INFO, &runtime.label());
    Ok(RUNTIME.get_or_init(|| runtime))
}

impl OnnxRuntime {
    fn open(path: &Path) -> Result<Self, String> {
        let library = load_library(path)?;
        // SAFETY: the documented type of the symbol that every ONNX Runtime exports.
        let base = unsafe {
            library.get::<unsafe extern "system" fn() -> *const OrtApiBase>(b"OrtGetApiBase\0")
        }
        .map_err(|_| "it has no symbol OrtGetApiBase, so it is not ONNX Runtime".to_owned())?;
        // SAFETY: the function takes no arguments and returns a static table or null.
        let base = unsafe { base() };
        if base.is_null() {
            return Err("OrtGetApiBase returned null".to_owned());
        }
        // SAFETY: not null, hence a table with two entries, static; the version is a C string in
        // it.
        let version = unsafe { read_c_text(((*base).GetVersionString)()) };
        // Checked before requesting the table: for an unsupported version the library writes to
        // stderr.
        let api = if is_older(&version, API) {
            ptr::null()
        } else {
            // SAFETY: `base` is not null and points to a static table of two entries; `GetApi`
            // takes any number.
            unsafe { ((*base).GetApi)(API) }
        };
        if api.is_null() {
            return Err(format!(
                "it is ONNX Runtime {version}, which does not offer version {API} of its interface; \
                 ONNX Runtime 1.{API} or newer is needed"
            ));
        }
        let newer = match is_older(&version, GPU_API) {
            true => ptr::null(),
            // SAFETY: `base` is not null and points to a static table of two entries; `GetApi`
            // takes any number.
            false => unsafe { ((*base).GetApi)(GPU_API) },
        };
        let (api, offers_gpu_api) = if newer.is_null() { (api, false) } else { (newer, true) };
        // The table points into the library, so it must not be closed.
        std::mem::forget(library);
        let mut runtime = Self {
            api,
            env: ptr::null_mut(),
            memory: ptr::null_mut(),
            allocator: ptr::null_mut(),
            run_options: ptr::null_mut(),
            offers_gpu_api,
            version,
            origin: path.display().to_string(),
        };
        runtime.begin().map_err(|fault| fault.text)?;
        Ok(runtime)
    }

    /// Creates the environment, memory info, allocator and run options that all sessions share.
    fn begin(&mut self) -> Result<(), PluginFault> {
        // SAFETY: differs from the declared type only in taking the severity as an integer, so that
        // an unknown number is not an invalid enum value.
        let logger =
            unsafe { std::mem::transmute::<Logger, OrtLoggingFunction>(on_message as Logger) };
        let severity = OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING;
        // SAFETY: the table is valid; out pointers are fields of ours; the name is copied.
        unsafe {
            ort!(
                self,
                CreateEnvWithCustomLogger(
                    logger,
                    ptr::null_mut(),
                    severity,
                    ENVIRONMENT_ID.as_ptr(),
                    &raw mut self.env
                )
            )?;
            ort!(self, DisableTelemetryEvents(self.env))?;
            ort!(
                self,
                CreateCpuMemoryInfo(
                    OrtAllocatorType::OrtDeviceAllocator,
                    OrtMemType::OrtMemTypeDefault,
                    &raw mut self.memory
                )
            )?;
            ort!(self, CreateRunOptions(&raw mut self.run_options))?;
            ort!(self, GetAllocatorWithDefaultOptions(&raw mut self.allocator))
        }
    }

    /// Frees a status and keeps its code and text.
    pub fn outcome(&self, status: OrtStatusPtr) -> Result<(), PluginFault> {
        if status.0.is_null() {
            return Ok(());
        }
        Err(self.failure(status.0))
    }

    #[cold]
    fn failure(&self, status: *mut OrtStatus) -> PluginFault {
        type Code = unsafe extern "system" fn(*const OrtStatus) -> i32;
        // SAFETY: the status is not null and ours until the release; the code is read as an
        // integer because newer libraries may have codes that the enum lacks.
        unsafe {
            let code_of: Code = std::mem::transmute((*self.api).GetErrorCode);
            let number = code_of(status);
            let text = read_c_text(((*self.api).GetErrorMessage)(status));
            ((*self.api).ReleaseStatus)(status);
            let code = match number {
                2 => code::INVALID,     // ORT_INVALID_ARGUMENT
                9 => code::UNSUPPORTED, // ORT_NOT_IMPLEMENTED
                _ => code::INTERNAL,
            };
            PluginFault { code, text: format!("onnx runtime error {number}: {text}") }
        }
    }

    /// The library, for messages.
    pub fn label(&self) -> String {
        format!("ONNX Runtime {} from {}", self.version, self.origin)
    }

    /// Execution providers built into the library.
    pub fn providers(&self) -> Vec<String> {
        let mut names: *mut *mut c_char = ptr::null_mut();
        let mut count = 0;
        // SAFETY: on success `names` holds `count` C strings until they are released.
        unsafe {
            if ort!(self, GetAvailableProviders(&raw mut names, &raw mut count)).is_err() {
                return Vec::new();
            }
            let list = (0..usize::try_from(count).unwrap_or(0)).map(|i| read_c_text(*names.add(i)));
            let list = list.collect();
            // A failure to free has no consequences but the leak.
            let _ = ort!(self, ReleaseAvailableProviders(names, count));
            list
        }
    }
}

/// Whether this version is known not to support an API, such as `1.17.3` number 18; false if it
/// cannot be parsed.
fn is_older(version: &str, api: u32) -> bool {
    let mut parts = version.split('.').map(str::parse::<u32>);
    matches!((parts.next(), parts.next()), (Some(Ok(1)), Some(Ok(minor))) if minor < api)
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
