//! Forwards the library's messages to the host's log; by default it writes colour codes to stderr.

use std::ffi::{c_char, c_void};
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

/// Called by the library for each message.
///
/// # Safety
/// The texts are C strings.
pub unsafe extern "system" fn on_message(
    _: *mut c_void,
    severity: i32,
    _category: *const c_char,
    _id: *const c_char,
    location: *const c_char,
    message: *const c_char,
) {
    // A panic must not unwind into the library; the message is lost.
    let _ = std::panic::catch_unwind(|| {
        // SAFETY: the library passes C strings that live during this call.
        let (message, location) = unsafe { (read_c_text(message), read_c_text(location)) };
        let level = match severity {
            0 => level::TRACE,
            1 => level::VERBOSE,
            2 => level::WARNING,
            _ => level::ERROR,
        };
        log::write_line(level, &format!("onnx runtime: {} ({location})", message.trim_end()));
    });
}
