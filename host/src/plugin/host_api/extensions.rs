//! Extension tables that the host offers, by name; the entries for metrics.

use super::basics::no_scope;
use super::guard::{guard, guard_value, put};
use super::metric::Metric as Created;
use super::scope::Scope;
use super::{devices, inference, memory};
use crate::error::Error as HostError;
use crate::plugin::text::{literal, read};
use std::ffi::CStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use trtserver_plugin_api::abi::extensions::{
    DEVICE, DEVICE_VERSION, MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, Metric,
    MetricsExtension, metric_kind,
};
use trtserver_plugin_api::abi::inference::{INFERENCE, INFERENCE_VERSION};
use trtserver_plugin_api::abi::types::{self, Error, Extension, Param, Str, param};

const DEVICES: Extension = offered(c"trts.device", DEVICE_VERSION);
const NESTED: Extension = offered(c"trts.inference", INFERENCE_VERSION);
const MEMORIES: Extension = offered(c"trts.memory", MEMORY_VERSION);
const MEASURES: Extension = offered(c"trts.metrics", METRICS_VERSION);

const fn offered(name: &'static CStr, version: u32) -> Extension {
    Extension { name: literal(name), version, pad: 0 }
}

/// Extensions that [`get_extension`] has tables for.
pub(super) const fn extensions(device: bool) -> &'static [Extension] {
    match device {
        false => &[NESTED, MEMORIES, MEASURES],
        true => &[DEVICES, NESTED, MEMORIES, MEASURES],
    }
}

static ISOLATED: AtomicBool = AtomicBool::new(false);

/// Marks this process as one that runs a single model. Called before the first library is opened.
pub fn set_isolated() {
    ISOLATED.store(true, Ordering::Relaxed);
}

pub(super) fn is_isolated() -> bool {
    ISOLATED.load(Ordering::Relaxed)
}

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
            DEVICE if version <= DEVICE_VERSION => {
                devices::table().map_or(std::ptr::null(), |table| (&raw const *table).cast())
            }
            INFERENCE if version <= INFERENCE_VERSION => (&raw const inference::TABLE).cast(),
            MEMORY if version <= MEMORY_VERSION => (&raw const memory::TABLE).cast(),
            METRICS if version <= METRICS_VERSION => (&raw const METRICS_TABLE).cast(),
            _ => std::ptr::null(),
        }
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
