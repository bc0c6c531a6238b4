//! Metric families, metrics and their arguments.
//!
//! The host knows metrics only; a family is the name, help and kind that its metrics share.

use crate::fault::{Result, TritonFault};
use crate::handles::{LiveObject, ObjectKind, TypedObject};
use crate::host;
use crate::scope::Scope;
use std::ffi::CString;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use trtserver_plugin_api::abi::extensions::{self, metric_kind};
use trtserver_plugin_api::abi::types::Param;

/// Triton's numbers of metric kinds.
pub mod kind {
    pub const COUNTER: i32 = 0;
    pub const GAUGE: i32 = 1;
    pub const HISTOGRAM: i32 = 2;
}

pub struct MetricFamily {
    pub kind: i32,
    pub name: CString,
    pub help: CString,
    /// Metrics that exist: a family is deleted after them.
    pub metrics: AtomicU32,
    pub scope: Arc<Scope>,
}

impl TypedObject for MetricFamily {
    const KIND: ObjectKind = ObjectKind::MetricFamily;
}

pub struct MetricObject {
    pub family: LiveObject<MetricFamily>,
    /// The family's kind, which may be asked for after the family.
    pub kind: i32,
    raw: *mut extensions::Metric,
    scope: Arc<Scope>,
}

// SAFETY: the host accepts calls with a metric from any thread.
unsafe impl Send for MetricObject {}
// SAFETY: the host accepts calls with one metric from several threads at once.
unsafe impl Sync for MetricObject {}

impl TypedObject for MetricObject {
    const KIND: ObjectKind = ObjectKind::Metric;
}

/// `TRITONSERVER_MetricArgs`
#[derive(Default)]
pub struct MetricArgs {
    /// Upper bounds of a histogram's buckets.
    pub buckets: Mutex<Option<Vec<f64>>>,
}

impl TypedObject for MetricArgs {
    const KIND: ObjectKind = ObjectKind::MetricArgs;
}

impl MetricObject {
    /// Creates a metric; `buckets` are those of a histogram.
    pub fn new(
        family: LiveObject<MetricFamily>,
        labels: &[(CString, CString)],
        buckets: Option<&[f64]>,
    ) -> Result<MetricObject> {
        let extension = host::metrics_extension()
            .ok_or_else(|| TritonFault::unsupported("this server offers backends no metrics"))?;
        let histograms = match (family.kind, buckets) {
            (kind::HISTOGRAM, Some(bounds)) => {
                let histograms = host::histograms_extension().ok_or_else(|| {
                    TritonFault::unsupported("this server offers backends no histograms")
                })?;
                Some((histograms, bounds))
            }
            (kind::HISTOGRAM, None) => {
                return Err(TritonFault::invalid(format_args!(
                    "histogram '{}' has no buckets (TRITONSERVER_MetricArgsSetHistogram)",
                    family.name.to_string_lossy()
                )));
            }
            _ => None,
        };
        let kind =
            if family.kind == kind::COUNTER { metric_kind::COUNTER } else { metric_kind::GAUGE };
        let params: Vec<Param> = labels
            .iter()
            .map(|(key, value)| Param {
                key: host::as_str(key),
                kind: trtserver_plugin_api::abi::types::param::STRING,
                pad: 0,
                text: host::as_str(value),
                bits: 0,
            })
            .collect();
        let scope = Arc::clone(&family.scope);
        let mut raw = ptr::null_mut();
        let created = scope.with(|host, scope| {
            let (name, help) = (host::as_str(&family.name), host::as_str(&family.help));
            let (labels, n) = (params.as_ptr(), params.len() as u32);
            // SAFETY: the scope is open, the arguments are valid during the call; the host writes
            // one pointer.
            unsafe {
                let error = match histograms {
                    Some((histograms, bounds)) => (histograms.histogram_new)(
                        scope,
                        name,
                        help,
                        labels,
                        n,
                        bounds.as_ptr(),
                        bounds.len() as u32,
                        &raw mut raw,
                    ),
                    None => {
                        (extension.metric_new)(scope, kind, name, help, labels, n, &raw mut raw)
                    }
                };
                host::take_error(host, error)
            }
        });
        created.ok_or_else(closed)??;
        family.metrics.fetch_add(1, Ordering::AcqRel);
        Ok(MetricObject { family, kind: family.kind, raw, scope })
    }

    pub fn value(&self) -> Result<f64> {
        let extension = host::metrics_extension().ok_or_else(closed)?;
        // SAFETY: a metric is valid as long as its scope.
        self.scope.with(|_, _| unsafe { (extension.metric_get)(self.raw) }).ok_or_else(closed)
    }

    /// Adds to a counter, sets a gauge, adds an observation to a histogram.
    pub fn put(&self, value: f64) -> Result<()> {
        let extension = host::metrics_extension().ok_or_else(closed)?;
        let put = self.scope.with(|host, _| {
            // SAFETY: a metric is valid as long as its scope. The error is owned by the caller.
            unsafe { host::take_error(host, (extension.metric_put)(self.raw, value)) }
        });
        put.ok_or_else(closed)?
    }

    /// Adds to a counter or gauge, whichever instance or model else does so.
    pub fn add(&self, value: f64) -> Result<()> {
        let extension = host::metrics_extension().ok_or_else(closed)?;
        let added = self.scope.with(|host, _| {
            // SAFETY: a metric is valid as long as its scope, which `with` keeps open; the caller
            // owns the error.
            unsafe { host::take_error(host, (extension.metric_add)(self.raw, value)) }
        });
        added.ok_or_else(closed)?
    }

    /// Takes the metric off the page.
    pub fn remove(self) {
        if let Some(extension) = host::metrics_extension() {
            // SAFETY: a metric is valid as long as its scope, and is freed once.
            self.scope.with(|_, _| unsafe { (extension.metric_free)(self.raw) });
        }
        self.family.metrics.fetch_sub(1, Ordering::AcqRel);
    }
}

fn closed() -> TritonFault {
    TritonFault::unavailable("the model of this metric was unloaded")
}

/// The scope that new families belong to.
pub fn metric_scope() -> Result<Arc<Scope>> {
    crate::scope::metrics_scope().ok_or_else(|| TritonFault::unavailable("no backend is open"))
}
