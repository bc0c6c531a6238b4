//! Cancelled requests of a batch.

use trtserver_plugin_api::author::{Batch, Error, Request};

/// Fails the cancelled requests; `failed` tells which ones these are. Returns the number of all others.
pub fn fail_cancelled(batch: &Batch<'_>, failed: &mut Vec<bool>) -> usize {
    failed.clear();
    failed.extend(batch.requests().map(fail_if_cancelled));
    failed.iter().filter(|failed| !**failed).count()
}

/// True: the request was cancelled, and has failed now.
pub fn fail_if_cancelled(request: Request<'_>) -> bool {
    let cancelled = request.is_cancelled();
    if cancelled {
        request.fail(Error::cancelled("the request was cancelled before it ran"));
    }
    cancelled
}
