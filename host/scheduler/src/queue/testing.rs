//! Set-ups for the tests of the queue and of inline execution: real threads and the real clock.

use super::{RequestBatch, RequestQueue, SchedulingPolicy};
use crate::batcher::settings::{BatchingSettings, DynamicSettings};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trtserver_base::clock::now_ns;
use trtserver_base::error::Code;
use trtserver_base::stats::BatchExecution;
use trtserver_base::timer::DeadlineTimer;
use trtserver_request::InferRequest;
use trtserver_request::testing::{RecordedResponses, request_for, signature};

pub const MS: u64 = 1_000_000;

pub fn batching(preferred: &[u32], delay_ns: u64) -> DynamicSettings {
    let batching = BatchingSettings { max_rows: 8, preferred: preferred.into(), delay_ns };
    DynamicSettings { batching: Some(batching), ..Default::default() }
}

pub fn dynamic(settings: DynamicSettings, instances: usize, in_order: bool) -> Arc<RequestQueue> {
    RequestQueue::new(
        SchedulingPolicy::Dynamic(settings),
        &signature(&[2], 8),
        instances,
        in_order,
        DeadlineTimer::leak(),
    )
}

pub fn request(id: &str) -> (InferRequest, RecordedResponses) {
    let (request, _, responses) = request_for(&signature(&[2], 8), id, 1);
    (request, responses)
}

pub fn ids(batch: &RequestBatch) -> Vec<&str> {
    batch.requests.iter().map(|r| &*r.id).collect()
}

/// The error that the client received, if it was one.
pub fn error(responses: &RecordedResponses) -> Option<(Code, String)> {
    let responses = responses.lock();
    responses.first().and_then(|(r, _)| r.as_ref().err().map(|e| (e.code, e.message.clone())))
}

/// An instance that responds to all requests, the first one after 2 ms. Returns the ids of each
/// batch.
pub fn serve(queue: &Arc<RequestQueue>, instance: usize) -> JoinHandle<Vec<Vec<String>>> {
    let queue = Arc::clone(queue);
    std::thread::spawn(move || {
        let (mut batch, mut batches) = (RequestBatch::default(), Vec::new());
        while queue.take(instance, &mut batch) {
            batches.push(batch.requests.iter().map(|r| r.id.clone()).collect());
            for request in batch.requests.drain(..) {
                let execution = BatchExecution::new(0, 1, 1, now_ns(), &Default::default());
                request.responder.executed_in(Arc::new(execution));
                if instance == 0 {
                    std::thread::sleep(Duration::from_millis(2));
                }
                let _ = request.responder.finish(Ok(None));
            }
        }
        batches
    })
}

/// Waits until `done`, for a minute at most.
pub fn wait_until(done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl RequestQueue {
    pub fn has_idle_instance(&self) -> bool {
        self.lock().instances.any_idle()
    }
}
