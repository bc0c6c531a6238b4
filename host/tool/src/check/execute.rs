//! Executing requests for a scenario, so that findings name the requests.

use super::findings;
use std::fmt::Display;
use trtserver_plugin_testkit::{Failure, InFlight, Instance, Layout, Outcome, Request, Response};

pub fn failure_text(failure: Failure) -> String {
    failure.text
}

/// One batch, and what became of its requests.
pub struct ExecutedBatch {
    /// Describes the requests.
    case: String,
    rows: Vec<u32>,
    pub outcomes: Vec<Outcome>,
}

impl ExecutedBatch {
    /// # Errors
    /// What happened instead of a complete response.
    pub fn response(&self, at: usize) -> Result<&Response, String> {
        let outcome = self.outcomes.get(at).ok_or_else(|| self.fault(at, "out of memory"))?;
        outcome.response().map_err(|why| self.fault(at, why))
    }

    /// The response to the only request.
    ///
    /// # Errors
    /// What happened instead.
    pub fn only(self) -> Result<Response, String> {
        self.response(0).cloned()
    }

    /// Names the request that something is wrong with.
    pub fn fault(&self, at: usize, why: impl Display) -> String {
        match self.rows.as_slice() {
            [_] => format!("with {}: {why}", self.case),
            rows => {
                let rows = rows.get(at).copied().unwrap_or(0);
                format!(
                    "with {}: request {} ({}): {why}",
                    self.case,
                    at + 1,
                    count_text(rows, "row")
                )
            }
        }
    }
}

pub fn count_text(n: u32, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// Executes one request; `what` continues its description.
pub fn execute_one(instance: &Instance, request: Request, what: &str) -> ExecutedBatch {
    execute_batch(instance, &[request], Layout::Ordinary, what)
}

/// Executes one request on this thread instead of the instance's.
pub fn on_this_thread(instance: &Instance, request: Request) -> ExecutedBatch {
    let rows = vec![request.batch_size];
    let case = described(&rows, Layout::Ordinary, "on a thread that is not the instance's");
    findings::begin_case(&case);
    ExecutedBatch { case, rows, outcomes: instance.execute_on_this_thread(&[request]) }
}

/// Executes requests as one batch.
pub fn execute_batch(
    instance: &Instance,
    requests: &[Request],
    layout: Layout,
    what: &str,
) -> ExecutedBatch {
    execute_with(instance, requests, layout, what, |_| {})
}

/// The same; `meanwhile` runs during the execution.
pub fn execute_with(
    instance: &Instance,
    requests: &[Request],
    layout: Layout,
    what: &str,
    meanwhile: impl FnOnce(&InFlight<'_>),
) -> ExecutedBatch {
    let rows: Vec<u32> = requests.iter().map(|request| request.batch_size).collect();
    let case = described(&rows, layout, what);
    findings::begin_case(&case);
    let outcomes = instance.execute_with(requests, layout, meanwhile);
    ExecutedBatch { case, rows, outcomes }
}

/// `3 requests of 2, 1 and 2 rows`.
fn described(rows: &[u32], layout: Layout, what: &str) -> String {
    let mut text = match rows {
        [1] => "one request".to_owned(),
        [n] => format!("one request of {n} rows"),
        [first, rest @ ..] if rest.iter().all(|n| n == first) => {
            format!("{} requests of {} each", rows.len(), count_text(*first, "row"))
        }
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(u32::to_string).collect();
            format!("{} requests of {} and {last} rows", rows.len(), first.join(", "))
        }
        [] => "no request".to_owned(),
    };
    text += match layout {
        Layout::Ordinary => "",
        Layout::Unaligned => " whose inputs have the least alignment",
        Layout::Parts => " whose inputs are in two parts",
        Layout::Protected => " whose inputs are in read-only memory",
    };
    if !what.is_empty() {
        text += &format!(" {what}");
    }
    text
}
