//! Entries for errors, log, time and loading.

use super::{ERROR, Str, entry, handle_id, lock_state, refuse_misuse, text, void_entry};
use crate::report::report_violation;
use std::sync::atomic::AtomicU32;
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_plugin_api::abi::types::{Error, Scope, code, error_flags, level};

/// All levels, so that each record is checked.
static LEVEL: AtomicU32 = AtomicU32::new(level::TRACE);

/// Sets the log level of all scopes, TRACE by default.
pub fn set_log_level(level: u32) {
    LEVEL.store(level, std::sync::atomic::Ordering::Relaxed);
}

pub(super) unsafe extern "C" fn error_new(code: u32, flags: u32, said: Str) -> *mut Error {
    // SAFETY: the text is valid during the call.
    let said = unsafe { text(said, "the text of an error") };
    let known = error_flags::RETRYABLE
        | error_flags::CLIENT
        | error_flags::DEVICE_LOST
        | error_flags::MODEL_BROKEN;
    if code > code::ABORTED || flags & !known != 0 {
        report_violation(
            "host.calls",
            format!("error_new: unknown code {code} or flags {flags:#x}"),
        );
    }
    let said = said.unwrap_or_else(|refusal| {
        report_violation("host.calls", format!("error_new: {}", refusal.text));
        "(an unreadable text)".to_owned()
    });
    lock_state().new_error(code, flags, &said)
}

pub(super) unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    match lock_state().error(error) {
        Ok(found) => found.map_or(code::UNKNOWN, |e| e.code),
        Err(refusal) => {
            report_violation("host.calls", format!("error_code: {}", refusal.text));
            code::UNKNOWN
        }
    }
}

pub(super) unsafe extern "C" fn error_text(error: *const Error) -> Str {
    let state = lock_state();
    match handle_id(ERROR, error, "error").ok().and_then(|id| state.errors.get(&id)) {
        // Boxed, so the text stays in place until the error is freed.
        Some(record) => crate::text::as_str(&record.text),
        None => {
            if !error.is_null() {
                report_violation("host.calls", "error_text: an error was used after it was freed");
            }
            crate::text::EMPTY
        }
    }
}

pub(super) unsafe extern "C" fn error_free(error: *mut Error) {
    if error.is_null() {
        return;
    }
    void_entry("error_free", |state| {
        match state.errors.remove(&handle_id(ERROR, error, "error")?) {
            Some(_) => Ok(()),
            None => refuse_misuse("an error was freed twice"),
        }
    });
}

pub(super) unsafe extern "C" fn log_level(_: *const Scope) -> *const u32 {
    LEVEL.as_ptr()
}

pub(super) unsafe extern "C" fn log(
    scope: *const Scope,
    at: u32,
    file: Str,
    _line: u32,
    said: Str,
) {
    void_entry("log", |state| {
        // SAFETY: the strings are valid during the call.
        let said = unsafe {
            text(file, "the file of a log record")?;
            text(said, "the text of a log record")?
        };
        if !(level::ERROR..=level::TRACE).contains(&at) {
            return refuse_misuse(format!("unknown level {at} of the log record '{said}'"));
        }
        state.scope(scope)?.1.log.push((at, said));
        Ok(())
    });
}

pub(super) unsafe extern "C" fn now_ns() -> u64 {
    crate::now_ns()
}

pub(super) unsafe extern "C" fn config_patch(
    scope: *mut Scope,
    format: u32,
    p: *const u8,
    n: u64,
) -> *mut Error {
    entry("config_patch", |state| {
        let (_, scope) = state.scope(scope)?;
        if format > patch_format::COMPLETED_JSON {
            return refuse_misuse(format!("unknown format {format}"));
        }
        if n > 0 && p.is_null() || n > 1 << 30 {
            return refuse_misuse(format!("invalid patch: {n} bytes at {p:p}"));
        }
        let data = match n {
            0 => Vec::new(),
            // SAFETY: the backend passes `n` readable bytes.
            _ => unsafe { std::slice::from_raw_parts(p, n as usize) }.to_vec(),
        };
        scope.patches.push((format, data));
        Ok(())
    })
}

pub(super) unsafe extern "C" fn progress(scope: *mut Scope, stage: Str, permille: u32) -> u32 {
    let mut abandoned = false;
    void_entry("progress", |state| {
        abandoned = state.abandon_loads;
        state.scope(scope)?;
        // SAFETY: the string is valid during the call.
        let stage = unsafe { text(stage, "a stage") }?;
        if permille > 1000 {
            return refuse_misuse(format!("progress {permille} of 1000 in stage '{stage}'"));
        }
        Ok(())
    });
    abandoned.into()
}
