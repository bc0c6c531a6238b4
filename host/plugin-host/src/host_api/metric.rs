//! Metrics of backends: families are shared by name; a series is removed with its last scope, a
//! family with its last series.
//!
//! Not a `prometheus::Registry`: that keeps the label names of a family for the life of the
//! process, so that a backend could not change them in an update.

use crate::host_state::HOST;
use parking_lot::Mutex;
use prometheus::core::Collector;
use prometheus::proto::{LabelPair, MetricFamily};
use prometheus::{CounterVec, GaugeVec, HistogramOpts, HistogramVec, Opts};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Instant;
use trtserver_base::error::{Error, Result};

/// The metrics of backends.
pub(crate) struct MetricFamilies {
    /// All families that backends created, by name.
    families: Mutex<BTreeMap<String, BackendFamily>>,
    /// Forwards all series to the host, in the process of an isolated model.
    observer: OnceLock<SeriesObserver>,
    /// Where values of other processes come from.
    sources: Mutex<Vec<Weak<dyn MetricSource>>>,
}

impl MetricFamilies {
    pub const fn new() -> Self {
        Self {
            families: Mutex::new(BTreeMap::new()),
            observer: OnceLock::new(),
            sources: Mutex::new(Vec::new()),
        }
    }
}

#[derive(Clone)]
enum MetricVector {
    Counter(CounterVec),
    Gauge(GaugeVec),
    /// A histogram with the upper bounds of its buckets.
    Histogram(HistogramVec, Arc<[f64]>),
}

/// Kind of a family.
#[derive(Clone, Copy, Debug)]
pub enum MetricKind<'a> {
    Counter,
    Gauge,
    /// Upper bounds of the buckets, ascending, without the infinite one.
    Histogram(&'a [f64]),
}

struct BackendFamily {
    vector: MetricVector,
    label_names: Vec<String>,
    /// Number of scopes that use a series, by label values; never empty.
    scopes: HashMap<Vec<String>, usize>,
}

/// Other processes that send values of series now and then.
pub trait MetricSource: Send + Sync {
    /// Has them send what has changed, and waits until it is there, at most until the deadline.
    fn refresh(&self, deadline: Instant);
}

/// Asks `source` for values before they are shown, as long as it exists.
pub fn add_source(source: Weak<dyn MetricSource>) {
    let mut sources = HOST.metrics.sources.lock();
    sources.retain(|source| source.strong_count() > 0);
    sources.push(source);
}

/// Brings the series up to date, so that they show what a model set before it responded. Blocks, at
/// most until the deadline.
pub fn refresh_metrics(deadline: Instant) {
    let sources: Vec<_> = HOST.metrics.sources.lock().iter().filter_map(Weak::upgrade).collect();
    sources.iter().for_each(|source| source.refresh(deadline));
}

/// All families with their series, sorted by name and label values.
pub fn gather_metrics() -> Vec<MetricFamily> {
    let vectors: Vec<MetricVector> =
        HOST.metrics.families.lock().values().map(|f| f.vector.clone()).collect();
    let mut families: Vec<MetricFamily> = vectors.iter().flat_map(MetricVector::collect).collect();
    for family in &mut families {
        fn values(m: &prometheus::proto::Metric) -> impl Iterator<Item = &str> {
            m.get_label().iter().map(LabelPair::value)
        }
        family.mut_metric().sort_by(|a, b| values(a).cmp(values(b)));
    }
    families
}

/// The values of the family `name`, with the value that `label` has in their series.
pub fn by_label(name: &str, label: &str) -> Vec<(String, f64)> {
    let vector = HOST.metrics.families.lock().get(name).map(|family| family.vector.clone());
    let families = vector.map(|vector| vector.collect()).unwrap_or_default();
    let labelled = |metric: &prometheus::proto::Metric| {
        let pair = metric.get_label().iter().find(|pair| pair.name() == label)?;
        let value = metric.get_gauge().get_value() + metric.get_counter().get_value();
        Some((pair.value().to_owned(), value))
    };
    families.iter().flat_map(|family| family.get_metric()).filter_map(labelled).collect()
}

/// Names that begin so are the server's. A second family of such a name would make its page
/// invalid.
const RESERVED: [&str; 4] = ["nv_inference_", "nv_gpu_", "nv_energy_", "trtserver_"];

/// One series.
#[derive(Clone)]
pub enum MetricSeries {
    Counter(prometheus::Counter),
    Gauge(prometheus::Gauge),
    Histogram(prometheus::Histogram),
}

/// The target of a `trts_metric`: a series, and the watcher that is notified of its changes.
pub struct BackendMetric {
    scope: Weak<ScopeMetrics>,
    key: SeriesKey,
    pub series: MetricSeries,
    watcher: Option<Arc<dyn SeriesWatcher>>,
}

/// Is notified of the changes of one series.
pub trait SeriesWatcher: Send + Sync {
    /// The series took this value: an increment, a level or an observation.
    fn put(&self, value: f64);

    /// This was added to the series, a gauge.
    fn added(&self, value: f64);

    /// The backend has removed the series from the page.
    fn removed(&self);
}

/// A series that a backend has created.
pub struct NewSeries<'a> {
    pub kind: MetricKind<'a>,
    pub name: &'a str,
    pub help: &'a str,
    pub labels: &'a [(String, String)],
    pub series: &'a MetricSeries,
}

type SeriesObserver = Box<dyn Fn(NewSeries<'_>) -> Arc<dyn SeriesWatcher> + Send + Sync>;

/// Calls `observer` for every series created from now on; the watcher that it returns is notified
/// of the changes of the series. A process has one observer: later calls are ignored.
pub fn set_observer(
    observer: impl Fn(NewSeries<'_>) -> Arc<dyn SeriesWatcher> + Send + Sync + 'static,
) {
    let _ = HOST.metrics.observer.set(Box::new(observer));
}

/// Identifies a series: name of its family and values of its labels.
type SeriesKey = (String, Vec<String>);

/// The series of one scope, each once. Handles of backends point into it, so they are valid as long
/// as the scope.
#[derive(Default)]
pub struct CustomMetrics {
    metrics: Arc<ScopeMetrics>,
}

/// The metrics of a scope.
type ScopeMetrics = Mutex<HashMap<SeriesKey, HeldMetric>>;

/// A metric, and how many handles the backend has of it.
struct HeldMetric {
    metric: Arc<BackendMetric>,
    handles: usize,
}

impl CustomMetrics {
    /// A handle of the metric of the family `name` with these labels. Creates family and series if
    /// they do not exist.
    ///
    /// # Errors
    /// An invalid or reserved name, invalid bounds, or a family of that name with another kind,
    /// other labels or bounds.
    pub fn metric(
        &self,
        kind: MetricKind<'_>,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Arc<BackendMetric>> {
        let mut families = HOST.metrics.families.lock();
        let vector = match families.get(name) {
            Some(family) => family.vector(kind, name, labels)?,
            None => MetricVector::new(kind, name, help, labels)?,
        };
        let values: Vec<String> = labels.iter().map(|(_, v)| v.clone()).collect();
        let mut metrics = self.metrics.lock();
        let key = (name.to_owned(), values);
        if let Some(held) = metrics.get_mut(&key) {
            held.handles += 1;
            return Ok(Arc::clone(&held.metric));
        }
        let series = vector.series(&key.1).map_err(|e| invalid(name, &e))?;
        let family = families.entry(name.to_owned()).or_insert_with(|| {
            let label_names = labels.iter().map(|(k, _)| k.clone()).collect();
            BackendFamily { vector, label_names, scopes: HashMap::new() }
        });
        *family.scopes.entry(key.1.clone()).or_default() += 1;
        drop(families);
        let observe = |observer: &SeriesObserver| {
            observer(NewSeries { kind, name, help, labels, series: &series })
        };
        let watcher = HOST.metrics.observer.get().map(observe);
        let scope = Arc::downgrade(&self.metrics);
        let metric = Arc::new(BackendMetric { scope, key: key.clone(), series, watcher });
        metrics.insert(key, HeldMetric { metric: Arc::clone(&metric), handles: 1 });
        Ok(metric)
    }
}

/// A scope uses a series no more. Whether the series is gone: another scope may use it.
fn release(families: &mut BTreeMap<String, BackendFamily>, (name, values): &SeriesKey) -> bool {
    let Some(family) = families.get_mut(name) else { return false };
    let Entry::Occupied(mut scopes) = family.scopes.entry(values.clone()) else { return false };
    *scopes.get_mut() -= 1;
    if *scopes.get() > 0 {
        return false;
    }
    scopes.remove();
    family.vector.remove(values);
    if family.scopes.is_empty() {
        families.remove(name);
    }
    true
}

fn invalid(name: &str, e: &prometheus::Error) -> Error {
    Error::invalid(format!("metric '{name}': {e}"))
}

impl BackendFamily {
    /// The vector of the family, which must be of this kind and have these labels.
    fn vector(
        &self,
        kind: MetricKind<'_>,
        name: &str,
        labels: &[(String, String)],
    ) -> Result<MetricVector> {
        let same_labels = self.label_names.iter().eq(labels.iter().map(|(k, _)| k));
        let same_kind = match (&self.vector, kind) {
            (MetricVector::Counter(_), MetricKind::Counter)
            | (MetricVector::Gauge(_), MetricKind::Gauge) => true,
            (MetricVector::Histogram(_, ours), MetricKind::Histogram(bounds)) => **ours == *bounds,
            _ => false,
        };
        if !same_labels || !same_kind {
            return Err(Error::invalid(format!(
                "metric '{name}' exists with another kind, other buckets or other labels ({})",
                self.label_names.join(", ")
            )));
        }
        Ok(self.vector.clone())
    }
}

impl MetricVector {
    fn new(
        kind: MetricKind<'_>,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Self> {
        if let Some(prefix) = RESERVED.iter().find(|prefix| name.starts_with(**prefix)) {
            return Err(Error::invalid(format!(
                "metric '{name}': names that begin with '{prefix}' are reserved for the server"
            )));
        }
        let names: Vec<&str> = labels.iter().map(|(k, _)| k.as_str()).collect();
        let help = if help.is_empty() { name } else { help };
        let opts = Opts::new(name, help);
        let vector = match kind {
            MetricKind::Counter => CounterVec::new(opts, &names).map(Self::Counter),
            MetricKind::Gauge => GaugeVec::new(opts, &names).map(Self::Gauge),
            MetricKind::Histogram(bounds) => {
                // Without bounds the crate would choose some.
                if bounds.is_empty() || bounds.iter().any(|bound| !bound.is_finite()) {
                    let why = "a histogram needs bounds of its buckets, which are finite";
                    return Err(Error::invalid(format!("metric '{name}': {why}")));
                }
                let opts = HistogramOpts::new(name, help).buckets(bounds.to_vec());
                HistogramVec::new(opts, &names).map(|v| Self::Histogram(v, bounds.into()))
            }
        };
        vector.map_err(|e| invalid(name, &e))
    }

    /// The series with these label values, created if it does not exist.
    fn series(&self, values: &[String]) -> prometheus::Result<MetricSeries> {
        match self {
            Self::Counter(v) => v.get_metric_with_label_values(values).map(MetricSeries::Counter),
            Self::Gauge(v) => v.get_metric_with_label_values(values).map(MetricSeries::Gauge),
            Self::Histogram(v, _) => {
                v.get_metric_with_label_values(values).map(MetricSeries::Histogram)
            }
        }
    }

    fn remove(&self, values: &[String]) {
        let _ = match self {
            Self::Counter(v) => v.remove_label_values(values),
            Self::Gauge(v) => v.remove_label_values(values),
            Self::Histogram(v, _) => v.remove_label_values(values),
        };
    }

    fn collect(&self) -> Vec<MetricFamily> {
        match self {
            Self::Counter(v) => v.collect(),
            Self::Gauge(v) => v.collect(),
            Self::Histogram(v, _) => v.collect(),
        }
    }
}

impl Drop for CustomMetrics {
    fn drop(&mut self) {
        let mut families = HOST.metrics.families.lock();
        for (key, _) in self.metrics.lock().drain() {
            release(&mut families, &key);
        }
    }
}

impl BackendMetric {
    /// Adds to a counter, sets a gauge, adds an observation to a histogram.
    pub fn put(&self, value: f64) -> Result<()> {
        self.series.put(value)?;
        if let Some(watcher) = &self.watcher {
            watcher.put(value);
        }
        Ok(())
    }

    /// Adds to a counter or gauge. Concurrent additions are not lost.
    pub fn add(&self, value: f64) -> Result<()> {
        let MetricSeries::Gauge(gauge) = &self.series else {
            if matches!(self.series, MetricSeries::Histogram(_)) {
                return Err(Error::invalid("a histogram has no value to add to"));
            }
            return self.put(value);
        };
        gauge.add(value);
        if let Some(watcher) = &self.watcher {
            watcher.added(value);
        }
        Ok(())
    }

    /// Gives up a handle. With the last one of all scopes the series leaves the page.
    pub fn free(&self) {
        let Some(scope) = self.scope.upgrade() else { return };
        // It keeps this metric until the end.
        let (removed, gone) = {
            let mut families = HOST.metrics.families.lock();
            let mut metrics = scope.lock();
            let Some(held) = metrics.get_mut(&self.key) else { return };
            held.handles -= 1;
            if held.handles > 0 {
                return;
            }
            let gone = release(&mut families, &self.key);
            (metrics.remove(&self.key), gone)
        };
        if let Some(watcher) = self.watcher.as_ref().filter(|_| gone) {
            watcher.removed();
        }
        drop(removed);
    }
}

impl MetricSeries {
    /// Adds to a counter, sets a gauge, adds an observation to a histogram.
    pub fn put(&self, value: f64) -> Result<()> {
        match self {
            MetricSeries::Counter(c) if value >= 0.0 && value.is_finite() => c.inc_by(value),
            MetricSeries::Counter(_) => {
                return Err(Error::invalid(format!("a counter cannot be increased by {value}")));
            }
            MetricSeries::Gauge(g) => g.set(value),
            MetricSeries::Histogram(_) if value.is_nan() => {
                return Err(Error::invalid("a histogram cannot take NaN as an observation"));
            }
            MetricSeries::Histogram(h) => h.observe(value),
        }
        Ok(())
    }

    /// The value; of a histogram the sum of its observations.
    pub fn get(&self) -> f64 {
        match self {
            MetricSeries::Counter(c) => c.get(),
            MetricSeries::Gauge(g) => g.get(),
            MetricSeries::Histogram(h) => h.get_sample_sum(),
        }
    }
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
