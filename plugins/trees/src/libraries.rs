//! The libraries: each is opened when the first model needs it and never closed.

use crate::symbols::{LgbmTable, XgbTable};
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;
use trtserver_framework::fault::PluginFault;
use trtserver_framework::library_slot::{FrameworkLibrary, LibrarySlot};
use trtserver_framework::log;
use trtserver_framework::search::{Framework, load_resolved, read_c_text};
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

impl<T> FrameworkLibrary for OpenLibrary<T> {
    fn label(&self) -> &str {
        &self.label
    }
}

/// The libraries that models of this backend have needed so far.
#[derive(Default)]
pub struct Libraries {
    lightgbm: LibrarySlot<OpenLibrary<LgbmTable>>,
    xgboost: LibrarySlot<OpenLibrary<XgbTable>>,
}

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
        self.lightgbm.open(&LIGHTGBM, setting(LIGHTGBM.setting), plugin_dir, open_lightgbm)
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
        self.xgboost.open(&XGBOOST, setting(XGBOOST.setting), plugin_dir, open_xgboost)
    }

    /// The libraries that are open, for operators.
    pub fn labels(&self) -> Vec<String> {
        [self.lightgbm.label(), self.xgboost.label()].into_iter().flatten().collect()
    }
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
