//! Executes a batch: several requests in one run where the framework can, else each request by itself.

use crate::fault::Fault;
use trtserver_plugin_api::author::{Batch, Error, Request};

/// An instance of a framework's model.
pub trait Executor {
    /// Which requests of the batch have failed; keeps its capacity between batches.
    fn failed(&mut self) -> &mut Vec<bool>;

    /// Executes all requests that have not failed in one run; false = execute each by itself.
    ///
    /// # Errors
    /// All requests fail with the error.
    fn execute_merged(&mut self, batch: &Batch<'_>) -> Result<bool, Error>;

    /// Executes one request, and sends its response. Marks the start of the computation unless `computing` is set.
    ///
    /// # Errors
    /// The request fails with the error.
    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), Fault>;

    /// Frees what belongs to one run.
    fn clear(&mut self);
}

/// Executes the requests of a batch that are not cancelled.
///
/// # Errors
/// As [`Executor::execute_merged`].
pub fn execute(executor: &mut impl Executor, batch: &Batch<'_>) -> Result<(), Error> {
    batch.mark_exec_start();
    let failed = executor.failed();
    failed.clear();
    failed.extend(batch.requests().map(fail_if_cancelled));
    let remaining = failed.iter().filter(|failed| !**failed).count();
    if remaining < 2 || !executor.execute_merged(batch)? {
        let mut computing = false;
        for (nth, request) in batch.requests().enumerate() {
            if executor.failed()[nth] || fail_if_cancelled(request) {
                continue;
            }
            let result = executor.execute_one(request, batch, &mut computing);
            executor.clear();
            if let Err(fault) = result {
                request.fail(fault.into());
            }
        }
    }
    batch.mark_exec_end();
    Ok(())
}

/// True: the request was cancelled, and has failed now.
fn fail_if_cancelled(request: Request<'_>) -> bool {
    let cancelled = request.is_cancelled();
    if cancelled {
        request.fail(Error::cancelled("the request was cancelled before it ran"));
    }
    cancelled
}
