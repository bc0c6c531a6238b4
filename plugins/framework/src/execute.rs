//! Executes a batch: several requests in one run where the framework can, else each request by
//! itself.

use crate::fault::PluginFault;
use crate::merge::have_equal_inputs;
use trtserver_plugin_api::author::{Batch, Error, Request};

/// An instance of a framework's model.
pub trait Executor {
    /// Which requests of the batch have failed; keeps its capacity between batches.
    fn failed(&mut self) -> &mut Vec<bool>;

    /// Ragged or batch inputs: the requests of a batch are executed in one run or fail together.
    fn whole_batch(&self) -> bool;

    /// Several requests may be executed in one run: the model has a batch dimension, and no run has
    /// shown that outputs lack it.
    fn can_merge(&self) -> bool;

    /// Prepares one run for all requests that have not failed; false = they request no output.
    ///
    /// # Errors
    /// A request is invalid.
    fn prepare_merged(&mut self, batch: &Batch<'_>) -> Result<bool, PluginFault>;

    /// Executes the run that was prepared. Returns why it failed, if it did: executing the requests
    /// one by one finds the one that caused it.
    ///
    /// # Errors
    /// All requests fail with the error.
    fn run_merged(&mut self, batch: &Batch<'_>) -> Result<Option<PluginFault>, PluginFault>;

    /// Executes one request, and sends its response. Marks the start of the computation unless
    /// `computing` is set.
    ///
    /// # Errors
    /// The request fails with the error.
    fn execute_one(
        &mut self,
        request: Request<'_>,
        batch: &Batch<'_>,
        computing: &mut bool,
    ) -> Result<(), PluginFault>;

    /// Frees what belongs to one run.
    fn clear(&mut self);
}

/// Executes the requests of a batch that are not cancelled.
///
/// # Errors
/// The errors of [`Executor::run_merged`].
pub fn execute_batch(executor: &mut impl Executor, batch: &Batch<'_>) -> Result<(), Error> {
    batch.mark_exec_start();
    let failed = executor.failed();
    failed.clear();
    failed.extend(batch.requests().map(fail_if_cancelled));
    let remaining = failed.iter().filter(|failed| !**failed).count();
    if executor.whole_batch() {
        if remaining > 0 {
            let executed = execute_whole(executor, batch);
            executor.clear();
            executed?;
        }
    } else if remaining < 2 || !execute_merged(executor, batch)? {
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

/// Executes all requests that have not failed in one run; false = execute each by itself, so that
/// an invalid one gets its own error.
fn execute_merged(executor: &mut impl Executor, batch: &Batch<'_>) -> Result<bool, Error> {
    if !executor.can_merge() || !have_equal_inputs(batch) {
        return Ok(false);
    }
    let merged = match executor.prepare_merged(batch) {
        Ok(true) => executor.run_merged(batch).map(|fault| fault.is_none()),
        Ok(false) | Err(_) => Ok(false),
    };
    executor.clear();
    Ok(merged?)
}

/// Executes all requests in one run, cancelled ones among them: batch inputs describe them, too.
fn execute_whole(executor: &mut impl Executor, batch: &Batch<'_>) -> Result<(), Error> {
    if executor.prepare_merged(batch)? {
        return match executor.run_merged(batch)? {
            None => Ok(()),
            Some(fault) => Err(fault.into()),
        };
    }
    // No output was requested.
    for (nth, request) in batch.requests().enumerate() {
        if !executor.failed()[nth] {
            request.new_response()?.send()?;
        }
    }
    Ok(())
}

/// True: the request was cancelled, and has failed now.
pub fn fail_if_cancelled(request: Request<'_>) -> bool {
    let cancelled = request.is_cancelled();
    if cancelled {
        request.fail(Error::cancelled("the request was cancelled before it ran"));
    }
    cancelled
}
