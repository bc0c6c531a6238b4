//! Metrics of backends: families are shared by name; a series is removed with its last scope, a family with its last
//! series.
//!
//! Not a `prometheus::Registry`: that keeps the label names of a family for the life of the process, so that a backend
//! could not change them in an update.

use crate::error::{Error, Result};
use crate::sync::Mutex;
use prometheus::core::Collector;
use prometheus::proto::{LabelPair, MetricFamily};
use prometheus::{CounterVec, GaugeVec, Opts};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

/// All families that backends created, by name.
static FAMILIES: Mutex<BTreeMap<String, Family>> = Mutex::new(BTreeMap::new());

#[derive(Clone)]
enum Vector {
    Counter(CounterVec),
    Gauge(GaugeVec),
}

struct Family {
    vector: Vector,
    label_names: Vec<String>,
    /// Number of scopes that use a series, by label values; never empty.
    scopes: HashMap<Vec<String>, usize>,
}

/// All families with their series, sorted by name and label values.
pub fn gather() -> Vec<MetricFamily> {
    let vectors: Vec<Vector> = FAMILIES.lock().values().map(|f| f.vector.clone()).collect();
    let mut families: Vec<MetricFamily> = vectors.iter().flat_map(Vector::collect).collect();
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
    let vector = FAMILIES.lock().get(name).map(|family| family.vector.clone());
    let families = vector.map(|vector| vector.collect()).unwrap_or_default();
    let labelled = |metric: &prometheus::proto::Metric| {
        let pair = metric.get_label().iter().find(|pair| pair.name() == label)?;
        let value = metric.get_gauge().get_value() + metric.get_counter().get_value();
        Some((pair.value().to_owned(), value))
    };
    families.iter().flat_map(|family| family.get_metric()).filter_map(labelled).collect()
}

/// Names that begin so are the server's. A second family of such a name would make its page invalid.
const RESERVED: [&str; 4] = ["nv_inference_", "nv_gpu_", "nv_energy_", "trtserver_"];

/// One series.
#[derive(Clone)]
pub enum Series {
    Counter(prometheus::Counter),
    Gauge(prometheus::Gauge),
}

/// The target of a `trts_metric`: a series, and the callback for its changes.
pub struct Metric {
    pub series: Series,
    changed: Option<Changed>,
}

/// Called after each change of a series.
pub type Changed = Arc<dyn Fn() + Send + Sync>;

/// A series that a backend has created.
pub struct NewSeries<'a> {
    pub name: &'a str,
    pub help: &'a str,
    pub labels: &'a [(String, String)],
    pub series: &'a Series,
}

type Observer = Box<dyn Fn(NewSeries<'_>) -> Changed + Send + Sync>;

/// Forwards all series to the host, in the process of an isolated model.
static OBSERVER: OnceLock<Observer> = OnceLock::new();

/// Calls `observer` for every series created from now on; the callback that it returns is called when the series changes.
/// A process has one observer: later calls are ignored.
pub fn set_observer(observer: impl Fn(NewSeries<'_>) -> Changed + Send + Sync + 'static) {
    let _ = OBSERVER.set(Box::new(observer));
}

/// Identifies a series: name of its family and values of its labels.
type Key = (String, Vec<String>);

/// The series of one scope, each once. Handles of backends point into it, so they are valid as long as the scope.
#[derive(Default)]
pub struct CustomMetrics {
    metrics: Mutex<HashMap<Key, Arc<Metric>>>,
}

impl CustomMetrics {
    /// The series of the family `name` with these labels. Creates family and series if they do not exist.
    ///
    /// # Errors
    /// An invalid or reserved name, or a family of that name with another kind or other labels.
    pub fn series(
        &self,
        counter: bool,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Series> {
        Ok(self.metric(counter, name, help, labels)?.series.clone())
    }

    /// As [`CustomMetrics::series`], with the callback for changes.
    pub fn metric(
        &self,
        counter: bool,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Arc<Metric>> {
        let mut families = FAMILIES.lock();
        let vector = match families.get(name) {
            Some(family) => family.vector(counter, name, labels)?,
            None => Vector::new(counter, name, help, labels)?,
        };
        let values: Vec<String> = labels.iter().map(|(_, v)| v.clone()).collect();
        let mut metrics = self.metrics.lock();
        let key = (name.to_owned(), values);
        if let Some(metric) = metrics.get(&key) {
            return Ok(Arc::clone(metric));
        }
        let series = vector.series(&key.1).map_err(|e| invalid(name, &e))?;
        let family = families.entry(name.to_owned()).or_insert_with(|| {
            let label_names = labels.iter().map(|(k, _)| k.clone()).collect();
            Family { vector, label_names, scopes: HashMap::new() }
        });
        *family.scopes.entry(key.1.clone()).or_default() += 1;
        drop(families);
        let observe =
            |observer: &Observer| observer(NewSeries { name, help, labels, series: &series });
        let changed = OBSERVER.get().map(observe);
        let metric = Arc::new(Metric { series, changed });
        metrics.insert(key, Arc::clone(&metric));
        Ok(metric)
    }
}

fn invalid(name: &str, e: &prometheus::Error) -> Error {
    Error::invalid(format!("metric '{name}': {e}"))
}

impl Family {
    /// The vector of the family, which must be of this kind and have these labels.
    fn vector(&self, counter: bool, name: &str, labels: &[(String, String)]) -> Result<Vector> {
        let same_labels = self.label_names.iter().eq(labels.iter().map(|(k, _)| k));
        if !same_labels || matches!(self.vector, Vector::Counter(_)) != counter {
            return Err(Error::invalid(format!(
                "metric '{name}' exists with another kind or other labels ({})",
                self.label_names.join(", ")
            )));
        }
        Ok(self.vector.clone())
    }
}

impl Vector {
    fn new(counter: bool, name: &str, help: &str, labels: &[(String, String)]) -> Result<Self> {
        if let Some(prefix) = RESERVED.iter().find(|prefix| name.starts_with(**prefix)) {
            return Err(Error::invalid(format!(
                "metric '{name}': names that begin with '{prefix}' are reserved for the server"
            )));
        }
        let names: Vec<&str> = labels.iter().map(|(k, _)| k.as_str()).collect();
        let opts = Opts::new(name, if help.is_empty() { name } else { help });
        let vector = if counter {
            CounterVec::new(opts, &names).map(Self::Counter)
        } else {
            GaugeVec::new(opts, &names).map(Self::Gauge)
        };
        vector.map_err(|e| invalid(name, &e))
    }

    /// The series with these label values, created if it does not exist.
    fn series(&self, values: &[String]) -> prometheus::Result<Series> {
        match self {
            Self::Counter(v) => v.get_metric_with_label_values(values).map(Series::Counter),
            Self::Gauge(v) => v.get_metric_with_label_values(values).map(Series::Gauge),
        }
    }

    fn remove(&self, values: &[String]) {
        let _ = match self {
            Self::Counter(v) => v.remove_label_values(values),
            Self::Gauge(v) => v.remove_label_values(values),
        };
    }

    fn collect(&self) -> Vec<MetricFamily> {
        match self {
            Self::Counter(v) => v.collect(),
            Self::Gauge(v) => v.collect(),
        }
    }
}

impl Drop for CustomMetrics {
    fn drop(&mut self) {
        let metrics = self.metrics.get_mut();
        let mut families = FAMILIES.lock();
        for ((name, values), _) in metrics.drain() {
            let Some(family) = families.get_mut(&name) else { continue };
            // Another scope may use the same series.
            let Entry::Occupied(mut scopes) = family.scopes.entry(values) else { continue };
            *scopes.get_mut() -= 1;
            if *scopes.get() == 0 {
                let (values, _) = scopes.remove_entry();
                family.vector.remove(&values);
                if family.scopes.is_empty() {
                    families.remove(&name);
                }
            }
        }
    }
}

impl Metric {
    /// Adds to a counter, sets a gauge.
    pub fn put(&self, value: f64) -> Result<()> {
        self.series.put(value)?;
        if let Some(changed) = &self.changed {
            changed();
        }
        Ok(())
    }
}

impl Series {
    /// Adds to a counter, sets a gauge.
    pub fn put(&self, value: f64) -> Result<()> {
        match self {
            Series::Counter(c) if value >= 0.0 && value.is_finite() => c.inc_by(value),
            Series::Counter(_) => {
                return Err(Error::invalid(format!("a counter cannot be increased by {value}")));
            }
            Series::Gauge(g) => g.set(value),
        }
        Ok(())
    }

    pub fn get(&self) -> f64 {
        match self {
            Series::Counter(c) => c.get(),
            Series::Gauge(g) => g.get(),
        }
    }
}

#[cfg(test)]
#[path = "metric_tests.rs"]
mod tests;
