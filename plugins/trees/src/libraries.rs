//! The libraries: each is opened when the first model needs it and never closed.

use crate::symbols::{LgbmTable, XgbTable};
use libloading::os::unix::Library;
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use trtserver_framework::fault::PluginFault;
use trtserver_framework::log;
use trtserver_framework::search::{Framework, load_library, read_c_text};
use trtserver_plugin_api::abi::types::level;

const LIGHTGBM: Framework = Framework {
    name: "LightGBM",
    backend: crate::BACKEND,
    setting: "lightgbm-library",
    variable: "TRTSERVER_LIGHTGBM_LIBRARY",
    files: &["lib_lightgbm.so"],
    system: &["lib_lightgbm.so"],
    packages: &["lightgbm/lib"],
    advice: "`cargo xtask runtimes --trees`, or `pip install lightgbm`, which installs \
             lightgbm/lib/lib_lightgbm.so (it needs the system's libgomp.so.1: `apt-get install libgomp1`),",
};

const XGBOOST: Framework = Framework {
    name: "XGBoost",
    backend: crate::BACKEND,
    setting: "xgboost-library",
    variable: "TRTSERVER_XGBOOST_LIBRARY",
    files: &["libxgboost.so"],
    system: &["libxgboost.so"],
    packages: &["xgboost/lib"],
    advice: "`cargo xtask runtimes --trees`, or `pip install xgboost-cpu` (or `xgboost`, which is larger), which \
             installs xgboost/lib/libxgboost.so,",
};

/// An open library. Its functions stay valid until the process ends.
pub struct OpenLibrary<T> {
    pub table: T,
    /// For operators: `XGBoost 3.2.0`.
    pub label: String,
}

/// The libraries that models of this backend have needed so far.
#[derive(Default)]
pub struct Libraries {
    lightgbm: LibrarySlot<LgbmTable>,
    xgboost: LibrarySlot<XgbTable>,
}

type LibrarySlot<T> = Mutex<Option<Arc<OpenLibrary<T>>>>;

impl Libraries {
    /// `setting` looks up a server-wide setting.
    ///
    /// # Errors
    /// There is no such library, or it cannot be used.
    pub fn lightgbm<'a>(
        &self,
        setting: impl Fn(&str) -> Option<&'a str>,
        plugin_dir: &Path,
    ) -> Result<Arc<OpenLibrary<LgbmTable>>, PluginFault> {
        open_once(&self.lightgbm, &LIGHTGBM, setting, plugin_dir, open_lightgbm)
    }

    /// As [`Libraries::lightgbm`].
    ///
    /// # Errors
    /// There is no such library, or it cannot be used.
    pub fn xgboost<'a>(
        &self,
        setting: impl Fn(&str) -> Option<&'a str>,
        plugin_dir: &Path,
    ) -> Result<Arc<OpenLibrary<XgbTable>>, PluginFault> {
        open_once(&self.xgboost, &XGBOOST, setting, plugin_dir, open_xgboost)
    }

    /// The libraries that are open, for operators.
    pub fn labels(&self) -> Vec<String> {
        let lightgbm = self.lightgbm.lock().unwrap_or_else(PoisonError::into_inner);
        let xgboost = self.xgboost.lock().unwrap_or_else(PoisonError::into_inner);
        let both = [
            lightgbm.as_ref().map(|library| library.label.clone()),
            xgboost.as_ref().map(|library| library.label.clone()),
        ];
        both.into_iter().flatten().collect()
    }
}

/// A failure is not remembered: the next load tries again, so installing the library needs no
/// restart.
fn open_once<'a, T>(
    slot: &LibrarySlot<T>,
    framework: &Framework,
    setting: impl Fn(&str) -> Option<&'a str>,
    plugin_dir: &Path,
    open: fn(&Path) -> Result<OpenLibrary<T>, String>,
) -> Result<Arc<OpenLibrary<T>>, PluginFault> {
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(library) = slot.as_ref() {
        return Ok(Arc::clone(library));
    }
    let variable = std::env::var_os(framework.variable);
    let plan = framework.plan(setting(framework.setting), variable.as_deref(), plugin_dir);
    let mut origin = String::new();
    let library = framework.open(plan, |path| {
        origin = path.display().to_string();
        open(path)
    })?;
    log::write_line(level::INFO, &format!("{} from {origin}", library.label));
    Ok(Arc::clone(slot.insert(Arc::new(library))))
}

fn open_lightgbm(path: &Path) -> Result<OpenLibrary<LgbmTable>, String> {
    let library = load_resolved(path)?;
    // SAFETY: the names are those of LightGBM's C interface.
    let table = unsafe { LgbmTable::load(&library) }
        .map_err(|absent| absent_functions("LightGBM", "LGBM_", &absent))?;
    // The functions point into the library, so it must not be closed.
    std::mem::forget(library);
    Ok(OpenLibrary { table, label: "LightGBM".to_owned() })
}

fn open_xgboost(path: &Path) -> Result<OpenLibrary<XgbTable>, String> {
    let library = load_resolved(path)?;
    // SAFETY: the names are those of XGBoost's C interface.
    let table = unsafe { XgbTable::load(&library) }
        .map_err(|absent| absent_functions("XGBoost", "XG", &absent))?;
    std::mem::forget(library);
    let (mut major, mut minor, mut patch): (c_int, c_int, c_int) = (0, 0, 0);
    // SAFETY: three variables of the function's types.
    unsafe { (table.version)(&raw mut major, &raw mut minor, &raw mut patch) };
    Ok(OpenLibrary { table, label: format!("XGBoost {major}.{minor}.{patch}") })
}

/// Opens the file that a link leads to: a library finds the others of its package from the
/// directory that it was opened in.
fn load_resolved(path: &Path) -> Result<Library, String> {
    match path.canonicalize() {
        Ok(file) if path.components().count() > 1 => load_library(&file),
        _ => load_library(path),
    }
}

fn absent_functions(name: &str, prefix: &str, absent: &[&str]) -> String {
    let all = absent.join(", ");
    format!(
        "it lacks functions of {name} that are needed, so it is an old {name}, or not {name} at all \
         (whose functions begin with {prefix}): {all}"
    )
}

/// Passes a line of a library on to the server's log. Both libraries keep this setting for each
/// thread, and write to the standard output and error where there is none.
pub unsafe extern "C" fn on_log(line: *const c_char) {
    // A panic must not unwind into the library; the line is lost.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: a C string that lives during this call.
        let line = unsafe { read_c_text(line) };
        let line = line.trim();
        // LightGBM sends a line in pieces: `[LightGBM] [Warning]`, the text, the end.
        let is_head = line.starts_with("[LightGBM] [") && line.ends_with(']');
        if !line.is_empty() && !is_head {
            log::write_line(level::INFO, line);
        }
    });
}
