//! The TensorFlow library: opened when the first model needs it, never closed.
//!
//! Nothing is linked. Any library that exports the functions of [`Api`] is used, whatever its release.

use crate::api::Api;
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_framework::fault::Fault;
use trtserver_framework::log;
use trtserver_framework::search::{Framework, load, text};
use trtserver_plugin_api::abi::types::level;

/// Environment variable that names the library.
pub const VARIABLE: &str = "TRTSERVER_TENSORFLOW_LIBRARY";

static FRAMEWORK: Framework = Framework {
    name: "TensorFlow",
    backend: "tensorflow",
    variable: VARIABLE,
    // The first two are in the wheels of Python, the others in the packages for C.
    files: &["libtensorflow_cc.so", "libtensorflow.so"],
    system: &["libtensorflow_cc.so.2", "libtensorflow.so.2", "libtensorflow.so"],
    advice: "`cargo xtask runtimes --tensorflow`, or `pip install tensorflow-cpu`, which installs \
             tensorflow/libtensorflow_cc.so.2,",
};

/// The opened library. There is one for each copy of the plugin, and it is never closed, hence `&'static Runtime`.
pub struct Runtime {
    pub api: Api,
    /// For example `2.21.0`.
    pub version: String,
    /// Its path, or the name that the dynamic loader resolved.
    origin: String,
}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();
/// Held while the library is opened, so that concurrent loads open it once.
static OPENING: Mutex<()> = Mutex::new(());

/// The runtime, if it is open.
pub fn current() -> Option<&'static Runtime> {
    RUNTIME.get()
}

/// Opens the library unless it is open. A failure is not cached: the next load tries again, so installing the library
/// needs no restart.
pub fn open(setting: Option<&str>, plugin_dir: &Path) -> Result<&'static Runtime, Fault> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let variable = std::env::var_os(VARIABLE);
    let plan = FRAMEWORK.plan(setting, variable.as_deref(), plugin_dir);
    let runtime = FRAMEWORK.open(plan, Runtime::open)?;
    log::write(level::INFO, &format!("TensorFlow {} from {}", runtime.version, runtime.origin));
    Ok(RUNTIME.get_or_init(|| runtime))
}

impl Runtime {
    fn open(path: &Path) -> Result<Self, String> {
        let library = load(path)?;
        // SAFETY: the names are those of TensorFlow's C API.
        let api = unsafe { Api::load(&library) }.map_err(|absent| {
            if absent.contains(&"TF_Version") {
                return "it has no symbol TF_Version, so it is not TensorFlow".to_owned();
            }
            // SAFETY: the type of the function in every release.
            let version = unsafe {
                library
                    .get::<unsafe extern "C" fn() -> *const std::ffi::c_char>(b"TF_Version\0")
                    .map(|version| text(version()))
                    .unwrap_or_default()
            };
            let absent = absent.join(", ");
            format!("it is TensorFlow {version}, which lacks functions that are needed: {absent}")
        })?;
        // SAFETY: returns a constant string.
        let version = unsafe { text((api.version)()) };
        // The functions point into the library, so it must not be closed.
        std::mem::forget(library);
        Ok(Self { api, version, origin: path.display().to_string() })
    }
}
