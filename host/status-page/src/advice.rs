//! What to change in the configuration of a model, in words: a pure function of its recent counters.

use crate::counters::VersionTotals;
use trtserver_base::stats::{CLOSE_REASONS, FAILURE_REASONS, FailureReason};
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// Fewer requests or batches say nothing.
const MIN_REQUESTS: u64 = 20;
/// This share of the batches counts as most of them.
const MOST: f64 = 0.6;
/// Waits that are shorter are not worth a change, in microseconds.
const MIN_WAIT_US: f64 = 200.0;

/// What the advice looks at.
pub struct ObservedModel<'a> {
    pub config: &'a ModelConfig,
    /// Of the last seconds.
    pub recent: &'a VersionTotals,
    /// `None` for an ensemble.
    pub instances: Option<usize>,
}

/// Sentences, the most important first; empty if nothing is to be changed.
pub fn advise(model: &ObservedModel<'_>) -> Vec<String> {
    let rules = [
        rejections,
        late_requests,
        late_batches,
        small_batches,
        short_queue,
        single_requests,
        mixed_shapes,
        refusals,
    ];
    rules.iter().filter_map(|rule| rule(model)).collect()
}

impl ObservedModel<'_> {
    fn dynamic(&self) -> Option<&trtserver_proto::v2::ModelDynamicBatching> {
        match self.config.scheduling_choice.as_ref()? {
            SchedulingChoice::DynamicBatching(dynamic) => Some(dynamic),
            _ => None,
        }
    }

    /// The largest batch that the batcher aims at.
    fn target_rows(&self) -> f64 {
        let preferred = self.dynamic().and_then(|d| d.preferred_batch_size.iter().max().copied());
        f64::from(preferred.unwrap_or(self.config.max_batch_size).max(1))
    }

    /// The share of the batches that closed for this reason.
    fn share(&self, reason: &str) -> f64 {
        let all: u64 = self.recent.closed.iter().sum();
        let at = CLOSE_REASONS.iter().position(|name| *name == reason);
        at.map_or(0.0, |at| self.recent.closed[at] as f64 / all.max(1) as f64)
    }

    fn has_batches(&self) -> bool {
        self.recent.closed.iter().sum::<u64>() >= MIN_REQUESTS
    }

    /// The median wait and execution in microseconds.
    fn medians_us(&self) -> Option<(f64, f64)> {
        Some((self.recent.quantile_us(1, 0.5)?, self.recent.quantile_us(2, 0.5)?))
    }

    fn instance_count(&self) -> usize {
        self.instances.unwrap_or(1).max(1)
    }
}

fn rejections(model: &ObservedModel<'_>) -> Option<String> {
    let rejected = model.recent.failures[0];
    let policy = model.dynamic().and_then(|dynamic| dynamic.default_queue_policy.as_ref());
    let limit = match policy.map_or(0, |policy| policy.max_queue_size) {
        0 => "the queue's timeout passed".to_owned(),
        size => format!("the queue is full at max_queue_size {size}, or its timeout passed"),
    };
    (rejected > 0).then(|| {
        format!(
            "{rejected} requests were rejected: {limit}. Add instances (instance_group.count), raise the limit, or send \
             less."
        )
    })
}

fn late_requests(model: &ObservedModel<'_>) -> Option<String> {
    let at = FAILURE_REASONS.iter().position(|(reason, _)| *reason == FailureReason::Late)?;
    let late = model.recent.failures[at];
    (late > 0).then(|| {
        format!(
            "{late} requests were refused on arrival, since they would have waited too long. Add instances \
             (instance_group.count) or servers, or send less."
        )
    })
}

/// Batches close because their delay has passed, far from full.
fn late_batches(model: &ObservedModel<'_>) -> Option<String> {
    let delay_us = model.dynamic()?.max_queue_delay_microseconds;
    let ((_, rows), target) = (model.recent.batches(), model.target_rows());
    let is_late = model.has_batches() && model.share("delay") >= MOST && delay_us > 0;
    (is_late && rows <= target / 2.0).then(|| {
        format!(
            "batches close by delay with {rows:.1} rows of {target}: each request waits for others that do not come. Lower \
             dynamic_batching.max_queue_delay_microseconds (now {delay_us}), or send more requests at a time."
        )
    })
}

/// Batches are full, and more requests wait than execute.
fn small_batches(model: &ObservedModel<'_>) -> Option<String> {
    let full = model.share("full") + model.share("preferred");
    let (wait, run) = model.medians_us()?;
    let rows = model.recent.batches().1;
    let max = model.config.max_batch_size;
    let is_behind = model.has_batches() && full >= MOST && wait > run && wait > MIN_WAIT_US;
    (is_behind && max > 1).then(|| {
        format!(
            "batches are full ({rows:.1} rows) and requests wait {} for an execution of {}: raise max_batch_size (now {max}) \
             or instance_group.count (now {}).",
            duration_text(wait),
            duration_text(run),
            model.instance_count()
        )
    })
}

/// Requests wait longer than they execute, and batches are not the reason.
fn short_queue(model: &ObservedModel<'_>) -> Option<String> {
    let (wait, run) = model.medians_us()?;
    let instances = model.instances?;
    let is_batched = model.config.max_batch_size > 1 && model.has_batches();
    let is_behind = model.recent.requests >= MIN_REQUESTS && wait > run && wait > MIN_WAIT_US;
    (is_behind && !is_batched).then(|| {
        format!(
            "requests wait {} for an execution of {}: add instances (instance_group.count, now {instances}).",
            duration_text(wait),
            duration_text(run)
        )
    })
}

/// The model takes batches, requests wait, and nothing forms batches.
fn single_requests(model: &ObservedModel<'_>) -> Option<String> {
    let max = model.config.max_batch_size;
    let is_single = model.config.scheduling_choice.is_none() && max > 1;
    let (wait, run) = model.medians_us()?;
    let waits = model.recent.requests >= MIN_REQUESTS && wait > run / 2.0 && wait > MIN_WAIT_US;
    (is_single && waits).then(|| {
        format!(
            "requests are executed one by one although the model takes batches of {max}, and wait {}: add dynamic_batching \
             {{ }} to its configuration.",
            duration_text(wait)
        )
    })
}

fn mixed_shapes(model: &ObservedModel<'_>) -> Option<String> {
    let share = model.share("shape");
    (model.has_batches() && share >= MOST / 2.0).then(|| {
        format!(
            "{:.0} % of the batches close because the next request has another shape: send inputs of the same shape, or \
             allow_ragged_batch where the model takes it.",
            share * 100.0
        )
    })
}

fn refusals(model: &ObservedModel<'_>) -> Option<String> {
    let refused = model.recent.refused;
    (refused > 0).then(|| {
        format!(
            "{refused} requests were refused before they were queued, such as for the shape of an input: the response says \
             why."
        )
    })
}

/// `1.3 ms`.
fn duration_text(us: f64) -> String {
    match us {
        us if us < 1e3 => format!("{us:.0} µs"),
        us if us < 1e6 => format!("{:.1} ms", us / 1e3),
        us => format!("{:.1} s", us / 1e6),
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
