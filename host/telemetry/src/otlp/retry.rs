//! When a failed attempt to send a batch is repeated: a pure decision.

use std::time::Duration;

/// Attempts to send one batch.
const MAX_ATTEMPTS: u32 = 6;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The pause before the next attempt; `None`: the batch is given up. `attempts` have failed,
/// `left` of the batch's time is left, `after` is what the collector asks for, `random` is any
/// number: a fifth of the pause is random, so that servers do not come together.
pub fn pause_before_retry(
    attempts: u32,
    left: Duration,
    after: Option<Duration>,
    random: u64,
) -> Option<Duration> {
    if attempts >= MAX_ATTEMPTS {
        return None;
    }
    let doubled = FIRST_PAUSE.saturating_mul(1 << attempts.saturating_sub(1)).min(MAX_PAUSE);
    let jittered = doubled - doubled / 5 + doubled / 5 * (random % 1024) as u32 / 1024;
    let pause = after.unwrap_or_default().max(jittered);
    (pause < left).then_some(pause)
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
