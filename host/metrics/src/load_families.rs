//! How busy model versions are: requests that wait or execute, the predicted wait, and how much of
//! the queue's timeout that is.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::stats::VersionCounters;
use trtserver_models::OpenVersion;
use trtserver_proto::v2::ModelConfig;
use trtserver_proto::v2::model_config::SchedulingChoice;

/// The families under construction.
pub struct LoadFamilies {
    pending: FamilyBuilder,
    in_flight: FamilyBuilder,
    wait: FamilyBuilder,
    saturation: FamilyBuilder,
}

impl LoadFamilies {
    pub fn new() -> Self {
        Self {
            pending: FamilyBuilder::gauge(
                "nv_inference_pending_request_count",
                "Instantaneous number of pending requests awaiting execution per-model.",
            ),
            in_flight: FamilyBuilder::gauge(
                "trtserver_requests_in_flight",
                "Requests that wait or execute",
            ),
            wait: FamilyBuilder::gauge(
                "trtserver_queue_wait_predicted_seconds",
                "How long a request that is queued now will wait, from the duration of executions since the last scrape",
            ),
            saturation: FamilyBuilder::gauge(
                "trtserver_queue_saturation_ratio",
                "The predicted wait over the default timeout of the model's queue: from 1 on requests time out",
            ),
        }
    }

    /// Adds the series of a version that is served.
    pub fn put(&mut self, labels: &Labels, served: &OpenVersion, counters: &VersionCounters) {
        let waiting = served.scheduler.waiting();
        self.pending.put(labels, waiting as f64);
        self.in_flight.put(labels, waiting as f64 + counters.executing() as f64);
        let Some(instances) = served.scheduler.instances() else { return };
        let wait = served.stats.predicted_wait(counters, waiting, instances).as_secs_f64();
        self.wait.put(labels, wait);
        if let Some(timeout_us) = queue_timeout_us(&served.config) {
            self.saturation.put(labels, wait / (timeout_us as f64 / 1e6));
        }
    }

    pub fn done(self) -> impl Iterator<Item = MetricFamily> {
        [self.pending, self.in_flight, self.wait, self.saturation]
            .into_iter()
            .map(FamilyBuilder::done)
    }
}

/// The default timeout of the model's queue, if it has one.
fn queue_timeout_us(config: &ModelConfig) -> Option<u64> {
    let Some(SchedulingChoice::DynamicBatching(dynamic)) = &config.scheduling_choice else {
        return None;
    };
    let timeout_us = dynamic.default_queue_policy.as_ref()?.default_timeout_microseconds;
    (timeout_us > 0).then_some(timeout_us)
}
