//! `grpc-timeout`: when the deadline of a call passes, the call ends and its requests are
//! cancelled.

use http::HeaderMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;
use tonic::Status;
use trtserver_base::clock::now_ns;

/// The deadline on the clock of [`now_ns`]; 0 if there is none or it cannot be parsed.
pub fn read_deadline(headers: &HeaderMap) -> u64 {
    let after = headers.get("grpc-timeout").and_then(|v| parse_grpc_timeout(v.as_bytes()));
    after.map_or(0, |ns| now_ns().saturating_add(ns).max(1))
}

/// At most eight digits and a unit, from hours to nanoseconds.
fn parse_grpc_timeout(text: &[u8]) -> Option<u64> {
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

pin_project_lite::pin_project! {
    /// Work that ends at a deadline.
    pub struct DeadlineFuture<W> {
        #[pin]
        work: W,
        deadline_ns: u64,
        // Set when the work has to wait.
        timer: Option<Pin<Box<Sleep>>>,
    }
}

/// Runs `work` until the deadline; 0 = none. Fails with DEADLINE_EXCEEDED then, also if the work
/// failed after the deadline: the scheduler may notice it before the timer does. Dropping the
/// future drops the work, which cancels its requests.
pub fn run_until_deadline<T, W>(deadline_ns: u64, work: W) -> DeadlineFuture<W>
where
    W: Future<Output = Result<T, Status>>,
{
    DeadlineFuture { work, deadline_ns, timer: None }
}

impl<T, W> Future for DeadlineFuture<W>
where
    W: Future<Output = Result<T, Status>>,
{
    type Output = Result<T, Status>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T, Status>> {
        let this = self.project();
        let deadline_ns = *this.deadline_ns;
        if let Poll::Ready(done) = this.work.poll(cx) {
            return Poll::Ready(match done {
                Ok(done) => Ok(done),
                Err(status) => Err(check_deadline(deadline_ns).err().unwrap_or(status)),
            });
        }
        if deadline_ns == 0 {
            return Poll::Pending;
        }
        let timer = this.timer.get_or_insert_with(|| {
            let left = Duration::from_nanos(deadline_ns.saturating_sub(now_ns()));
            Box::pin(tokio::time::sleep(left))
        });
        timer.as_mut().poll(cx).map(|()| Err(exceeded()))
    }
}

/// Fails with DEADLINE_EXCEEDED if the deadline has passed.
pub fn check_deadline(deadline_ns: u64) -> Result<(), Status> {
    if deadline_ns != 0 && now_ns() >= deadline_ns { Err(exceeded()) } else { Ok(()) }
}

fn exceeded() -> Status {
    Status::deadline_exceeded("Deadline Exceeded")
}

#[cfg(test)]
#[path = "deadline_tests.rs"]
mod tests;
