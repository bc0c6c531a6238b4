//! Runs a batch: makes the request handles, calls `TRITONBACKEND_ModelInstanceExecute`, and then
//! decides whether the backend or the host owns each request.

use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object};
use crate::host::{self, host_table};
use crate::loader::entries::take_entry_error;
use crate::objects::instance::InstanceObject;
use crate::objects::reply::RequestReply;
use crate::objects::request::{HostRequest, RequestObject, RequestSource, view_slice};
use std::cell::Cell;
use std::ptr;
use trtserver_plugin_api::abi::request::Batch;

thread_local! {
    /// The instance that this thread executes, and its batch; null outside of `execute`.
    static EXECUTING: Cell<(*mut InstanceObject, *mut Batch)> =
        const { Cell::new((ptr::null_mut(), ptr::null_mut())) };
}

/// Lists that an instance reuses for its batches.
#[derive(Default)]
pub struct BatchLists {
    requests: Vec<*mut RequestObject>,
    replies: Vec<LiveObject<RequestReply>>,
}

/// Executes a batch. An error means that the host has all its requests.
///
/// # Safety
/// The batch was just passed to `execute`, and the lists are of this instance, which executes one
/// batch at a time.
pub unsafe fn execute_batch(
    instance: LiveObject<InstanceObject>,
    lists: &mut BatchLists,
    batch: *mut Batch,
) -> Result<()> {
    let BatchLists { requests, replies } = lists;
    // SAFETY: the host's batch and its array are valid during `execute`, each request until its
    // release.
    unsafe {
        for view in view_slice((*batch).requests, (*batch).n_requests) {
            let reply = RequestReply::create((**view).responder, (**view).cancelled);
            let source = RequestSource::Host(HostRequest::new(*view, reply));
            requests.push(create_object(RequestObject { source }).raw());
            replies.push(reply);
        }
    }
    let mut executed = Ok(());
    let mut first = 0;
    while first < requests.len() {
        let count = match instance.model.strategy.get() {
            Some(strategy) => instance.scope.enter(|| strategy.count(&requests[first..])),
            None => Ok(requests.len()),
        };
        // What cannot be put into a batch fails alone.
        let part = first..first + count.as_ref().copied().unwrap_or(1);
        let whole = part.len() == requests.len();
        let begun = count.and_then(|n| if whole { Ok(()) } else { begin_part(batch, first, n) });
        let (these, replies) = (&requests[part.clone()], &replies[part.clone()]);
        let result = begun.and_then(|()| call_backend(instance, batch, these));
        match result {
            Ok(()) => replies.iter().copied().for_each(LiveObject::<RequestReply>::executed),
            Err(fault) if whole && are_untouched(these, replies) => {
                take_back(these, replies, None);
                executed = Err(fault);
            }
            Err(fault) => take_back(these, replies, Some(&fault)),
        }
        first = part.end;
    }
    requests.clear();
    replies.clear();
    executed
}

/// Has the statistics count a part of the batch as an execution.
fn begin_part(batch: *mut Batch, first: usize, n: usize) -> Result<()> {
    let parts = host::batch_parts().ok_or_else(|| {
        TritonFault::unsupported(
            "this server cannot execute a batch in parts, as the model's batching strategy demands",
        )
    })?;
    // SAFETY: the batch that this thread executes.
    unsafe { host::take_error(host_table()?, (parts.begin)(batch, first as u32, n as u32)) }
}

/// Calls the backend with these requests.
fn call_backend(
    instance: LiveObject<InstanceObject>,
    batch: *mut Batch,
    requests: &[*mut RequestObject],
) -> Result<()> {
    EXECUTING.set((instance.raw(), batch));
    let entry = instance.model.backend.entries.execute;
    let (list, n) = (requests.as_ptr(), requests.len() as u32);
    let returned = instance.scope.enter(|| {
        // SAFETY: the backend interface requires live handles, and an array that is valid during
        // the call; instance and requests are live until it returns.
        unsafe { entry(instance.raw(), list, n) }
    });
    EXECUTING.set((ptr::null_mut(), ptr::null_mut()));
    take_entry_error("TRITONBACKEND_ModelInstanceExecute", returned)
}

/// Whether the backend has left the requests as they were. Only then may the host be told that they
/// were refused.
fn are_untouched(requests: &[*mut RequestObject], replies: &[LiveObject<RequestReply>]) -> bool {
    let alive = |request: &*mut RequestObject| handles::get_object(*request).is_ok();
    requests.iter().all(alive) && replies.iter().all(|reply| reply.is_untouched())
}

/// The backend gives requests back. Without a fault the host ends them all, when it gets the error
/// of the batch; with one they end here.
fn take_back(
    requests: &[*mut RequestObject],
    replies: &[LiveObject<RequestReply>],
    fault: Option<&TritonFault>,
) {
    for (request, reply) in requests.iter().zip(replies) {
        if let Some(fault) = fault {
            reply.take_back(fault);
        }
        // The backend may have released it all the same.
        if let Ok(RequestObject { source: RequestSource::Host(mut request) }) =
            handles::free_object(*request)
        {
            request.free_parts();
            if fault.is_some()
                && let Ok(host) = host_table()
            {
                // SAFETY: released once, here; the view is not used again.
                unsafe { (host.request_release)(request.view().handle, ptr::null_mut()) };
            }
            request.reply.release();
        }
        match fault {
            Some(_) => reply.executed(),
            None => reply.taken_back(),
        }
    }
}

/// Times of an execution, in nanoseconds of CLOCK_MONOTONIC.
pub struct ExecutionTimes {
    pub exec_start_ns: u64,
    pub compute_start_ns: u64,
    pub compute_end_ns: u64,
    pub exec_end_ns: u64,
}

/// The batch that this thread executes on an instance.
fn current_batch(instance: LiveObject<InstanceObject>) -> Option<&'static mut Batch> {
    let (executing, batch) = EXECUTING.get();
    // SAFETY: set by `execute` for the time of the call; the times of a batch are for its executing
    // thread, which this is.
    unsafe { batch.as_mut() }.filter(|_| ptr::eq(executing, instance.raw()))
}

/// The backend reports the batch.
pub fn report_batch(instance: LiveObject<InstanceObject>, times: &ExecutionTimes) {
    if let Some(batch) = current_batch(instance) {
        batch.exec_start_ns = times.exec_start_ns;
        batch.compute_start_ns = times.compute_start_ns;
        batch.compute_end_ns = times.compute_end_ns;
        batch.exec_end_ns = times.exec_end_ns;
    }
}

/// The backend reports one request of the batch: what it says of the batch as a whole comes later,
/// if at all.
pub fn report_request(instance: LiveObject<InstanceObject>, times: &ExecutionTimes) {
    if current_batch(instance).is_some_and(|batch| batch.exec_end_ns == 0) {
        report_batch(instance, times);
    }
}

/// A buffer for an output is asked for. Backends report times after they have sent their responses,
/// with which the host counts them; so the first buffer is where computing ends, until the backend
/// says better.
pub fn outputs_begin() {
    let (_, batch) = EXECUTING.get();
    // SAFETY: `execute` sets the batch for the time of the call, and its times are for the
    // executing thread, which this is.
    if let Some(batch) = unsafe { batch.as_mut() }
        && batch.compute_end_ns == 0
        && let Ok(host) = host_table()
    {
        // SAFETY: an entry without conditions.
        batch.compute_end_ns = unsafe { (host.now_ns)() };
    }
}
