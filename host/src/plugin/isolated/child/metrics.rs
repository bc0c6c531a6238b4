//! Forwards metrics of the backend to the host: changed values only, a few times a second at most.
//!
//! A new series is sent at once. A change marks its series and, if it was not marked, wakes the sending thread; changes
//! while that thread pauses are sent in its next round. While nothing changes, nothing runs.

use super::control::Control;
use crate::error::{Error, Result};
use crate::plugin::host_api::metric::{self, Changed, NewSeries, Series};
use crate::plugin::isolated::messages::{Metric, MetricValue, control_message};
use crate::sync::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use trtserver_plugin_api::abi::extensions::metric_kind;

/// Pause between two rounds of the sending thread.
const PAUSE: Duration = Duration::from_millis(250);

static FORWARDER: OnceLock<Forwarder> = OnceLock::new();

struct Forwarder {
    control: Arc<Control>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Indices in `series` by name and label values: a series created twice is the same.
    indices: HashMap<Vec<String>, usize>,
    series: Vec<Watched>,
}

struct Watched {
    value: Series,
    changed: Changed,
    marked: Arc<AtomicBool>,
}

/// Forwards all metrics from here on.
///
/// # Errors
/// The thread cannot be started.
pub fn start(control: &Arc<Control>) -> Result<()> {
    let forwarder = FORWARDER
        .get_or_init(|| Forwarder { control: Arc::clone(control), state: Mutex::default() });
    let (wake, woken) = channel();
    std::thread::Builder::new()
        .name("metrics".into())
        .spawn(move || run(forwarder, &woken))
        .map_err(|e| Error::internal(format!("no thread could be started: {e}")))?;
    metric::set_observer(move |new| forwarder.add(new, &wake));
    Ok(())
}

/// Sends changed values now.
pub fn flush() {
    if let Some(forwarder) = FORWARDER.get() {
        forwarder.send();
    }
}

fn run(forwarder: &Forwarder, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        // One round covers all wake-ups so far.
        woken.try_iter().for_each(drop);
        forwarder.send();
        std::thread::sleep(PAUSE);
    }
}

impl Forwarder {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    fn add(&self, new: NewSeries<'_>, wake: &Sender<()>) -> Changed {
        let values = new.labels.iter().map(|(_, value)| value.clone());
        let key: Vec<String> = std::iter::once(new.name.to_owned()).chain(values).collect();
        let mut state = self.lock();
        if let Some(index) = state.indices.get(&key).copied() {
            let known = &mut state.series[index];
            // The scope of the old series may have ended; this one replaces it.
            known.value = new.series.clone();
            return Arc::clone(&known.changed);
        }
        let index = state.series.len();
        let kind = match new.series {
            Series::Counter(_) => metric_kind::COUNTER,
            Series::Gauge(_) => metric_kind::GAUGE,
        };
        self.control.send(control_message::Kind::Metric(Metric {
            number: index as u64 + 1,
            kind,
            name: new.name.to_owned(),
            help: new.help.to_owned(),
            labels: new.labels.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect(),
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
        let value = new.series.clone();
        state.series.push(Watched { value, changed: Arc::clone(&changed), marked });
        state.indices.insert(key, index);
        changed
    }

    fn send(&self) {
        let state = self.lock();
        for (index, series) in state.series.iter().enumerate() {
            // Unmarked before it is read: a later change marks it again.
            if series.marked.swap(false, Ordering::AcqRel) {
                let value = MetricValue { number: index as u64 + 1, value: series.value.get() };
                self.control.send(control_message::Kind::Value(value));
            }
        }
    }
}
