//! How busy model versions are: requests that wait or execute, the predicted wait, and how much of
//! the queue's timeout that is.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::clock::now_ns;
use trtserver_base::stats::VersionCounters;
use trtserver_load_report::{LoadReport, queue_timeout};
use trtserver_models::OpenVersion;

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
        // Requests whose execution is that of an equal request.
        let followers = served.response_cache.as_ref().map_or(0, |cache| cache.waiting());
        self.pending.put(labels, (waiting + followers) as f64);
        self.in_flight.put(labels, (waiting + followers) as f64 + counters.executing() as f64);
        let Some(instances) = served.scheduler.instances() else { return };
        let estimate = served.stats.service_estimate(now_ns(), instances);
        let wait = estimate.wait(waiting, instances).as_secs_f64();
        self.wait.put(labels, wait);
        if let Some(timeout) = queue_timeout(&served.config) {
            self.saturation.put(labels, wait / timeout.as_secs_f64());
        }
    }

    pub fn done(self) -> impl Iterator<Item = MetricFamily> {
        [self.pending, self.in_flight, self.wait, self.saturation]
            .into_iter()
            .map(FamilyBuilder::done)
    }
}

/// How busy the server is as a whole: what load balancers and autoscalers read.
pub fn server_families(report: &LoadReport) -> [MetricFamily; 2] {
    let gauge = |name, help, value| {
        let mut family = FamilyBuilder::gauge(name, help);
        family.put(&Labels::new(), value);
        family.done()
    };
    [
        gauge(
            "trtserver_application_utilization_ratio",
            "Of the busiest model: the busy part of its instances' time, plus the predicted wait over its target",
            report.application_utilization,
        ),
        gauge(
            "trtserver_draining",
            "1 after SIGTERM: the server takes requests for the drain delay, and no new ones then",
            f64::from(u8::from(report.draining)),
        ),
    ]
}
