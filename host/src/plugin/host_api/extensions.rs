//! Extension tables that the host offers: memory and metrics.

use super::basics::no_scope;
use super::guard::{guard, guard_value, put};
use crate::error::Error as HostError;
use crate::plugin::host_api::metric::Metric as Created;
use crate::plugin::host_api::scope::{self, Scope};
use crate::plugin::text::{PluginError, literal, read};
use std::sync::Arc;
use trtserver_plugin_api::abi::extensions::{
    MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, MemoryExtension, Metric, MetricsExtension,
    metric_kind,
};
use trtserver_plugin_api::abi::types::{
    self, Buf, Error, Event, Extension, Memory, Param, Str, code, memory_type, param,
};

/// Extensions that [`get_extension`] has tables for.
pub(super) const OFFERED: &[Extension] = &[
    Extension { name: literal(c"trts.memory"), version: MEMORY_VERSION, pad: 0 },
    Extension { name: literal(c"trts.metrics"), version: METRICS_VERSION, pad: 0 },
];

static MEMORY_TABLE: MemoryExtension = MemoryExtension {
    size: std::mem::size_of::<MemoryExtension>() as u64,
    memory_alloc,
    memory_free,
    memory_report,
};

static METRICS_TABLE: MetricsExtension = MetricsExtension {
    size: std::mem::size_of::<MetricsExtension>() as u64,
    metric_new,
    metric_put,
    metric_get,
    metric_free,
};

pub(super) unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    guard_value(std::ptr::null(), || {
        // SAFETY: the name is valid during the call.
        match unsafe { read(name) }.as_str() {
            MEMORY if version <= MEMORY_VERSION => (&raw const MEMORY_TABLE).cast(),
            METRICS if version <= METRICS_VERSION => (&raw const METRICS_TABLE).cast(),
            _ => std::ptr::null(),
        }
    })
}

unsafe extern "C" fn memory_alloc(
    scope: *mut types::Scope,
    memory: Memory,
    bytes: u64,
    align: u64,
    _flags: u32,
    _stream: *mut u8,
    out: *mut Buf,
) -> *mut Error {
    let mut exhausted = None;
    let error = guard(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        if memory.memory_type != memory_type::CPU {
            return Err(HostError::unsupported(format!(
                "{}: this host allocates CPU memory only, memory type {} was requested",
                scope.label(),
                memory.memory_type
            )));
        }
        let max = crate::request::buffer::ALIGN as u64;
        if align > max || bytes > isize::MAX as u64 {
            return Err(HostError::unsupported(format!(
                "{}: {bytes} bytes aligned to {align} were requested, the maximum alignment is {max}",
                scope.label()
            )));
        }
        let Some((ptr, memory_handle)) = scope.alloc(bytes as usize) else {
            exhausted = Some(format!(
                "{}: out of memory: {bytes} bytes cannot be allocated",
                scope.label()
            ));
            return Ok(());
        };
        let buf =
            Buf { ptr, bytes, memory: Memory::CPU, ready: std::ptr::null_mut(), memory_handle };
        // SAFETY: null or valid for writing one buffer.
        unsafe { put(out, buf) }
    });
    match exhausted {
        Some(text) => PluginError::raw(code::EXHAUSTED, 0, &text),
        None => error,
    }
}

unsafe extern "C" fn memory_free(memory_handle: u64, _after: *mut Event) {
    guard_value((), || {
        if !scope::free(memory_handle) {
            tracing::warn!(
                "a backend freed the memory handle {memory_handle}, which is not allocated"
            );
        }
    });
}

unsafe extern "C" fn memory_report(
    scope: *mut types::Scope,
    memory: Memory,
    bytes: u64,
) -> *mut Error {
    guard(|| {
        // SAFETY: the handle is valid during the call.
        let scope = unsafe { Scope::from_handle(scope) }.ok_or_else(no_scope)?;
        if memory.memory_type > memory_type::MANAGED {
            return Err(HostError::unsupported(format!(
                "{}: memory type {} was reported, which this host does not know",
                scope.label(),
                memory.memory_type
            )));
        }
        scope.report(memory, bytes);
        Ok(())
    })
}

unsafe extern "C" fn metric_new(
    scope: *mut types::Scope,
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
            // SAFETY: the backend passes `n_labels` parameters.
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
        let created = scope.metrics.metric(counter, &name, &help, &labels)?;
        // SAFETY: null or valid for writing one handle.
        unsafe { put(out, Arc::as_ptr(&created).cast_mut().cast()) }
    })
}

unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    guard(|| {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        match unsafe { metric.cast::<Created>().as_ref() } {
            Some(created) => created.put(value),
            None => Err(HostError::invalid("metric_put without a metric")),
        }
    })
}

unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    guard_value(0.0, || {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        unsafe { metric.cast::<Created>().as_ref() }.map_or(0.0, |m| m.series.get())
    })
}

/// Does nothing: another handle may refer to the same metric; the scope frees it.
unsafe extern "C" fn metric_free(_: *mut Metric) {}

#[cfg(test)]
#[path = "extensions_tests.rs"]
mod tests;
