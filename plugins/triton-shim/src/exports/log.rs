//! `TRITONSERVER_Log*`: the server's log.

use super::guard::{TextMaybe, export};
use crate::scope::{self, Scope};
use std::ffi::c_int;
use std::sync::Arc;
use trtserver_plugin_api::abi::types::level;

/// A level of Triton in the numbers of the host.
fn host_level(level: c_int) -> u32 {
    match level {
        0 => level::INFO,
        1 => level::WARNING,
        2 => level::ERROR,
        _ => level::VERBOSE,
    }
}

export! {
    /// Whether records of a level are written.
    fn TRITONSERVER_LogIsEnabled(level: c_int) -> u8, 0; {
        let enabled = |scope: Arc<Scope>| scope.enabled(host_level(level));
        Ok(u8::from(scope::current_scope().is_some_and(enabled)))
    }

    /// Writes a record to the log of the server, under the name of the backend, model or instance
    /// that this thread executes.
    fn TRITONSERVER_LogMessage(level: c_int, filename: TextMaybe, line: c_int, msg: TextMaybe) {
        if let Some(scope) = scope::current_scope() {
            let file = filename.0;
            let file = file.as_ref().map_or(c"", |file| file.c());
            let text = msg.0;
            let text = text.as_ref().map(|text| text.text()).unwrap_or_default();
            scope.log(host_level(level), file, u32::try_from(line).unwrap_or_default(), &text);
        }
    }
}
