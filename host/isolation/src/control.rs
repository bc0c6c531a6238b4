//! Reads the control connection of a child: control responses, log records, metrics, reports of
//! memory.

use super::exit_reason::KillReason;
use super::messages::{
    ControlMessage, LogRecord, MemoryReport, MetricMessage, MetricValue, control_message,
};
use super::nested::NestedConnection;
use super::process::Process;
use super::wire::{ReceiveOutcome, Receiver};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_config::log::{MAX_MESSAGE, cut_text};
use trtserver_plugin_api::abi::extensions::metric_kind;
use trtserver_plugin_api::abi::types::{Memory, level};
use trtserver_plugin_host::host_api::metric;
use trtserver_plugin_host::host_api::metric::{CustomMetrics, MetricKind};
use trtserver_plugin_host::host_api::reported_memory;
use trtserver_plugin_host::host_api::reported_memory::Reporter;
use trtserver_plugin_host::host_api::scope;

/// Reads until the connection ends. The metrics of the child and what it reported are removed then,
/// its nested requests cancelled. `write_timeout`: of the connection for nested requests.
pub fn read_control_messages(
    mut receiver: Receiver,
    process: &Arc<Process>,
    write_timeout: Option<Duration>,
) {
    let mut nested = None;
    let mut metrics = Metrics::default();
    let mut reports = Reports::new(&process.label);
    loop {
        match receiver.receive::<ControlMessage>() {
            Ok(ReceiveOutcome::Message(message)) => match message.kind {
                Some(control_message::MessageKind::Response(response)) => process.resolve(response),
                Some(control_message::MessageKind::Log(record)) => log(process, record),
                Some(control_message::MessageKind::Metric(metric)) => {
                    let name = metric.name.clone();
                    if let Err(e) = metrics.create(metric)
                        && process.admits_line(name.len().min(MAX_MESSAGE))
                    {
                        tracing::warn!(process = process.label, "metric '{name}' is ignored: {e}");
                    }
                }
                Some(control_message::MessageKind::Value(value)) => metrics.put(&value),
                Some(control_message::MessageKind::Memory(report)) => reports.put(report),
                Some(control_message::MessageKind::NestedConnection(_)) => {
                    if let Some(socket) = receiver.file().filter(|_| nested.is_none()) {
                        match NestedConnection::open(socket, process, write_timeout) {
                            Ok(connection) => nested = Some(connection),
                            // The child finds its end closed.
                            Err(e) if process.admits_line(0) => {
                                tracing::error!(process = process.label, "{e}");
                            }
                            Err(_) => {}
                        }
                    }
                }
                None => {}
            },
            Ok(ReceiveOutcome::TimedOut) => {}
            Ok(ReceiveOutcome::Closed) => {
                process.fail_pending();
                return process.connection_lost("closed its control connection");
            }
            Err(e) => {
                process
                    .kill(KillReason::ProtocolViolation(format!("sent a malformed message ({e})")));
                return process.fail_pending();
            }
        }
        // Unexpected file descriptors are closed.
        while receiver.file().is_some() {}
    }
}

fn log(process: &Process, record: LogRecord) {
    let (label, text) = (&process.label, cut_text(record.text, MAX_MESSAGE));
    let (file, line) = (record.file.as_str(), record.line);
    if record.level <= level::WARNING {
        process.tail.push(&text);
    }
    if !process.admits_line(text.len()) {
        return;
    }
    match record.level {
        0 | level::ERROR => {
            tracing::error!(process = label, at.file = file, at.line = line, "{text}")
        }
        level::WARNING => tracing::warn!(process = label, at.file = file, at.line = line, "{text}"),
        level::INFO => tracing::info!(process = label, at.file = file, at.line = line, "{text}"),
        level::VERBOSE => {
            tracing::debug!(process = label, at.file = file, at.line = line, "{text}")
        }
        _ => tracing::trace!(process = label, at.file = file, at.line = line, "{text}"),
    }
}

/// Limit of series per child: a backend that creates one for every request must not exhaust the
/// server.
const MAX_SERIES: usize = 10_000;

/// The metrics of one child.
#[derive(Default)]
struct Metrics {
    by_number: HashMap<u64, RemoteSeries>,
    /// The limit was reached and reported.
    full: bool,
    registered: CustomMetrics,
}

struct RemoteSeries {
    metric: Arc<metric::BackendMetric>,
    kind: u32,
    /// The value received last.
    last: f64,
}

impl Metrics {
    fn create(&mut self, metric: MetricMessage) -> Result<()> {
        // Its series would count towards no limit.
        if self.by_number.contains_key(&metric.number) {
            return Err(Error::invalid(format!("number {} is in use", metric.number)));
        }
        if self.by_number.len() >= MAX_SERIES {
            let reported = std::mem::replace(&mut self.full, true);
            let e = || {
                Error::unavailable(format!(
                    "the process has reached the limit of {MAX_SERIES} series"
                ))
            };
            return if reported { Ok(()) } else { Err(e()) };
        }
        let mut labels = metric.labels.into_iter();
        let pairs = std::iter::from_fn(|| Some((labels.next()?, labels.next()?)));
        let labels: Vec<_> = pairs.collect();
        let kind = match metric.kind {
            metric_kind::COUNTER => MetricKind::Counter,
            metric_kind::GAUGE => MetricKind::Gauge,
            _ => MetricKind::Histogram(&metric.bounds),
        };
        let series = self.registered.metric(kind, &metric.name, &metric.help, &labels)?;
        let series = RemoteSeries { metric: series, kind: metric.kind, last: 0.0 };
        self.by_number.insert(metric.number, series);
        Ok(())
    }

    fn put(&mut self, update: &MetricValue) {
        if update.removed {
            if let Some(removed) = self.by_number.remove(&update.number) {
                removed.metric.free();
            }
            return;
        }
        let Some(RemoteSeries { metric, kind, last }) = self.by_number.get_mut(&update.number)
        else {
            return;
        };
        match *kind {
            // Counters of several children may share a series, so only the difference is added.
            metric_kind::COUNTER => {
                if metric.put(update.value - *last).is_ok() {
                    *last = update.value;
                }
            }
            // Gauges of several children may share one too: what a child adds must not replace what
            // others have added.
            metric_kind::GAUGE => {
                if update.set {
                    let _ = metric.put(update.value);
                }
                let _ = metric.add(update.added);
            }
            _ => update.observations.iter().for_each(|value| drop(metric.put(*value))),
        }
    }
}

/// Limit of scopes per child whose reports count, for the same reason.
const MAX_SCOPES: usize = 10_000;

/// What the backend of one child reports to hold.
struct Reports {
    /// Name and version from the child's label, because a message of the child could name any
    /// model.
    model: Option<(Arc<str>, i64)>,
    /// Ids in this process, by those in the child.
    ids: HashMap<u64, u64>,
}

impl Reports {
    /// `label`: `model digits:1`.
    fn new(label: &str) -> Self {
        let named = label.strip_prefix("model ").and_then(|named| named.rsplit_once(':'));
        let model = named.and_then(|(name, version)| Some((name.into(), version.parse().ok()?)));
        Self { model, ids: HashMap::new() }
    }

    fn put(&mut self, report: MemoryReport) {
        if self.ids.len() >= MAX_SCOPES && !self.ids.contains_key(&report.scope) {
            return;
        }
        let id = *self.ids.entry(report.scope).or_insert_with(scope::unique_id);
        let reporter = Reporter { label: report.label.into(), model: self.model.clone() };
        let memory = Memory { memory_type: report.memory_type, device_id: report.device_id };
        reported_memory::report_memory(id, &reporter, memory, report.bytes);
    }
}

impl Drop for Reports {
    fn drop(&mut self) {
        for id in self.ids.values() {
            reported_memory::remove_reports(*id);
        }
    }
}

#[cfg(test)]
#[path = "control_tests.rs"]
mod tests;
