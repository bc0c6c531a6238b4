//! Test hooks of public suites: instances wait until so many requests are queued, once per model.

use std::time::Duration;

/// How often a waiting instance looks.
pub const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Requests that must be queued, and of those in the backlog of sequences, before the first is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayHook {
    queued: usize,
    backlog: usize,
}

impl DelayHook {
    /// From `TRTSERVER_DELAY_SCHEDULER` and `TRTSERVER_BACKLOG_DELAY_SCHEDULER`, or today's names. The second one means
    /// something only beside the first, and only where there is a backlog.
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
