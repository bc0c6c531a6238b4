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

/// One series; what a `trts_metric` points at.
pub struct Series {
    value: Value,
    changed: Option<Changed>,
}

/// The number behind a series.
#[derive(Clone)]
pub enum Value {
    Counter(prometheus::Counter),
    Gauge(prometheus::Gauge),
}

/// To be called when a series has changed.
pub type Changed = Arc<dyn Fn() + Send + Sync>;

/// A series that a plugin has made.
pub struct Made<'a> {
    pub name: &'a str,
    pub help: &'a str,
    pub labels: &'a [(String, String)],
    pub value: &'a Value,
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
        let value = match &family.vector {
            Vector::Counter(v) => {
                Value::Counter(v.get_metric_with_label_values(&texts).map_err(bad)?)
            }
            Vector::Gauge(v) => Value::Gauge(v.get_metric_with_label_values(&texts).map_err(bad)?),
        };
        let vector = family.vector.clone();
        drop(families);
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push((vector, values));
        let changed = WATCHER.get().map(|made| made(Made { name, help, labels, value: &value }));
        Ok(Series { value, changed })
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

impl Series {
    /// Adds to a counter, sets a gauge.
    pub fn put(&self, value: f64) -> Result<()> {
        match &self.value {
            Value::Counter(c) if value >= 0.0 && value.is_finite() => c.inc_by(value),
            Value::Counter(_) => {
                return Err(Error::invalid(format!("a counter cannot grow by {value}")));
            }
            Value::Gauge(g) => g.set(value),
        }
        if let Some(changed) = &self.changed {
            changed();
        }
        Ok(())
    }

    pub fn get(&self) -> f64 {
        self.value.get()
    }
}

impl Value {
    pub fn get(&self) -> f64 {
        match self {
            Value::Counter(c) => c.get(),
            Value::Gauge(g) => g.get(),
        }
    }
}
