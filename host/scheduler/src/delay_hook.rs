//! Delay hook of Triton's test suites: a model executes nothing until a number of requests is
//! queued, once.

use std::time::Duration;

/// How often an idle instance checks.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The numbers of queued requests, and of those in the sequence backlog, that release the first
/// batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayHook {
    queued: usize,
    backlog: usize,
}

impl DelayHook {
    /// From `TRTSERVER_DELAY_SCHEDULER` and `TRTSERVER_BACKLOG_DELAY_SCHEDULER`, or Triton's names
    /// for them. The second one has an effect only with the first one, and only for sequence
    /// models.
    pub fn from_environment(sequences: bool) -> Option<Self> {
        let number = |name: &str| {
            let value = ["TRTSERVER", "TRITONSERVER"]
                .into_iter()
                .find_map(|server| std::env::var(format!("{server}_{name}")).ok());
            value.and_then(|v| v.trim().parse().ok()).unwrap_or(0)
        };
        let backlog = if sequences { number("BACKLOG_DELAY_SCHEDULER") } else { 0 };
        let queued = number("DELAY_SCHEDULER");
        (queued > 0).then_some(Self { queued, backlog })
    }

    pub fn is_satisfied(&self, queued: usize, backlog: usize) -> bool {
        queued >= self.queued && backlog >= self.backlog
    }
}
