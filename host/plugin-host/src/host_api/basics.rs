//! Host entries for errors, log, time, configuration patches and load progress.

use super::guard::{guard_entry, guard_value};
use crate::host_api::scope::{Patch, Scope};
use crate::host_state::HOST;
use crate::text::{EMPTY, PluginError, read_text, str_view};
use std::sync::atomic::Ordering;
use trtserver_base::clock;
use trtserver_base::error::Error as HostError;
use trtserver_plugin_api::abi::types::{self, Error, Str, code, level};

pub(super) const VERSION: Str = {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    Str { p: TEXT.as_ptr(), n: (TEXT.len() - 1) as u64 }
};

/// Sets the log level of backends in this process.
pub fn set_log_level(level: u32) {
    HOST.log_level.store(level, Ordering::Relaxed);
}

/// The log level of backends.
pub fn log_level_set() -> u32 {
    HOST.log_level.load(Ordering::Relaxed)
}

pub(super) unsafe extern "C" fn error_new(code: u32, flags: u32, text: Str) -> *mut Error {
    guard_value(std::ptr::null_mut(), || {
        // SAFETY: the text is valid during the call.
        PluginError::raw(code, flags, &unsafe { read_text(text) })
    })
}

pub(super) unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    // SAFETY: null or an error of `error_new` that was not freed.
    unsafe { error.cast::<PluginError>().as_ref() }.map_or(code::UNKNOWN, |e| e.code)
}

pub(super) unsafe extern "C" fn error_text(error: *const Error) -> Str {
    // SAFETY: null or an error of `error_new` that was not freed.
    unsafe { error.cast::<PluginError>().as_ref() }.map_or(EMPTY, |e| str_view(&e.text))
}

pub(super) unsafe extern "C" fn error_free(error: *mut Error) {
    // SAFETY: null or an error of `error_new`; freed once by the interface.
    guard_value((), || drop(unsafe { crate::text::take_error(error) }));
}

pub(super) unsafe extern "C" fn log_level(_scope: *const types::Scope) -> *const u32 {
    HOST.log_level.as_ptr()
}

pub(super) unsafe extern "C" fn log(
    scope: *const types::Scope,
    log_level: u32,
    file: Str,
    line: u32,
    text: Str,
) {
    guard_value((), || {
        // SAFETY: handle and texts are valid during the call.
        let (scope, file, text) =
            unsafe { (Scope::from_handle(scope), read_text(file), read_text(text)) };
        let scope = scope.map_or("backend", |s| s.label());
        match log_level {
            0 | level::ERROR => tracing::error!(scope, at.file = file, at.line = line, "{text}"),
            level::WARNING => tracing::warn!(scope, at.file = file, at.line = line, "{text}"),
            level::INFO => tracing::info!(scope, at.file = file, at.line = line, "{text}"),
            level::VERBOSE => tracing::debug!(scope, at.file = file, at.line = line, "{text}"),
            _ => tracing::trace!(scope, at.file = file, at.line = line, "{text}"),
        }
    });
}

pub(super) unsafe extern "C" fn now_ns() -> u64 {
    clock::now_ns()
}

pub(super) unsafe extern "C" fn config_patch(
    scope: *mut types::Scope,
    format: u32,
    p: *const u8,
    n: u64,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        let data = if p.is_null() || n == 0 || isize::try_from(n).is_err() {
            Vec::new()
        } else {
            // SAFETY: the backend passes `n` readable bytes.
            unsafe { std::slice::from_raw_parts(p, n as usize) }.to_vec()
        };
        let patch = Patch { format, data };
        // The caller learns at once what is wrong.
        patch.decode().map_err(|why| {
            HostError::invalid(format!("the configuration cannot be read: {why}"))
        })?;
        *scope.patch.lock() = Some(patch);
        Ok(())
    })
}

pub(super) unsafe extern "C" fn progress(
    scope: *mut types::Scope,
    stage: Str,
    permille: u32,
) -> u32 {
    guard_value(0, || {
        // SAFETY: handle and text are valid during the call.
        let (scope, stage) = unsafe { (Scope::from_handle(scope), read_text(stage)) };
        let label = scope.map_or("backend", |s| s.label());
        tracing::debug!(scope = label, permille, "{stage}");
        let Some(load) = scope.and_then(Scope::load) else { return 0 };
        load.report(&stage, permille);
        u32::from(load.is_cancelled())
    })
}

pub(super) fn no_scope() -> HostError {
    HostError::invalid("a host function was called without a scope")
}
