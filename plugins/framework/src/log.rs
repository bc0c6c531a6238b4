//! Log lines of a framework's library, which is never closed, while the host's log is only valid
//! while the backend is open.

use std::sync::{PoisonError, RwLock};
use trtserver_plugin_api::author::Scope;

static SCOPE: RwLock<Option<Scope>> = RwLock::new(None);

/// Sets the log that [`write_line`] writes to.
pub fn send_to(scope: &Scope) {
    *SCOPE.write().unwrap_or_else(PoisonError::into_inner) = Some(scope.clone());
}

/// Whether lines of a level are written.
pub fn is_enabled(level: u32) -> bool {
    let scope = SCOPE.read().unwrap_or_else(PoisonError::into_inner);
    scope.as_ref().is_some_and(|scope| scope.enabled(level))
}

/// Logs a line at one of the interface's levels; discarded before [`send_to`] and when the backend
/// is closed.
pub fn write_line(level: u32, line: &str) {
    if let Some(scope) = SCOPE.read().unwrap_or_else(PoisonError::into_inner).as_ref() {
        scope.log(level, file!(), line!(), format_args!("{line}"));
    }
}
