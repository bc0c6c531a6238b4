//! Runs a batch: makes the request handles, calls `TRITONBACKEND_ModelInstanceExecute`, and settles who has the requests then.

use crate::fault::Result;
use crate::handles::{self, Live, create};
use crate::host::host;
use crate::loader::entries::taken;
use crate::objects::instance::Instance;
use crate::objects::reply::Reply;
use crate::objects::request::{HostRequest, Request, Source, slice};
use std::cell::Cell;
use std::ptr;
use trtserver_plugin_api::abi::request::Batch;

thread_local! {
    /// The instance that this thread executes, and its batch; null outside of `execute`.
    static EXECUTING: Cell<(*mut Instance, *mut Batch)> =
        const { Cell::new((ptr::null_mut(), ptr::null_mut())) };
}

/// Lists that an instance reuses for its batches.
#[derive(Default)]
pub struct BatchLists {
    requests: Vec<*mut Request>,
    replies: Vec<Live<Reply>>,
}

/// Executes a batch. An error means that the host has all its requests.
///
/// # Safety
/// The batch was just passed to `execute`, and the lists are of this instance, which executes one batch at a time.
pub unsafe fn execute(
    instance: Live<Instance>,
    lists: &mut BatchLists,
    batch: *mut Batch,
) -> Result<()> {
    let BatchLists { requests, replies } = lists;
    // SAFETY: the host's batch and its array are valid during `execute`, each request until its release.
    unsafe {
        for view in slice((*batch).requests, (*batch).n_requests) {
            let reply = Reply::create((**view).responder, (**view).cancelled);
            let source = Source::Host(HostRequest::new(*view, reply));
            requests.push(create(Request { source }).raw());
            replies.push(reply);
        }
    }
    EXECUTING.set((instance.raw(), batch));
    let entry = instance.model.backend.entries.execute;
    let (list, n) = (requests.as_ptr(), requests.len() as u32);
    let returned = instance.scope.enter(|| {
        // SAFETY: as the backend interface says: live handles, and an array valid during the call.
        unsafe { entry(instance.raw(), list, n) }
    });
    EXECUTING.set((ptr::null_mut(), ptr::null_mut()));
    let executed = taken("TRITONBACKEND_ModelInstanceExecute", returned);
    match &executed {
        Ok(()) => replies.drain(..).for_each(Live::<Reply>::executed),
        Err(_) => {
            for (request, reply) in requests.iter().zip(replies.drain(..)) {
                // The backend may have released it all the same.
                if let Ok(Request { source: Source::Host(mut request) }) = handles::free(*request) {
                    request.free_inputs();
                    request.reply.release();
                }
                reply.taken_back();
            }
        }
    }
    requests.clear();
    executed
}

/// Times of an execution, in nanoseconds of CLOCK_MONOTONIC.
pub struct Times {
    pub exec_start_ns: u64,
    pub compute_start_ns: u64,
    pub compute_end_ns: u64,
    pub exec_end_ns: u64,
}

/// The batch that this thread executes on an instance.
fn batch_of(instance: Live<Instance>) -> Option<&'static mut Batch> {
    let (executing, batch) = EXECUTING.get();
    // SAFETY: set by `execute` for the time of the call; the times of a batch are for its executing thread, which this is.
    unsafe { batch.as_mut() }.filter(|_| ptr::eq(executing, instance.raw()))
}

/// The backend reports the batch.
pub fn report_batch(instance: Live<Instance>, times: &Times) {
    if let Some(batch) = batch_of(instance) {
        batch.exec_start_ns = times.exec_start_ns;
        batch.compute_start_ns = times.compute_start_ns;
        batch.compute_end_ns = times.compute_end_ns;
        batch.exec_end_ns = times.exec_end_ns;
    }
}

/// The backend reports one request of the batch: what it says of the batch as a whole comes later, if at all.
pub fn report_request(instance: Live<Instance>, times: &Times) {
    if batch_of(instance).is_some_and(|batch| batch.exec_end_ns == 0) {
        report_batch(instance, times);
    }
}

/// A buffer for an output is asked for. Backends report times after they have sent their responses, with which the host counts
/// them; so the first buffer is where computing ends, until the backend says better.
pub fn outputs_begin() {
    let (_, batch) = EXECUTING.get();
    // SAFETY: as in `batch_of`.
    if let Some(batch) = unsafe { batch.as_mut() }
        && batch.compute_end_ns == 0
        && let Ok(host) = host()
    {
        // SAFETY: an entry without conditions.
        batch.compute_end_ns = unsafe { (host.now_ns)() };
    }
}
