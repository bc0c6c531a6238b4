//! Extension tables that the host offers, by name; the entries for metrics.

use super::basics::no_scope;
use super::guard::{guard_entry, guard_value, put_out};
use super::metric::{BackendMetric as Created, MetricKind};
use super::scope::Scope;
use super::{batches, devices, inference, memory, process, traces};
use crate::text::{literal_view, read_text};
use std::ffi::CStr;
use std::sync::Arc;
use trtserver_base::error::{Error as HostError, Result};
use trtserver_plugin_api::abi::extensions::{
    BATCH_PARTS, BATCH_PARTS_VERSION, DEVICE, DEVICE_VERSION, HISTOGRAMS, HISTOGRAMS_VERSION,
    HistogramsExtension, MEMORY, MEMORY_VERSION, METRICS, METRICS_VERSION, Metric,
    MetricsExtension, PROCESS, PROCESS_VERSION, TRACE, TRACE_VERSION, metric_kind,
};
use trtserver_plugin_api::abi::inference::{INFERENCE, INFERENCE_VERSION};
use trtserver_plugin_api::abi::types::{self, Error, Extension, Param, Str, param};

const PARTS: Extension = offered(c"trts.batch_parts", BATCH_PARTS_VERSION);
const DEVICES: Extension = offered(c"trts.device", DEVICE_VERSION);
const NESTED: Extension = offered(c"trts.inference", INFERENCE_VERSION);
const MEMORIES: Extension = offered(c"trts.memory", MEMORY_VERSION);
const HISTOGRAM: Extension = offered(c"trts.histograms", HISTOGRAMS_VERSION);
const MEASURES: Extension = offered(c"trts.metrics", METRICS_VERSION);

const OWN_PROCESS: Extension = offered(c"trts.process", PROCESS_VERSION);
const TRACES: Extension = offered(c"trts.trace", TRACE_VERSION);

const fn offered(name: &'static CStr, version: u32) -> Extension {
    Extension { name: literal_view(name), version, pad: 0 }
}

/// Extensions that [`get_extension`] has tables for.
pub(super) const fn extensions(device: bool) -> &'static [Extension] {
    match device {
        false => &[PARTS, HISTOGRAM, NESTED, MEMORIES, MEASURES, OWN_PROCESS, TRACES],
        true => &[PARTS, DEVICES, HISTOGRAM, NESTED, MEMORIES, MEASURES, OWN_PROCESS, TRACES],
    }
}

static METRICS_TABLE: MetricsExtension = MetricsExtension {
    size: std::mem::size_of::<MetricsExtension>() as u64,
    metric_new,
    metric_put,
    metric_get,
    metric_free,
    metric_add,
};

static HISTOGRAMS_TABLE: HistogramsExtension =
    HistogramsExtension { size: std::mem::size_of::<HistogramsExtension>() as u64, histogram_new };

pub(super) unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    guard_value(std::ptr::null(), || {
        // SAFETY: the name is valid during the call.
        match unsafe { read_text(name) }.as_str() {
            BATCH_PARTS if version <= BATCH_PARTS_VERSION => (&raw const batches::PARTS).cast(),
            DEVICE if version <= DEVICE_VERSION => {
                devices::table().map_or(std::ptr::null(), |table| (&raw const *table).cast())
            }
            INFERENCE if version <= INFERENCE_VERSION => (&raw const inference::TABLE).cast(),
            MEMORY if version <= MEMORY_VERSION => (&raw const memory::TABLE).cast(),
            METRICS if version <= METRICS_VERSION => (&raw const METRICS_TABLE).cast(),
            PROCESS if version <= PROCESS_VERSION => (&raw const process::TABLE).cast(),
            TRACE if version <= TRACE_VERSION => (&raw const traces::TABLE).cast(),
            HISTOGRAMS if version <= HISTOGRAMS_VERSION => (&raw const HISTOGRAMS_TABLE).cast(),
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
    guard_entry(|| {
        let kind = match kind {
            metric_kind::COUNTER => MetricKind::Counter,
            metric_kind::GAUGE => MetricKind::Gauge,
            _ => {
                // SAFETY: the text is valid during the call.
                let name = unsafe { read_text(name) };
                return Err(HostError::unsupported(format!("metric '{name}': kind {kind}")));
            }
        };
        // SAFETY: by the backend's promise: scope, texts and labels are valid during the call.
        unsafe { create(scope, kind, [name, help], (labels, n_labels), out) }
    })
}

unsafe extern "C" fn histogram_new(
    scope: *mut types::Scope,
    name: Str,
    help: Str,
    labels: *const Param,
    n_labels: u32,
    bounds: *const f64,
    n_bounds: u32,
    out: *mut *mut Metric,
) -> *mut Error {
    guard_entry(|| {
        // SAFETY: the backend passes `n_bounds` numbers.
        let bounds = unsafe { slice(bounds, n_bounds) };
        // SAFETY: by the backend's promise: scope, texts and labels are valid during the call.
        unsafe {
            create(scope, MetricKind::Histogram(bounds), [name, help], (labels, n_labels), out)
        }
    })
}

/// # Safety
/// `n` elements at `p` are valid for `'a`, or `p` is null.
unsafe fn slice<'a, T>(p: *const T, n: u32) -> &'a [T] {
    if p.is_null() {
        return &[];
    }
    // SAFETY: by the caller's promise.
    unsafe { std::slice::from_raw_parts(p, n as usize) }
}

/// Creates a metric.
///
/// # Safety
/// Scope, texts and labels are valid during the call; `out` is null or valid for writing one
/// handle.
unsafe fn create(
    scope: *mut types::Scope,
    kind: MetricKind<'_>,
    [name, help]: [Str; 2],
    (labels, n_labels): (*const Param, u32),
    out: *mut *mut Metric,
) -> Result<()> {
    // SAFETY: by the caller's promise.
    let (scope, name, help, labels) = unsafe {
        let scope = Scope::from_handle(scope).ok_or_else(no_scope)?;
        (scope, read_text(name), read_text(help), slice(labels, n_labels))
    };
    let texts = labels.iter().filter(|l| l.kind == param::STRING);
    // SAFETY: by the caller's promise.
    let labels: Vec<_> = texts.map(|l| unsafe { (read_text(l.key), read_text(l.text)) }).collect();
    let created = scope.metrics.metric(kind, &name, &help, &labels)?;
    // SAFETY: by the caller's promise.
    unsafe { put_out(out, Arc::as_ptr(&created).cast_mut().cast()) }
}

unsafe extern "C" fn metric_put(metric: *mut Metric, value: f64) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        match unsafe { metric.cast::<Created>().as_ref() } {
            Some(created) => created.put(value),
            None => Err(HostError::invalid("metric_put without a metric")),
        }
    })
}

unsafe extern "C" fn metric_add(metric: *mut Metric, value: f64) -> *mut Error {
    guard_entry(|| {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        match unsafe { metric.cast::<Created>().as_ref() } {
            Some(created) => created.add(value),
            None => Err(HostError::invalid("metric_add without a metric")),
        }
    })
}

unsafe extern "C" fn metric_get(metric: *const Metric) -> f64 {
    guard_value(0.0, || {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        unsafe { metric.cast::<Created>().as_ref() }.map_or(0.0, |m| m.series.get())
    })
}

unsafe extern "C" fn metric_free(metric: *mut Metric) {
    guard_value((), || {
        // SAFETY: null or a handle whose scope, which owns the metric, is open.
        if let Some(created) = unsafe { metric.cast::<Created>().as_ref() } {
            created.free();
        }
    });
}

#[cfg(test)]
#[path = "extensions_tests.rs"]
mod tests;
