//! Executes the batches of a worker: what is counted, traced and granted around the backend's call.

use super::worker::InstanceWorker;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use trtserver_base::clock::now_ns;
use trtserver_base::request_id::enter_all;
use trtserver_base::stats::{BatchExecution, ExecutionHold, OutstandingExecutions};
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_host::batch::gpu::InputCopies;
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::model::BackendInstance;
use trtserver_plugin_host::{FrameHold, Runner};
use trtserver_request::InferRequest;
use trtserver_request::completion::InlineCompletion;
use trtserver_request::request_tracing;
use trtserver_request::response_times::TimedSink;
use trtserver_scheduler::RequestBatch;
use trtserver_scheduler::limiter::ExecutionGrant;

/// Reusable state of an instance for executing batches.
#[derive(Default)]
pub(super) struct BatchContext {
    pub hold: FrameHold,
    pub outstanding: Arc<OutstandingExecutions>,
    last: Option<Arc<BatchExecution>>,
    /// Inputs that are in GPU memory already, or are being copied there.
    pub(super) copied: Option<InputCopies>,
    /// The copy thread may take the next batch during the run.
    pub(super) standby: bool,
    /// Why the batch was closed: an index of `CLOSE_REASONS`.
    close_reason: Option<usize>,
    /// The resources of the next execution.
    grant: Option<Arc<ExecutionGrant>>,
}

impl InstanceWorker {
    /// Executes what was taken from the queue. The thread must not wait long unless it `may_wait`.
    pub(super) fn run_batch(
        &self,
        instance: &mut BackendInstance,
        context: &mut BatchContext,
        batch: &mut RequestBatch,
        may_wait: bool,
    ) {
        if let Some(closed) = batch.close_reason {
            let (requests, rows) = count_requests(&batch.requests);
            self.stats.batch(self.ordinal, closed as usize, requests, rows);
        }
        let _entered = enter_all(request_tracing::log_ids(&batch.requests));
        // A niced thread would hold up the connection while others have the processor.
        let completes = may_wait
            && batch.none_waiting
            && batch.requests.len() == 1
            && self.plan.nice == load_priority::server_nice()
            && !self.decoupled;
        let _completes = completes.then(InlineCompletion::grant);
        context.close_reason = batch.close_reason.map(|reason| reason as usize);
        let _executing = batch.grant.as_ref().map(ExecutionGrant::enter);
        context.grant = batch.grant.clone();
        let requests = &mut batch.requests;
        let execute = || self.execute(instance, context, requests, may_wait);
        if catch_unwind(AssertUnwindSafe(execute)).is_err() {
            self.runner().fail_after_panic(&mut context.hold, &mut batch.requests);
        }
    }

    /// Executes `requests` as one batch; the backend may respond later.
    pub(super) fn execute(
        &self,
        instance: &mut BackendInstance,
        context: &mut BatchContext,
        requests: &mut Vec<InferRequest>,
        may_wait: bool,
    ) {
        // Null requests are executed too.
        let rows = requests.iter().map(|r| r.context().batch).sum();
        let count = requests.len() as u32;
        let BatchContext { hold, outstanding, last, close_reason, copied, standby, grant } =
            context;
        let grant = grant.take().map(|grant| grant as Arc<dyn ExecutionHold>);
        let padding = padding_rows(instance.batch_sizes(), rows);
        let new = || {
            let new = BatchExecution::new(self.ordinal, count, rows, now_ns(), outstanding);
            new.with_padding(padding).holding(grant)
        };
        let execution = BatchExecution::next(last, new);
        let mut traced = false;
        for request in requests.iter() {
            request.responder.executed_in(Arc::clone(&execution));
            traced |= request.responder.trace().is_some();
        }
        if self.decoupled {
            requests.iter().for_each(|request| self.time_responses(request, execution.start_ns));
        }
        let id = self.batch_numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let name = &self.plan.name;
        let _scope =
            traced.then(|| request_tracing::trace_batch(requests, id, name, *close_reason));
        match instance {
            BackendInstance::Local(here) => {
                if !self.runner().place_inputs(here, requests, copied.take()) {
                    return;
                }
                // Not before, because copies are made in the order in which they are queued.
                if *standby {
                    self.queue.begin_standby(self.ordinal);
                }
                self.runner().execute(here, hold, id, requests, &execution)
            }
            BackendInstance::Isolated(remote) => remote.execute(id, requests, may_wait),
        }
    }

    fn time_responses(&self, request: &InferRequest, start_ns: u64) {
        if !request.context().is_counted() {
            return;
        }
        request.responder.wrap_sink(|sink| {
            let (stats, shard) = (Arc::clone(&self.stats), self.ordinal);
            let received_ns = request.context().received_ns;
            TimedSink { sink, stats, shard, received_ns, last_ns: start_ns, index: 0 }.into()
        });
    }

    pub(super) fn runner(&self) -> Runner<'_> {
        Runner { name: &self.plan.name, signature: &self.signature, names: &self.names }
    }
}

/// What an instance that is prepared for these sizes adds to a batch.
fn padding_rows(sizes: &[BatchSize], rows: u32) -> u32 {
    // They are ascending.
    sizes.iter().find(|size| size.rows >= rows).map_or(0, |size| size.rows - rows)
}

/// Requests and their rows, without null and warm-up requests.
fn count_requests(requests: &[InferRequest]) -> (u32, u32) {
    let counted = requests.iter().filter(|r| r.context().is_counted());
    counted.fold((0, 0), |(requests, rows), r| (requests + 1, rows + r.context().batch))
}
