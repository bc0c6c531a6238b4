//! The open library of a framework, which all models of a backend share.

use crate::fault::PluginFault;
use crate::log;
use crate::search::Framework;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trtserver_plugin_api::abi::types::level;

/// A library that stays open until the process ends.
pub trait FrameworkLibrary {
    /// For operators: `XGBoost 3.2.0`.
    fn label(&self) -> &str;
}

/// A library, once a model has needed it.
pub struct LibrarySlot<L>(Mutex<Option<Arc<L>>>);

impl<L> Default for LibrarySlot<L> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<L: FrameworkLibrary> LibrarySlot<L> {
    /// Opens the library with `open` unless a model has needed it before. `setting` is the value of
    /// the server-wide setting that names it. A failure is not remembered: the next load tries
    /// again, so installing the library needs no restart.
    ///
    /// # Errors
    /// There is no such library, or it cannot be used.
    pub fn open(
        &self,
        framework: &Framework,
        setting: Option<&str>,
        plugin_dir: &Path,
        open: impl Fn(&Path) -> Result<L, String>,
    ) -> Result<Arc<L>, PluginFault> {
        let mut slot = self.lock();
        if let Some(library) = slot.as_ref() {
            return Ok(Arc::clone(library));
        }
        let variable = std::env::var_os(framework.variable);
        let plan = framework.plan(setting, variable.as_deref(), plugin_dir);
        let mut origin = String::new();
        let library = framework.open(plan, |path| {
            origin = path.display().to_string();
            open(path)
        })?;
        log::write_line(level::INFO, &format!("{} from {origin}", library.label()));
        Ok(Arc::clone(slot.insert(Arc::new(library))))
    }

    /// `None` before a model has needed the library.
    pub fn label(&self) -> Option<String> {
        self.lock().as_ref().map(|library| library.label().to_owned())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<L>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
