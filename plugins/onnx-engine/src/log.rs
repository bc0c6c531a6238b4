//! Forwards the library's messages to the host's log, with the model that they are about; by default
//! the library writes colour codes to stderr.
//!
//! Loggers of sessions and runs have the model as their id. Other parts of the library, such as
//! execution providers, use the logger of the environment: their lines are about the model that the
//! calling thread opens or runs.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use trtserver_framework::log;
use trtserver_framework::search::read_c_text;
use trtserver_plugin_api::abi::types::level;

/// The library's callback, with the severity as an integer.
pub type Logger = unsafe extern "system" fn(
    *mut c_void,
    i32,
    *const c_char,
    *const c_char,
    *const c_char,
    *const c_char,
);

/// Id of the environment's logger.
pub const ENVIRONMENT_ID: &CStr = c"trtserver";

thread_local! {
    /// The model whose session this thread opens or runs.
    static MODEL: RefCell<Option<Arc<str>>> = const { RefCell::new(None) };
}

/// This thread opens or runs a session of a model until the value is dropped.
pub struct ModelScope {
    before: Option<Arc<str>>,
}

impl ModelScope {
    pub fn enter(model: &Arc<str>) -> Self {
        Self { before: MODEL.replace(Some(Arc::clone(model))) }
    }
}

impl Drop for ModelScope {
    fn drop(&mut self) {
        MODEL.set(self.before.take());
    }
}

/// Called by the library for each message.
///
/// # Safety
/// The texts are C strings.
pub unsafe extern "system" fn on_message(
    _: *mut c_void,
    severity: i32,
    _category: *const c_char,
    id: *const c_char,
    location: *const c_char,
    message: *const c_char,
) {
    // A panic must not unwind into the library; the message is lost.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: the library passes C strings that live during this call.
        let (message, location, id) =
            unsafe { (read_c_text(message), read_c_text(location), read_c_text(id)) };
        let level = match severity {
            0 => level::TRACE,
            1 => level::VERBOSE,
            2 => level::WARNING,
            _ => level::ERROR,
        };
        let model = MODEL.with_borrow(Option::clone);
        log::write_line(level, &format_line(&id, model.as_deref(), message.trim_end(), &location));
    });
}

/// A line of the log; `model` is that of the calling thread.
fn format_line(id: &str, model: Option<&str>, message: &str, location: &str) -> String {
    let is_environment = id.is_empty() || id.as_bytes() == ENVIRONMENT_ID.to_bytes();
    match if is_environment { model } else { Some(id) } {
        Some(model) => format!("onnx runtime: {model}: {message} ({location})"),
        None => format!("onnx runtime: {message} ({location})"),
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
