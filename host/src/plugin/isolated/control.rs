//! What a process tells over its control connection: answers, log records, metrics.

use super::exit_reason::Why;
use super::messages::{LogRecord, Metric, MetricValue, Tell, tell};
use super::process::Process;
use super::wire::{Received, Receiver};
use crate::error::{Error, Result};
use crate::plugin::host_api::metric::{CustomMetrics, Series};
use std::collections::HashMap;
use trtserver_plugin_api::abi::extensions::metric_kind;
use trtserver_plugin_api::abi::types::level;

/// Listens until the connection ends. The metrics that the process made go with it.
pub fn listen(mut receiver: Receiver, process: &Process) {
    let mut metrics = Metrics::default();
    loop {
        match receiver.receive::<Tell>() {
            Ok(Received::Message(tell)) => match tell.what {
                Some(tell::What::Done(done)) => process.answer(done),
                Some(tell::What::Log(record)) => log(process, &record),
                Some(tell::What::Metric(metric)) => {
                    let name = metric.name.clone();
                    if let Err(e) = metrics.make(metric) {
                        tracing::warn!(
                            process = process.label,
                            "metric '{name}' is not shown: {e}"
                        );
                    }
                }
                Some(tell::What::Value(value)) => metrics.put(&value),
                None => {}
            },
            Ok(Received::Silence) => {}
            Ok(Received::Closed) => {
                process.hang_up();
                return process.lost("closed its connection");
            }
            Err(e) => {
                process.kill(Why::Nonsense(format!("sent what is no message ({e})")));
                return process.hang_up();
            }
        }
        // Nothing comes with a file.
        while receiver.file().is_some() {}
    }
}

fn log(process: &Process, record: &LogRecord) {
    let (who, text) = (&process.label, &record.text);
    let (file, line) = (record.file.as_str(), record.line);
    if record.level <= level::WARNING {
        process.tail.push(text);
    }
    match record.level {
        0 | level::ERROR => {
            tracing::error!(process = who, at.file = file, at.line = line, "{text}")
        }
        level::WARNING => tracing::warn!(process = who, at.file = file, at.line = line, "{text}"),
        level::INFO => tracing::info!(process = who, at.file = file, at.line = line, "{text}"),
        level::VERBOSE => tracing::debug!(process = who, at.file = file, at.line = line, "{text}"),
        _ => tracing::trace!(process = who, at.file = file, at.line = line, "{text}"),
    }
}

/// Series that one process may have; a plugin that makes a new one for every request must not fill the server.
const MOST_SERIES: usize = 10_000;

/// The metrics of one process.
#[derive(Default)]
struct Metrics {
    by_number: HashMap<u64, Told>,
    /// There are no more, and it was told.
    full: bool,
    made: CustomMetrics,
}

struct Told {
    series: Series,
    counter: bool,
    /// Its value as it was told last.
    last: f64,
}

impl Metrics {
    fn make(&mut self, metric: Metric) -> Result<()> {
        if self.by_number.len() >= MOST_SERIES {
            let told = std::mem::replace(&mut self.full, true);
            let e =
                || Error::unavailable(format!("the process has {MOST_SERIES}, and gets no more"));
            return if told { Ok(()) } else { Err(e()) };
        }
        let mut labels = metric.labels.into_iter();
        let pairs = std::iter::from_fn(|| Some((labels.next()?, labels.next()?)));
        let labels: Vec<_> = pairs.collect();
        let counter = metric.kind == metric_kind::COUNTER;
        let series = self.made.series(counter, &metric.name, &metric.help, &labels)?;
        self.by_number.insert(metric.number, Told { series, counter, last: 0.0 });
        Ok(())
    }

    fn put(&mut self, told: &MetricValue) {
        let Some(metric) = self.by_number.get_mut(&told.number) else { return };
        // Others may count in the same series.
        let value = if metric.counter { told.value - metric.last } else { told.value };
        if metric.series.put(value).is_ok() {
            metric.last = told.value;
        }
    }
}
