//! Phase times of the batch that this thread executes, as far as its backend has written them.

use std::cell::Cell;
use std::ptr::null;
use std::sync::Arc;
use trtserver_base::stats::BatchExecution;
use trtserver_plugin_api::abi::request::Batch;

thread_local! {
    /// The batch that this thread executes and its execution; null outside of `execute`.
    static EXECUTING: Cell<(*const Batch, *const BatchExecution)> =
        const { Cell::new((null(), null())) };
}

/// Runs `execute` with `batch`, which belongs to `execution`. Both live until this returns.
pub fn time_execution<T>(
    batch: *mut Batch,
    execution: *const BatchExecution,
    execute: impl FnOnce(*mut Batch) -> T,
) -> T {
    EXECUTING.set((batch, execution));
    let result = execute(batch);
    EXECUTING.set((null(), null()));
    result
}

/// This thread executes a part of its batch from here on, which has times of its own. False: it
/// does not execute this batch.
pub fn begin_part(batch: *const Batch, part: &Arc<BatchExecution>) -> bool {
    let (executing, _) = EXECUTING.get();
    if !std::ptr::eq(executing, batch) {
        return false;
    }
    // SAFETY: set by `during`, whose caller keeps the batch and gave a mutable pointer; only this
    // very thread writes it.
    if let Some(batch) = unsafe { executing.cast_mut().as_mut() } {
        (batch.exec_start_ns, batch.compute_start_ns) = (0, 0);
        (batch.compute_end_ns, batch.exec_end_ns) = (0, 0);
    }
    EXECUTING.set((executing, Arc::as_ptr(part)));
    true
}

/// Passes the times written so far on to `execution`, if this thread executes its batch.
pub fn note_times(execution: &Arc<BatchExecution>) {
    if let Some([_, compute, output, _]) = execution_times(execution) {
        execution.note_times(compute, output);
    }
}

/// Start, compute, output and end of the batch of `execution`, 0 where the backend has not written
/// yet. `None` on any thread but the one that executes it.
pub fn execution_times(execution: &Arc<BatchExecution>) -> Option<[u64; 4]> {
    let (batch, executing) = EXECUTING.get();
    // SAFETY: set by `during`, whose caller keeps the batch; only the backend's `execute` on this
    // very thread writes it.
    let batch = unsafe { batch.as_ref() }?;
    std::ptr::eq(executing, Arc::as_ptr(execution)).then_some([
        batch.exec_start_ns,
        batch.compute_start_ns,
        batch.compute_end_ns,
        batch.exec_end_ns,
    ])
}
