//! Metrics that the plugin makes, for the host's page: each value when it has changed, a few times a second at most.
//!
//! A series is told at once when it is made. A change marks it and, if it was not marked, wakes the thread that sends;
//! what changes while that thread rests goes with its next round. When nothing changes, nothing runs.

use super::control::Control;
use crate::error::{Error, Result};
use crate::plugin::host_api::metric::{self, Changed, Made, Series};
use crate::plugin::isolated::messages::{Metric, MetricValue, tell};
use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trtserver_plugin_api::abi::extensions::metric_kind;

/// Between two rounds of the sending thread.
const REST: Duration = Duration::from_millis(250);

static TABLE: OnceLock<Table> = OnceLock::new();

struct Table {
    control: Arc<Control>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Places in `series` by name and label values; made twice it is the same series.
    places: HashMap<Vec<String>, usize>,
    series: Vec<Watched>,
}

struct Watched {
    value: Series,
    changed: Changed,
    marked: Arc<AtomicBool>,
}

/// Watches all metrics from here on.
///
/// # Errors
/// The system gives no further thread.
pub fn start(control: &Arc<Control>) -> Result<()> {
    let table =
        TABLE.get_or_init(|| Table { control: Arc::clone(control), state: Mutex::default() });
    let (wake, woken) = channel();
    std::thread::Builder::new()
        .name("metrics".into())
        .spawn(move || run(table, &woken))
        .map_err(|e| Error::internal(format!("no thread could be started: {e}")))?;
    metric::watch(move |made| table.made(made, &wake));
    Ok(())
}

/// Sends what has changed, now.
pub fn flush() {
    if let Some(table) = TABLE.get() {
        table.send();
    }
}

fn run(table: &Table, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // One round is for all that have asked so far.
        woken.try_iter().for_each(drop);
        table.send();
        std::thread::sleep(REST);
    }
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn made(&self, made: Made<'_>, wake: &Sender<()>) -> Changed {
        let values = made.labels.iter().map(|(_, value)| value.clone());
        let key: Vec<String> = std::iter::once(made.name.to_owned()).chain(values).collect();
        let mut state = self.lock();
        if let Some(place) = state.places.get(&key).copied() {
            let known = &mut state.series[place];
            // Its scope may have ended, and a new series has begun under the old name.
            known.value = made.series.clone();
            return Arc::clone(&known.changed);
        }
        let place = state.series.len();
        let kind = match made.series {
            Series::Counter(_) => metric_kind::COUNTER,
            Series::Gauge(_) => metric_kind::GAUGE,
        };
        self.control.tell(tell::What::Metric(Metric {
            number: place as u64 + 1,
            kind,
            name: made.name.to_owned(),
            help: made.help.to_owned(),
            labels: made.labels.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect(),
        }));
        let marked = Arc::new(AtomicBool::new(false));
        let changed: Changed = {
            let (marked, wake) = (Arc::clone(&marked), wake.clone());
            Arc::new(move || {
                if !marked.swap(true, Ordering::AcqRel) {
                    let _ = wake.send(());
                }
            })
        };
        let value = made.series.clone();
        state.series.push(Watched { value, changed: Arc::clone(&changed), marked });
        state.places.insert(key, place);
        changed
    }

    fn send(&self) {
        let state = self.lock();
        for (place, series) in state.series.iter().enumerate() {
            // Unmarked before it is read: what is put afterwards marks it again.
            if series.marked.swap(false, Ordering::AcqRel) {
                let value = MetricValue { number: place as u64 + 1, value: series.value.get() };
                self.control.tell(tell::What::Value(value));
            }
        }
    }
}
