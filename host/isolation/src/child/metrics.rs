//! Forwards metrics of the backend to the host: changed values only, a few times a second, and when
//! the host is about to show them.
//!
//! A new series is sent at once. A change marks its series and, if it was not marked, wakes the
//! sending thread; changes while that thread pauses are sent in its next round, or when the host
//! asks for them. While nothing changes, nothing runs.

use super::control::Control;
use crate::messages::{MetricMessage, MetricValue, control_message};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::extensions::metric_kind;
use trtserver_plugin_host::host_api::metric;
use trtserver_plugin_host::host_api::metric::{MetricKind, MetricSeries, NewSeries, SeriesWatcher};

/// Pause between two rounds of the sending thread.
const PAUSE: Duration = Duration::from_millis(250);
/// A histogram sends its observations at the latest when it has so many.
const MAX_OBSERVATIONS: usize = 4096;

/// Sends the series of the backend; lives as long as the process.
pub struct Forwarder {
    control: Arc<Control>,
    wake: Sender<()>,
    state: Mutex<ForwarderState>,
}

#[derive(Default)]
struct ForwarderState {
    last: u64,
    watched: BTreeMap<u64, WatchedSeries>,
    /// Numbers by name and label values: a series created twice is the same.
    numbers: BTreeMap<Vec<String>, u64>,
}

struct WatchedSeries {
    value: MetricSeries,
    watcher: Arc<Watcher>,
    /// How often it was created and not removed.
    uses: usize,
}

/// One series.
struct Watcher {
    forwarder: &'static Forwarder,
    number: u64,
    key: Vec<String>,
    marked: AtomicBool,
    changes: Changes,
}

/// What was not sent of a series.
enum Changes {
    /// The value of the series says it.
    Counter,
    /// The value that was set, and what was added since.
    Gauge(Mutex<(Option<f64>, f64)>),
    Histogram(Mutex<Vec<f64>>),
}

/// Forwards all metrics from here on.
///
/// # Errors
/// The thread cannot be started.
pub fn start_forwarding(control: &Arc<Control>) -> Result<&'static Forwarder> {
    let (wake, woken) = channel();
    let (control, state) = (Arc::clone(control), Mutex::default());
    let forwarder: &'static Forwarder = Box::leak(Box::new(Forwarder { control, wake, state }));
    std::thread::Builder::new()
        .name("metrics".into())
        .spawn(move || run(forwarder, &woken))
        .map_err(|e| Error::internal(format!("no thread could be started: {e}")))?;
    metric::set_observer(|new| forwarder.add(new));
    Ok(forwarder)
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
    fn add(&'static self, new: NewSeries<'_>) -> Arc<dyn SeriesWatcher> {
        let values = new.labels.iter().map(|(_, value)| value.clone());
        let key: Vec<String> = std::iter::once(new.name.to_owned()).chain(values).collect();
        let mut state = self.state.lock();
        let known = state.numbers.get(&key).copied();
        if let Some(known) = known.and_then(|number| state.watched.get_mut(&number)) {
            // The scope of the old series may have ended; this one replaces it.
            known.value = new.series.clone();
            known.uses += 1;
            return Arc::clone(&known.watcher) as _;
        }
        state.last += 1;
        let number = state.last;
        let (kind, bounds) = match new.kind {
            MetricKind::Counter => (metric_kind::COUNTER, &[][..]),
            MetricKind::Gauge => (metric_kind::GAUGE, &[][..]),
            MetricKind::Histogram(bounds) => (metric_kind::HISTOGRAM, bounds),
        };
        self.control.send(control_message::MessageKind::Metric(MetricMessage {
            number,
            kind,
            name: new.name.to_owned(),
            help: new.help.to_owned(),
            labels: new.labels.iter().flat_map(|(k, v)| [k.clone(), v.clone()]).collect(),
            bounds: bounds.to_vec(),
        }));
        let watcher = Arc::new(Watcher {
            forwarder: self,
            number,
            key: key.clone(),
            marked: AtomicBool::new(false),
            changes: match new.kind {
                MetricKind::Counter => Changes::Counter,
                MetricKind::Gauge => Changes::Gauge(Mutex::default()),
                MetricKind::Histogram(_) => Changes::Histogram(Mutex::default()),
            },
        });
        let (value, of_state) = (new.series.clone(), Arc::clone(&watcher));
        let watched = WatchedSeries { value, watcher: of_state, uses: 1 };
        state.watched.insert(number, watched);
        state.numbers.insert(key, number);
        watcher
    }

    /// Sends changed values now.
    pub fn send(&self) {
        for WatchedSeries { value, watcher, .. } in self.state.lock().watched.values() {
            // Unmarked before it is read: a later change marks it again.
            if watcher.marked.swap(false, Ordering::AcqRel) {
                watcher.send(value.get());
            }
        }
    }
}

impl Watcher {
    fn send(&self, value: f64) {
        let mut message = MetricValue { number: self.number, value, ..MetricValue::default() };
        match &self.changes {
            Changes::Counter => {}
            Changes::Gauge(changes) => {
                let (set, added) = std::mem::take(&mut *changes.lock());
                (message.set, message.value) = (set.is_some(), set.unwrap_or_default());
                message.added = added;
            }
            Changes::Histogram(all) => message.observations = std::mem::take(&mut *all.lock()),
        }
        self.forwarder.control.send(control_message::MessageKind::Value(message));
    }

    /// Has the sending thread send this series.
    fn mark(&self) {
        if !self.marked.swap(true, Ordering::AcqRel) {
            let _ = self.forwarder.wake.send(());
        }
    }
}

impl SeriesWatcher for Watcher {
    fn put(&self, value: f64) {
        match &self.changes {
            Changes::Counter => {}
            Changes::Gauge(changes) => *changes.lock() = (Some(value), 0.0),
            Changes::Histogram(all) => {
                let mut all = all.lock();
                all.push(value);
                if all.len() >= MAX_OBSERVATIONS {
                    drop(all);
                    return self.send(value);
                }
            }
        }
        self.mark();
    }

    fn added(&self, value: f64) {
        if let Changes::Gauge(changes) = &self.changes {
            changes.lock().1 += value;
        }
        self.mark();
    }

    fn removed(&self) {
        let mut state = self.forwarder.state.lock();
        let Some(watched) = state.watched.get_mut(&self.number) else { return };
        watched.uses -= 1;
        if watched.uses > 0 {
            // It was created again meanwhile.
            return;
        }
        if self.marked.swap(false, Ordering::AcqRel) {
            // Other processes may share the series, which then stays.
            self.send(watched.value.get());
        }
        state.numbers.remove(&self.key);
        state.watched.remove(&self.number);
        // Under the lock: nothing of it follows.
        self.forwarder.control.send(control_message::MessageKind::Value(MetricValue {
            number: self.number,
            removed: true,
            ..MetricValue::default()
        }));
    }
}
