//! `grpc-timeout`: when the deadline of a call passes, the call ends and its requests are cancelled.

use crate::clock::now_ns;
use http::HeaderMap;
use std::future::Future;
use std::time::Duration;
use tonic::Status;

/// The deadline on the clock of [`now_ns`]; 0 if there is none or it cannot be parsed.
pub fn of(headers: &HeaderMap) -> u64 {
    let after = headers.get("grpc-timeout").and_then(|v| timeout_ns(v.as_bytes()));
    after.map_or(0, |ns| now_ns().saturating_add(ns).max(1))
}

/// At most eight digits and a unit, from hours to nanoseconds.
fn timeout_ns(text: &[u8]) -> Option<u64> {
    let (unit, digits) = text.split_last()?;
    if digits.is_empty() || digits.len() > 8 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount = digits.iter().fold(0u64, |n, d| n * 10 + u64::from(d - b'0'));
    let unit = match unit {
        b'H' => 3_600_000_000_000,
        b'M' => 60_000_000_000,
        b'S' => 1_000_000_000,
        b'm' => 1_000_000,
        b'u' => 1_000,
        b'n' => 1,
        _ => return None,
    };
    Some(amount.saturating_mul(unit))
}

/// Runs `work` until the deadline; 0 = none. The calling function has pinned the work and drops it when this returns, which
/// cancels its requests.
///
/// # Errors
/// DEADLINE_EXCEEDED, also for work that failed after the deadline: the scheduler may notice it before the timer does.
pub async fn within<T, W>(deadline_ns: u64, work: W) -> Result<T, Status>
where
    W: Future<Output = Result<T, Status>> + Unpin,
{
    if deadline_ns == 0 {
        return work.await;
    }
    let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
    match tokio::time::timeout(left, work).await {
        Ok(Err(status)) => Err(check(deadline_ns).err().unwrap_or(status)),
        Ok(done) => done,
        Err(_) => Err(exceeded()),
    }
}

/// Fails with DEADLINE_EXCEEDED if the deadline has passed.
pub fn check(deadline_ns: u64) -> Result<(), Status> {
    if deadline_ns != 0 && now_ns() >= deadline_ns { Err(exceeded()) } else { Ok(()) }
}

fn exceeded() -> Status {
    Status::deadline_exceeded("Deadline Exceeded")
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
