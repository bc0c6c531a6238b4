//! Host entries for errors, log, time, memory, metrics and configuration patches.

use super::{guard, guard_value, put};
use crate::clock;
use crate::error::Error as HostError;
use crate::plugin::host_api::metric::Metric as Made;
use crate::plugin::host_api::scope::{self, Patch, Scope};
use crate::plugin::text::{EMPTY, PluginError, read, view};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use trtserver_plugin_api::abi::host::metric_kind;
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Metric, Param, Place, Str, code, level, param, place,
};

pub(super) const VERSION: Str = {
    const TEXT: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    Str { p: TEXT.as_ptr(), n: (TEXT.len() - 1) as u64 }
};

/// Highest level that plugins' records are wanted at; plugins read it without a call.
static LEVEL: AtomicU32 = AtomicU32::new(level::INFO);

/// Sets the level above which plugins need not bother.
pub fn set_log_level(level: u32) {
    LEVEL.store(level, Ordering::Relaxed);
    crate::plugin::isolated::log_level(level);
}

/// What was set last.
pub fn log_level_set() -> u32 {
    LEVEL.load(Ordering::Relaxed)
}

pub(super) unsafe extern "C" fn error_new(code: u32, flags: u32, text: Str) -> *mut Error {
    guard_value(std::ptr::null_mut(), || {
        // SAFETY: the text is valid during the call.
        PluginError::raw(code, flags, &unsafe { read(text) })
    })
}

pub(super) unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    // SAFETY: null or an error made above that was not freed.
    unsafe { error.cast::<PluginError>().as_ref() }.map_or(code::UNKNOWN, |e| e.code)
}

pub(super) unsafe extern "C" fn error_text(error: *const Error) -> Str {
    // SAFETY: null or an error made above that was not freed.
    unsafe { error.cast::<PluginError>().as_ref() }.map_or(EMPTY, |e| view(&e.text))
}

pub(super) unsafe extern "C" fn error_free(error: *mut Error) {
    // SAFETY: null or an error made above; freed once by the interface's rule.
    guard_value((), || drop(unsafe { crate::plugin::text::take(error) }));
}

pub(super) unsafe extern "C" fn log_level(
    _scope: *const trtserver_plugin_api::abi::types::Scope,
) -> *const u32 {
    LEVEL.as_ptr()
}

pub(super) unsafe extern "C" fn log(
    scope: *const trtserver_plugin_api::abi::types::Scope,
    log_level: u32,
    file: Str,
    line: u32,
    text: Str,
) {
    guard_value((), || {
        // SAFETY: handle and texts are valid during the call.
        let (scope, file, text) = unsafe { (Scope::from_handle(scope), read(file), read(text)) };
        let scope = scope.map_or("backend", |s| s.label.as_str());
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
    scope: *mut trtserver_plugin_api::abi::types::Scope,
    format: u32,
    p: *const u8,
    n: u64,
) -> *mut Error {
    guard(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        let data = if p.is_null() || n == 0 || isize::try_from(n).is_err() {
            Vec::new()
        } else {
            // SAFETY: the plugin passes `n` readable bytes.
            unsafe { std::slice::from_raw_parts(p, n as usize) }.to_vec()
        };
        *scope.patch.lock() = Some(Patch { format, data });
        Ok(())
    })
}

pub(super) unsafe extern "C" fn progress(
    scope: *mut trtserver_plugin_api::abi::types::Scope,
    stage: Str,
    permille: u32,
) -> u32 {
    guard_value(0, || {
        // SAFETY: handle and text are valid during the call.
        let (scope, stage) = unsafe { (Scope::from_handle(scope), read(stage)) };
        let scope = scope.map_or("backend", |s| s.label.as_str());
        tracing::debug!(scope, permille, "{stage}");
        0
    })
}

pub(super) unsafe extern "C" fn mem_alloc(
    scope: *mut trtserver_plugin_api::abi::types::Scope,
    wish: Place,
    bytes: u64,
    align: u64,
    _flags: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    let mut none_left = None;
    let error = guard(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        if wish.kind != place::CPU {
            return Err(HostError::unsupported(format!(
                "{}: this host allocates CPU memory only, kind {} was asked for",
                scope.label, wish.kind
            )));
        }
        let most = crate::request::buffer::ALIGN as u64;
        if align > most || bytes > isize::MAX as u64 {
            return Err(HostError::unsupported(format!(
                "{}: {bytes} bytes aligned to {align} were asked for, alignment goes up to {most}",
                scope.label
            )));
        }
        let Some((ptr, lease)) = scope.alloc(bytes as usize) else {
            none_left = Some(format!("{}: {bytes} bytes are not there now", scope.label));
            return Ok(());
        };
        let buf = Buf { ptr, bytes, place: Place::CPU, ready: std::ptr::null_mut(), lease };
        // SAFETY: null or room for one buffer.
        unsafe { put(out, buf) }
    });
    match none_left {
        Some(text) => PluginError::raw(code::EXHAUSTED, 0, &text),
        None => error,
    }
}

pub(super) unsafe extern "C" fn mem_free(lease: u64, _after: *mut Event) {
    guard_value((), || {
        if !scope::free(lease) {
            tracing::warn!("a backend freed memory {lease}, which is not or no longer allocated");
        }
    });
}

pub(super) unsafe extern "C" fn metric_new(
    scope: *mut trtserver_plugin_api::abi::types::Scope,
    kind: u32,
    name: Str,
    help: Str,
    labels: *const Param,
    n_labels: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    guard(|| {
        // SAFETY: handle and texts are valid during the call.
        let (scope, name, help) =
            unsafe { (Scope::from_handle(scope).ok_or_else(no_scope)?, read(name), read(help)) };
        let labels = if labels.is_null() {
            &[]
        } else {
            // SAFETY: the plugin passes `n_labels` parameters.
            unsafe { std::slice::from_raw_parts(labels, n_labels as usize) }
        };
        let labels: Vec<(String, String)> = labels
            .iter()
            .filter(|l| l.kind == param::STRING)
            // SAFETY: texts are valid during the call.
            .map(|l| unsafe { (read(l.key), read(l.text)) })
            .collect();
        let counter = match kind {
            metric_kind::COUNTER => true,
            metric_kind::GAUGE => false,
            _ => return Err(HostError::unsupported(format!("metric '{name}': kind {kind}"))),
        };
        let made = scope.metrics.metric(counter, &name, &help, &labels)?;
        // SAFETY: null or room for one handle.
        unsafe { put(out, Arc::as_ptr(&made).cast_mut().cast()) }
    })
}

pub(super) unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle whose scope, which keeps the metric, is open.
        match unsafe { metric.cast::<Made>().as_ref() } {
            Some(made) => made.put(value),
            None => Err(HostError::invalid("metric_put without a metric")),
        }
    })
}

pub(super) unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    // SAFETY: as above.
    guard_value(0.0, || unsafe { metric.cast::<Made>().as_ref() }.map_or(0.0, |m| m.series.get()))
}

/// Others of the same scope may have the same metric, which goes with it.
pub(super) unsafe extern "C" fn metric_free(_: *mut Metric) {}

fn no_scope() -> HostError {
    HostError::invalid("a host call that needs a scope was made without one")
}
