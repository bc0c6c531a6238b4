//! Entries for errors, log, time, configuration patches, memory and metrics.

use super::{
    ERROR, HOST, Lease, METRIC, Wrong, buf, entry, handle, misuse, number, put, tell, text,
};
use crate::tool::check::child::{breach, seen};
use crate::tool::check::memory::Block;
use std::sync::atomic::AtomicU32;
use trtserver_plugin_api::abi::extensions::{Metric, metric_kind};
use trtserver_plugin_api::abi::host::patch_format;
use trtserver_plugin_api::abi::types::{
    Buf, Error, Event, Memory, Param, Scope, Str, code, error_flags, level, memory_type, param,
};

/// Everything is wanted, so that everything that is said is looked at.
static LEVEL: AtomicU32 = AtomicU32::new(level::TRACE);

pub(super) unsafe extern "C" fn error_new(code: u32, flags: u32, said: Str) -> *mut Error {
    // SAFETY: the text is valid during the call.
    let said = unsafe { text(said, "the text of an error") };
    let known = error_flags::RETRYABLE
        | error_flags::CLIENT
        | error_flags::DEVICE_LOST
        | error_flags::MODEL_BROKEN;
    if code > code::ABORTED || flags & !known != 0 {
        breach(
            "host.calls",
            format!("error_new: code {code} with flags {flags:#x} is none of the interface's"),
        );
    }
    match said {
        Ok(said) => HOST.lock().raise(code, &said),
        Err(wrong) => {
            breach("host.calls", format!("error_new: {}", wrong.text));
            HOST.lock().raise(code, "(an unreadable text)")
        }
    }
}

pub(super) unsafe extern "C" fn error_code(error: *const Error) -> u32 {
    let state = HOST.lock();
    match state.peek(error) {
        Ok(found) => found.map_or(code::UNKNOWN, |e| e.code),
        Err(wrong) => {
            breach("host.calls", format!("error_code: {}", wrong.text));
            code::UNKNOWN
        }
    }
}

pub(super) unsafe extern "C" fn error_text(error: *const Error) -> Str {
    let state = HOST.lock();
    let found = number(ERROR, error, "error").ok().and_then(|id| state.errors.get(&id));
    match found {
        // Boxed: it stays where it is until it is freed.
        Some(held) => crate::plugin::text::view(&held.text),
        None => {
            if !error.is_null() {
                breach("host.calls", "error_text: an error was used after it had been freed");
            }
            crate::plugin::text::EMPTY
        }
    }
}

pub(super) unsafe extern "C" fn error_free(error: *mut Error) {
    if error.is_null() {
        return;
    }
    tell("error_free", |state| match state.errors.remove(&number(ERROR, error, "error")?) {
        Some(_) => Ok(()),
        None => misuse("an error was freed twice"),
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
    tell("log", |state| {
        // SAFETY: texts are valid during the call.
        let said =
            unsafe { (text(file, "the file of a record")?, text(said, "the text of a record")?) };
        state.scope(scope)?;
        if !(level::ERROR..=level::TRACE).contains(&at) {
            return misuse(format!(
                "level {at} of the record '{}' is none of the interface's",
                said.1
            ));
        }
        Ok(())
    });
}

pub(super) unsafe extern "C" fn now_ns() -> u64 {
    crate::clock::now_ns()
}

pub(super) unsafe extern "C" fn config_patch(
    scope: *mut Scope,
    format: u32,
    p: *const u8,
    n: u64,
) -> *mut Error {
    entry("config_patch", |state| {
        state.scope(scope)?;
        if format > patch_format::TEXT {
            return misuse(format!("format {format} is none of the interface's"));
        }
        if n > 0 && p.is_null() || n > 1 << 30 {
            return misuse(format!("{n} bytes at {p:p} are no patch"));
        }
        let data = match n {
            0 => Vec::new(),
            // SAFETY: the plugin passes `n` readable bytes.
            _ => unsafe { std::slice::from_raw_parts(p, n as usize) }.to_vec(),
        };
        state.patch = Some((format, data));
        Ok(())
    })
}

pub(super) unsafe extern "C" fn progress(scope: *mut Scope, stage: Str, permille: u32) -> u32 {
    tell("progress", |state| {
        state.scope(scope)?;
        // SAFETY: the text is valid during the call.
        let stage = unsafe { text(stage, "a stage") }?;
        if permille > 1000 {
            return misuse(format!("stage '{stage}' has come {permille} of 1000"));
        }
        Ok(())
    });
    0
}

pub(super) unsafe extern "C" fn memory_alloc(
    scope: *mut Scope,
    preferred_memory: Memory,
    bytes: u64,
    align: u64,
    _flags: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    entry("memory_alloc", |state| {
        let scope = state.scope(scope)?;
        if align != 0 && !align.is_power_of_two() {
            return misuse(format!("an alignment of {align} is no power of two"));
        }
        if preferred_memory.memory_type != memory_type::CPU || align > 64 {
            let text = format!(
                "{bytes} bytes of kind {} aligned to {align} are never there",
                preferred_memory.memory_type
            );
            return Err(Wrong { promise: None, code: code::UNSUPPORTED, text });
        }
        let room = usize::try_from(bytes).ok().filter(|n| *n <= isize::MAX as usize);
        let Some(block) = room.and_then(|n| Block::new(n, 0)) else {
            let text = format!("{bytes} bytes are not there now");
            return Err(Wrong { promise: None, code: code::EXHAUSTED, text });
        };
        let id = state.id();
        // SAFETY: null or room for one buffer.
        unsafe { put(out, buf(block.ptr(), block.bytes, id)) }?;
        state.leases.insert(id, Lease { scope, block });
        state.leased += 1;
        Ok(())
    })
}

pub(super) unsafe extern "C" fn memory_free(lease: u64, _after: *mut Event) {
    tell("memory_free", |state| match state.leases.remove(&lease) {
        Some(lease) => match lease.block.overrun() {
            Some(words) => misuse(format!("memory of memory_alloc: {words}")),
            None => Ok(()),
        },
        None => misuse(format!(
            "lease {lease} is not there, was freed before or has gone with its scope"
        )),
    });
}

pub(super) unsafe extern "C" fn metric_new(
    scope: *mut Scope,
    kind: u32,
    name: Str,
    help: Str,
    labels: *const Param,
    n_labels: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    entry("metric_new", |state| {
        state.scope(scope)?;
        // SAFETY: texts are valid during the call.
        let name =
            unsafe { (text(name, "the name of a metric")?, text(help, "the help of a metric")?) }.0;
        let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
        let good =
            name.starts_with(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit());
        if !good {
            return misuse(format!("'{name}' is no name for a metric"));
        }
        if kind > metric_kind::GAUGE {
            return misuse(format!(
                "metric '{name}' is of kind {kind}, which is none of the interface's"
            ));
        }
        if labels.is_null() && n_labels > 0 {
            return misuse(format!("metric '{name}' has {n_labels} labels at null"));
        }
        let mut names = Vec::new();
        for at in 0..n_labels as usize {
            // SAFETY: the plugin passes `n_labels` parameters, whose texts are valid during the call.
            let label = unsafe { &*labels.add(at) };
            if label.kind != param::STRING {
                return misuse(format!(
                    "metric '{name}': a label is of kind {}, not a STRING",
                    label.kind
                ));
            }
            // SAFETY: as above.
            unsafe { text(label.text, "the value of a label") }?;
            // SAFETY: as above.
            names.push(unsafe { text(label.key, "the name of a label") }?);
        }
        names.sort();
        let family = state.families.entry(name.clone()).or_insert_with(|| (kind, names.clone()));
        if *family != (kind, names) {
            return misuse(format!("metric '{name}' has another kind or other labels than before"));
        }
        let id = state.id();
        state.metrics.insert(id, (kind, 0.0));
        seen("host.calls");
        // SAFETY: null or room for one handle.
        unsafe { put(out, handle(METRIC, id)) }
    })
}

pub(super) unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    entry("metric_put", |state| match state.metrics.get_mut(&number(METRIC, metric, "metric")?) {
        Some((metric_kind::COUNTER, _)) if value < 0.0 || value.is_nan() => {
            misuse(format!("a counter goes up only, {value} was put"))
        }
        Some((metric_kind::COUNTER, sum)) => {
            *sum += value;
            Ok(())
        }
        Some((_, now)) => {
            *now = value;
            Ok(())
        }
        None => misuse("a metric was used after it had been freed"),
    })
}

pub(super) unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    let state = HOST.lock();
    let found = number(METRIC, metric, "metric").ok().and_then(|id| state.metrics.get(&id));
    found.map_or(0.0, |(_, value)| *value)
}

pub(super) unsafe extern "C" fn metric_free(metric: *mut Metric) {
    if metric.is_null() {
        return;
    }
    tell("metric_free", |state| match state.metrics.remove(&number(METRIC, metric, "metric")?) {
        Some(_) => Ok(()),
        None => misuse("a metric was freed twice"),
    });
}
