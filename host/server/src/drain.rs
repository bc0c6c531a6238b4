//! Shutdown: waits for in-flight requests, then unloads and closes everything.
//!
//! ```text
//!   sequences end ──► models are unloaded; responses are the last ──► no model, no request ──► listeners and
//!   (or their limit)  of their connections, GOAWAY                    (or the exit timeout)    connections end
//! ```
//!
//! Before that, SIGTERM begins the drain delay, if there is one: the server is not ready, accepts
//! requests, and in the second half of the delay sends its clients away.
//!
//! Requests that have not arrived completely are ended after [`INCOMPLETE_GRACE`]: they were not
//! accepted.

use super::Server;
use std::time::{Duration, Instant};
use trtserver_base::state::ServerPhase;
use trtserver_config::ProgramName;
use trtserver_device::open_streams;
use trtserver_models::VersionInFlight;

/// How long a request may take to arrive completely.
const INCOMPLETE_GRACE: Duration = Duration::from_secs(3);
const INCOMPLETE_INTERVAL: Duration = Duration::from_millis(100);
/// Interval at which the drain looks at the requests that have not ended.
const INTERVAL: Duration = Duration::from_millis(5);
/// A connection that is younger was opened by a client that still comes here.
const SHED_AGE: Duration = Duration::from_secs(1);
/// Time for what waits to be written and sent at the end, also if the drain took all of its own.
const MIN_FLUSH: Duration = Duration::from_millis(500);
const SHED_INTERVAL: Duration = Duration::from_millis(100);

impl Server {
    /// The drain delay: load balancers see that the server is not ready and choose another one,
    /// while requests that still come are served. Clients that keep their connections are moved by
    /// `Connection: close` and GOAWAY once load balancers have had half of the time.
    pub(super) async fn delay_drain(&self) {
        let delay = self.context.settings.drain_delay;
        self.context.state.withdraw();
        tracing::info!(
            "Not ready. Requests are accepted for {} s more (--drain-delay-secs).",
            delay.as_secs()
        );
        let start = Instant::now();
        while let Some(left) = delay.checked_sub(start.elapsed()) {
            if left <= delay / 2 {
                self.connections.shed(SHED_AGE);
            }
            tokio::time::sleep(SHED_INTERVAL.min(left).max(INTERVAL)).await;
        }
    }

    /// Waits for in-flight requests, unloads the models, closes the listeners. Exit status 0 if all
    /// ended within the grace period.
    pub(super) async fn drain(self) -> u8 {
        let state = &self.context.state;
        state.set_phase(ServerPhase::Exiting);
        // No load begins from here on; loads in progress are waited for.
        let control = self.context.control.swap(None);
        if let Some(control) = &control {
            control.stop();
        }
        let what = match self.context.settings.program {
            ProgramName::Tritonserver => "requests",
            ProgramName::InferenceServer | ProgramName::Trtserver => "inferences",
        };
        tracing::info!("Waiting for in-flight {what} to complete.");
        let by_version = self.context.models.in_flight();
        let limit = self.context.settings.exit_timeout;
        let sequence_limit = self.context.settings.exit_sequence_timeout.min(limit / 2);
        let incomplete_grace = INCOMPLETE_GRACE.min(limit / 2);
        let start = Instant::now();
        let (mut logged, mut unloading) = (None, false);
        let mut end_incomplete = start + incomplete_grace;
        let code = loop {
            // Requests of active sequences are accepted until the last sequence has ended, so
            // models stay loaded until then.
            let mut sequences = self.context.models.sequences();
            if sequences > 0 && start.elapsed() >= sequence_limit {
                if !unloading {
                    tracing::warn!(
                        "{sequences} sequences have not ended within {sequence_limit:?}"
                    );
                }
                sequences = 0;
            }
            if sequences == 0 {
                self.context.models.unload_all();
                if !unloading {
                    // Clients then open no request that would find its connection closed.
                    self.connections.drain();
                }
                unloading = true;
            }
            if Instant::now() >= end_incomplete {
                self.connections.end_incomplete(incomplete_grace);
                end_incomplete += INCOMPLETE_INTERVAL;
            }
            // Read in this order: a model that a change opens is counted before the change ends.
            let changes = control.as_ref().map_or(0, |control| control.changes_in_progress());
            let (models, requests) = (self.context.models.live_models(), state.in_flight());
            if models == 0 && requests == 0 && changes == 0 && open_streams() == 0 {
                break 0;
            }
            let left = limit.saturating_sub(start.elapsed());
            if left.is_zero() {
                tracing::error!("Exit timeout expired. Exiting immediately.");
                break 1;
            }
            if logged != Some(left.as_secs()) {
                logged = Some(left.as_secs());
                let timeout = left.as_secs() + 1;
                log_in_flight(timeout, &by_version);
                tracing::info!(
                    "Timeout {timeout}: Found {models} live models and {requests} in-flight requests; \
                     {sequences} sequences have not ended"
                );
            }
            tokio::time::sleep(INTERVAL.min(left)).await;
        };
        let _ = self.stop.send(true);
        for task in self.tasks {
            let _ = task.await;
        }
        self.context.tracer.stop();
        let left = limit.saturating_sub(start.elapsed());
        self.telemetry.shut_down(left.max(MIN_FLUSH));
        code
    }
}

/// Logs which model versions have requests in flight, in Triton's words.
fn log_in_flight(timeout: u64, versions: &[VersionInFlight]) {
    let counted = versions.iter().map(|version| (version, version.count()));
    let busy: Vec<_> = counted.filter(|(_, count)| *count > 0).collect();
    let number = busy.len();
    tracing::info!(
        "Timeout {timeout}: Found {number} model versions that have in-flight inferences"
    );
    for (VersionInFlight { name, version, .. }, count) in busy {
        tracing::info!("Model '{name}' (version {version}) has {count} in-flight inferences");
    }
}
