//! Metrics that plugins make: families shared by name, series that go with their scope.

use crate::error::{Error, Result};
use prometheus::{CounterVec, GaugeVec, Opts, Registry};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

/// All families that plugins made; gathered together with the server's own.
pub static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::new);
static FAMILIES: LazyLock<Mutex<HashMap<String, Family>>> = LazyLock::new(Mutex::default);

#[derive(Clone)]
enum Vector {
    Counter(CounterVec),
    Gauge(GaugeVec),
}

struct Family {
    vector: Vector,
    label_names: Vec<String>,
}

/// One series.
#[derive(Clone)]
pub enum Series {
    Counter(prometheus::Counter),
    Gauge(prometheus::Gauge),
}

/// What a `trts_metric` points at: a series, and who is told when it changes.
pub struct Metric {
    pub series: Series,
    changed: Option<Changed>,
}

/// To be called when a series has changed.
pub type Changed = Arc<dyn Fn() + Send + Sync>;

/// A series that a plugin has made.
pub struct Made<'a> {
    pub name: &'a str,
    pub help: &'a str,
    pub labels: &'a [(String, String)],
    pub series: &'a Series,
}

type Watcher = Box<dyn Fn(Made<'_>) -> Changed + Send + Sync>;

/// In the process of an isolated backend: who passes all series on to the host.
static WATCHER: OnceLock<Watcher> = OnceLock::new();

/// `watcher` is told of every series that is made from here on, and is called back when it changes. Once.
pub fn watch(watcher: impl Fn(Made<'_>) -> Changed + Send + Sync + 'static) {
    let _ = WATCHER.set(Box::new(watcher));
}

/// The series of one scope.
#[derive(Default)]
pub struct CustomMetrics {
    made: Mutex<Vec<(Vector, Vec<String>)>>,
}

impl CustomMetrics {
    /// A series of the family `name`, which is made if it is new.
    ///
    /// # Errors
    /// Bad names, or a family of that name with another kind or other labels.
    pub fn series(
        &self,
        counter: bool,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Series> {
        let bad = |e: prometheus::Error| Error::invalid(format!("metric '{name}': {e}"));
        let names: Vec<String> = labels.iter().map(|(k, _)| k.clone()).collect();
        let values: Vec<String> = labels.iter().map(|(_, v)| v.clone()).collect();
        let mut families = FAMILIES.lock().unwrap_or_else(PoisonError::into_inner);
        if !families.contains_key(name) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let opts = Opts::new(name, if help.is_empty() { name } else { help });
            let vector = if counter {
                let vector = CounterVec::new(opts, &names).map_err(bad)?;
                REGISTRY.register(Box::new(vector.clone())).map_err(bad)?;
                Vector::Counter(vector)
            } else {
                let vector = GaugeVec::new(opts, &names).map_err(bad)?;
                REGISTRY.register(Box::new(vector.clone())).map_err(bad)?;
                Vector::Gauge(vector)
            };
            let label_names = labels.iter().map(|(k, _)| k.clone()).collect();
            families.insert(name.to_owned(), Family { vector, label_names });
        }
        let Some(family) = families.get(name) else {
            return Err(Error::internal(format!("metric '{name}' was lost")));
        };
        if family.label_names != names || matches!(family.vector, Vector::Counter(_)) != counter {
            return Err(Error::invalid(format!(
                "metric '{name}' exists with another kind or other labels ({})",
                family.label_names.join(", ")
            )));
        }
        let texts: Vec<&str> = values.iter().map(String::as_str).collect();
        let series = match &family.vector {
            Vector::Counter(v) => {
                Series::Counter(v.get_metric_with_label_values(&texts).map_err(bad)?)
            }
            Vector::Gauge(v) => Series::Gauge(v.get_metric_with_label_values(&texts).map_err(bad)?),
        };
        let vector = family.vector.clone();
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push((vector, values));
        Ok(series)
    }

    /// The same for a plugin.
    pub fn metric(
        &self,
        counter: bool,
        name: &str,
        help: &str,
        labels: &[(String, String)],
    ) -> Result<Metric> {
        let series = self.series(counter, name, help, labels)?;
        let made = |watch: &Watcher| watch(Made { name, help, labels, series: &series });
        let changed = WATCHER.get().map(made);
        Ok(Metric { series, changed })
    }
}

impl Drop for CustomMetrics {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (vector, values) in made.drain(..) {
            let values: Vec<&str> = values.iter().map(String::as_str).collect();
            // Two scopes may have shared a series; then it is gone already.
            let _ = match vector {
                Vector::Counter(v) => v.remove_label_values(&values),
                Vector::Gauge(v) => v.remove_label_values(&values),
            };
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
                return Err(Error::invalid(format!("a counter cannot grow by {value}")));
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
