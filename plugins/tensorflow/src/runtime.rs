//! The TensorFlow library: opened when the first model needs it, never closed.
//!
//! Nothing is linked. Any library that exports the functions of [`Api`] is used, whatever its
//! release.

use crate::api::{Api, TfBuffer};
use crate::environment;
use crate::proto::MalformedProto;
use crate::state::{self, StateFindings};
use crate::status::{Status, tf};
use libloading::os::unix::Library;
use std::collections::{HashMap, HashSet};
use std::ffi::{CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_framework::search::{Framework, SETTING, SearchPlan, load_library, read_c_text};
use trtserver_plugin_api::abi::types::level;

/// Environment variable that names the library.
pub const VARIABLE: &str = "TRTSERVER_TENSORFLOW_LIBRARY";

static FRAMEWORK: Framework = Framework {
    name: "TensorFlow",
    backend: "tensorflow",
    setting: SETTING,
    variable: VARIABLE,
    // The first two are in the wheels of Python, the others in the packages for C.
    files: &["libtensorflow_cc.so", "libtensorflow.so"],
    system: &["libtensorflow_cc.so.2", "libtensorflow.so.2", "libtensorflow.so"],
    packages: &["tensorflow"],
    advice: "`cargo xtask runtimes --tensorflow`, or `pip install tensorflow-cpu`, which installs \
             tensorflow/libtensorflow_cc.so.2,",
};

/// The opened library. It is never closed, hence `&'static TensorFlowRuntime`.
///
/// There is one in a process: each release has its own `libtensorflow_framework.so.2`, and the
/// dynamic loader, which identifies it by that name, would connect the second release to the first
/// one's.
pub struct TensorFlowRuntime {
    pub api: Api,
    /// For example `2.21.0`.
    pub version: String,
    /// Its path, or the name that the dynamic loader resolved.
    pub origin: String,
    /// Whether each operation is stateful.
    operations: Mutex<HashMap<String, bool>>,
    /// Libraries of custom operations that are loaded.
    operators: Mutex<HashSet<PathBuf>>,
}

static RUNTIME: OnceLock<TensorFlowRuntime> = OnceLock::new();
/// Held while the library is opened, so that concurrent loads open it once.
static OPENING: Mutex<()> = Mutex::new(());

/// The runtime, if it is open.
pub fn opened_runtime() -> Option<&'static TensorFlowRuntime> {
    RUNTIME.get()
}

/// Opens the library unless it is open. A failure is not cached: the next load tries again, so
/// installing the library needs no restart.
///
/// # Errors
/// There is no such library, it cannot be used, or another one is open.
pub fn open_runtime(
    setting: Option<&str>,
    plugin_dir: &Path,
) -> Result<&'static TensorFlowRuntime, PluginFault> {
    let _alone = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
    let variable = std::env::var_os(VARIABLE);
    let plan = FRAMEWORK.plan(setting, variable.as_deref(), plugin_dir);
    if let Some(runtime) = RUNTIME.get() {
        // Without a name every library is acceptable.
        return match &plan {
            SearchPlan::Named { .. } => {
                FRAMEWORK.open(plan, |path| runtime.expect_same(path).map(|()| runtime))
            }
            SearchPlan::Search { .. } => Ok(runtime),
        };
    }
    let runtime = FRAMEWORK.open(plan, TensorFlowRuntime::open)?;
    log::write_line(
        level::INFO,
        &format!("TensorFlow {} from {}", runtime.version, runtime.origin),
    );
    Ok(RUNTIME.get_or_init(|| runtime))
}

impl TensorFlowRuntime {
    fn open(path: &Path) -> Result<Self, String> {
        let min_level = environment::prepare_environment();
        let (library, api) = load_functions(path)?;
        silence_absl(&library, min_level);
        // SAFETY: returns a constant string.
        let version = unsafe { read_c_text((api.version)()) };
        // The functions point into the library, so it must not be closed.
        std::mem::forget(library);
        // SAFETY: the listener may be called from any thread, for ever.
        unsafe { (api.register_log_listener)(on_print) };
        Ok(Self {
            api,
            version,
            origin: path.display().to_string(),
            operations: Mutex::default(),
            operators: Mutex::default(),
        })
    }

    /// # Errors
    /// The library at `path` is not this one.
    fn expect_same(&self, path: &Path) -> Result<(), String> {
        let (_, api) = load_functions(path)?;
        match std::ptr::fn_addr_eq(api.version, self.api.version) {
            true => Ok(()),
            false => Err(format!("this process has loaded another TensorFlow, {}", self.origin)),
        }
    }

    /// Loads custom operations, once per file: TensorFlow keeps them for the life of the process.
    pub fn load_operators(&'static self, path: &Path) -> Result<(), PluginFault> {
        let name = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut loaded = self.operators.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.contains(&name) {
            return Ok(());
        }
        let c_name = CString::new(name.as_os_str().as_bytes())
            .map_err(|_| PluginFault::invalid("the path holds a NUL byte"))?;
        let mut status = Status::new(self);
        // SAFETY: the name is a C string; the handle is freed, the library stays loaded.
        unsafe {
            let handle = tf!(self, status, load_library(c_name.as_ptr()))?;
            (self.api.delete_library_handle)(handle);
        }
        loaded.insert(name);
        Ok(())
    }

    /// See [`state::find_state`].
    pub fn find_state(
        &self,
        graph: &[u8],
        outputs: &[&str],
    ) -> Result<StateFindings, MalformedProto> {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        let found = state::find_state(graph, outputs, &operations)?;
        if found.keeping.iter().all(|kind| operations.contains_key(kind)) {
            return Ok(found);
        }
        // The first model, or custom operations were loaded.
        *operations = self.list_operations()?;
        state::find_state(graph, outputs, &operations)
    }

    /// Encoded `KernelList` for a type of operations.
    pub fn registered_kernels(&'static self, kind: &str) -> Option<Vec<u8>> {
        let kind = CString::new(kind).ok()?;
        let mut status = Status::new(self);
        // SAFETY: the name is a C string; the buffer is ours until it is deleted.
        unsafe {
            let list = tf!(self, status, registered_kernels(kind.as_ptr())).ok()?;
            let TfBuffer { data, length, .. } = *list;
            let bytes = match data.is_null() {
                true => Vec::new(),
                false => std::slice::from_raw_parts(data.cast::<u8>(), length).to_vec(),
            };
            (self.api.delete_buffer)(list);
            Some(bytes)
        }
    }

    fn list_operations(&self) -> Result<HashMap<String, bool>, MalformedProto> {
        // SAFETY: the buffer is ours until it is deleted.
        unsafe {
            let list = (self.api.all_operations)();
            let bytes = std::slice::from_raw_parts((*list).data.cast::<u8>(), (*list).length);
            let operations = state::stateful_operations(bytes);
            (self.api.delete_buffer)(list);
            operations
        }
    }
}

/// The library at `path`, and its functions.
fn load_functions(path: &Path) -> Result<(Library, Api), String> {
    refuse_second(path)?;
    let library = load_library(path)?;
    // SAFETY: the names are those of TensorFlow's C API.
    let api = unsafe { Api::load(&library) }.map_err(|absent| {
        if absent.contains(&"TF_Version") {
            return "it has no symbol TF_Version, so it is not TensorFlow".to_owned();
        }
        // SAFETY: the type of the function in every release.
        let version = unsafe {
            library
                .get::<unsafe extern "C" fn() -> *const c_char>(b"TF_Version\0")
                .map(|version| read_c_text(version()))
                .unwrap_or_default()
        };
        let absent = absent.join(", ");
        format!("it is TensorFlow {version}, which lacks functions that are needed: {absent}")
    })?;
    Ok((library, api))
}

/// Recent releases log through Abseil, which has no environment variable for it. Its namespace
/// carries the date of its release; where none of the known ones matches, warnings are logged.
fn silence_absl(library: &Library, min_level: i32) {
    const DATES: [u32; 8] =
        [20230125, 20230802, 20240116, 20240722, 20250127, 20250512, 20250814, 20260107];
    for date in DATES {
        let name = format!("_ZN4absl12lts_{date}14SetMinLogLevelENS0_18LogSeverityAtLeastE\0");
        // SAFETY: `void absl::SetMinLogLevel(enum)`, by its mangled name.
        unsafe {
            if let Ok(set) = library.get::<unsafe extern "C" fn(i32)>(name.as_bytes()) {
                set(min_level);
            }
        }
    }
}

/// Receives the output of `tf.print`.
unsafe extern "C" fn on_print(message: *const c_char) {
    // A panic must not unwind into the library; the message is lost.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: a C string that lives during this call.
        let message = unsafe { read_c_text(message) };
        log::write_line(level::INFO, &format!("tensorflow: {}", message.trim_end()));
    });
}

/// # Errors
/// Another TensorFlow library than the one at `path` is loaded in this process.
fn refuse_second(path: &Path) -> Result<(), String> {
    // A name without a directory is the loaded library, for the dynamic loader.
    let Ok(path) = path.canonicalize() else { return Ok(()) };
    match loaded_elsewhere(&path, &std::fs::read_to_string("/proc/self/maps").unwrap_or_default()) {
        None => Ok(()),
        Some(other) => Err(format!(
            "this process has loaded another TensorFlow, {other}, and the dynamic loader would connect the two \
             through libtensorflow_framework.so.2; models of one of them need a process of their own: \
             parameters {{ key: \"isolation\" value: {{ string_value: \"process\" }} }}"
        )),
    }
}

/// A loaded TensorFlow library in another directory. `maps` is the content of `/proc/self/maps`.
fn loaded_elsewhere<'a>(path: &Path, maps: &'a str) -> Option<&'a str> {
    maps.lines().find_map(|line| {
        let file = line.find('/').map(|at| &line[at..])?;
        let (dir, name) = (Path::new(file).parent(), Path::new(file).file_name()?.to_str()?);
        let is_library = name.starts_with("libtensorflow") && name.contains(".so");
        (is_library && dir != path.parent()).then_some(file)
    })
}

#[cfg(test)]
#[path = "runtime_tests.rs"]
mod tests;
