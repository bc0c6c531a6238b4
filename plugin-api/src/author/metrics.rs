//! Metrics of a backend, model or instance, on the server's metrics page.

use super::error::Error;
use super::host::with_str;
use super::scope::Scope;
use super::value::Value;
use crate::abi::extensions::{self, MetricsExtension, metric_kind};
use crate::abi::types::{self, Param, Str};
use std::ptr;

impl Scope {
    /// A value that only grows. The same name and labels twice is the same counter. Fails on hosts
    /// without the metrics extension.
    pub fn counter(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Counter, Error> {
        self.metric(metric_kind::COUNTER, name, help, labels).map(Counter)
    }

    /// A value that goes up and down. Fails as [`Scope::counter`].
    pub fn gauge(&self, name: &str, help: &str, labels: &[(&str, &str)]) -> Result<Gauge, Error> {
        self.metric(metric_kind::GAUGE, name, help, labels).map(Gauge)
    }

    /// A distribution; `bounds` are the upper bounds of its buckets, ascending, without the
    /// infinite one. Fails as [`Scope::counter`], and on hosts without the extension for
    /// histograms.
    pub fn histogram(
        &self,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        bounds: &[f64],
    ) -> Result<Histogram, Error> {
        let Some(histograms) = self.host().histograms() else {
            let text = format_args!("this host has no extension '{}'", extensions::HISTOGRAMS);
            return Err(Error::unsupported(text));
        };
        let create: &CreateMetric = &|scope, name, help, (p, n), out| {
            let (bounds, n_bounds) = (bounds.as_ptr(), bounds.len() as u32);
            // SAFETY: all arguments are valid during the call.
            unsafe { (histograms.histogram_new)(scope, name, help, p, n, bounds, n_bounds, out) }
        };
        self.create(self.metrics()?, name, help, labels, create).map(Histogram)
    }

    fn metric(
        &self,
        kind: u32,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
    ) -> Result<Metric, Error> {
        let extension = self.metrics()?;
        let create: &CreateMetric = &|scope, name, help, (p, n), out| {
            // SAFETY: all arguments are valid during the call.
            unsafe { (extension.metric_new)(scope, kind, name, help, p, n, out) }
        };
        self.create(extension, name, help, labels, create)
    }

    fn metrics(&self) -> Result<&'static MetricsExtension, Error> {
        let missing = || {
            Error::unsupported(format_args!("this host has no extension '{}'", extensions::METRICS))
        };
        self.host().metrics().ok_or_else(missing)
    }

    fn create(
        &self,
        extension: &'static MetricsExtension,
        name: &str,
        help: &str,
        labels: &[(&str, &str)],
        create: &CreateMetric,
    ) -> Result<Metric, Error> {
        let mut list = Vec::with_capacity(labels.len());
        let raw = with_labels(labels, &mut list, &mut |labels| {
            self.with(|host, scope| {
                let mut raw = ptr::null_mut();
                with_str(name, |name| {
                    with_str(help, |help| {
                        let (p, n) = (labels.as_ptr(), labels.len() as u32);
                        let error = create(scope, name, help, (p, n), &raw mut raw);
                        // SAFETY: an error of the host, taken once.
                        unsafe { Error::take(host, error) }
                    })
                })?;
                Ok(raw)
            })
        });
        match raw {
            Some(raw) => Ok(Metric { scope: self.clone(), extension, raw: MetricPtr(raw?) }),
            None => Err(Error::unavailable("the scope of this metric is closed")),
        }
    }
}

/// A call of the host that creates a metric: scope, name, help, labels, result.
type CreateMetric<'a> = dyn Fn(
        *mut types::Scope,
        Str,
        Str,
        (*const Param, u32),
        *mut *mut extensions::Metric,
    ) -> *mut types::Error
    + 'a;
type Created = Option<Result<*mut extensions::Metric, Error>>;

/// Calls `f` with all labels: each is on the stack of one level of this recursion.
fn with_labels(
    labels: &[(&str, &str)],
    list: &mut Vec<Param>,
    f: &mut dyn FnMut(&[Param]) -> Created,
) -> Created {
    match labels {
        [] => f(list),
        [(key, value), rest @ ..] => Value::Text(value).with_param(key, |label| {
            list.push(*label);
            with_labels(rest, list, f)
        }),
    }
}

#[derive(Clone)]
struct Metric {
    scope: Scope,
    extension: &'static MetricsExtension,
    raw: MetricPtr,
}

#[derive(Clone, Copy)]
struct MetricPtr(*mut extensions::Metric);
// SAFETY: the host accepts calls with a metric from any thread.
unsafe impl Send for MetricPtr {}
// SAFETY: the host accepts calls with one metric from several threads at once.
unsafe impl Sync for MetricPtr {}

impl Metric {
    fn put(&self, value: f64) {
        let raw = self.raw;
        self.scope.with(|host, _| {
            // SAFETY: a metric is valid as long as its scope. The host logs what it refuses.
            unsafe { (host.error_free)((self.extension.metric_put)(raw.0, value)) }
        });
    }

    fn get(&self) -> f64 {
        let raw = self.raw;
        // SAFETY: a metric is valid as long as its scope.
        self.scope.with(|_, _| unsafe { (self.extension.metric_get)(raw.0) }).unwrap_or(0.0)
    }
}

/// See [`Scope::counter`].
#[derive(Clone)]
pub struct Counter(Metric);

impl Counter {
    /// Adds a value that is not below 0.
    pub fn add(&self, value: f64) {
        self.0.put(value);
    }

    /// The sum so far.
    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

/// See [`Scope::gauge`].
#[derive(Clone)]
pub struct Gauge(Metric);

impl Gauge {
    /// Replaces the value.
    pub fn set(&self, value: f64) {
        self.0.put(value);
    }

    /// The value.
    pub fn get(&self) -> f64 {
        self.0.get()
    }
}

/// See [`Scope::histogram`].
#[derive(Clone)]
pub struct Histogram(Metric);

impl Histogram {
    /// Adds an observation.
    pub fn observe(&self, value: f64) {
        self.0.put(value);
    }
}
