//! One instance: an OS thread that opens the backend instance, takes batches and executes them.
//!
//! The thread runs no async code. It ends when the queue is closed and empty. The backend instance
//! is closed on the same thread, and the model with its last instance.

use super::group::InstancePlan;
use super::inline_executor::InlineExecutor;
use super::load_cancel::LoadCancel;
use super::load_progress::LoadProgress;
use super::warmup::WarmupSample;
use super::worker_batches::BatchContext;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::{OutstandingExecutions, VersionStats};
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::model::{BackendInstance, BackendModel};
use trtserver_plugin_host::{AnyThread, DEFAULT_STACK, TensorNames};
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::ModelSignature;
use trtserver_scheduler::inline::SharedInstance;
use trtserver_scheduler::limiter::LimiterMember;
use trtserver_scheduler::{RequestBatch, RequestQueue};

/// Everything one instance thread needs.
pub struct InstanceWorker {
    pub plan: InstancePlan,
    /// Index among the model's instances; also its shard of the statistics.
    pub ordinal: usize,
    pub threads: u32,
    /// Share of the GPU's memory that may be in use when the instance is opened.
    pub load_limit: Option<f64>,
    pub version: i64,
    pub model: Arc<BackendModel>,
    pub signature: Arc<ModelSignature>,
    pub names: Arc<TensorNames>,
    pub queue: Arc<RequestQueue>,
    /// Its executions need resources. It leaves the rate limiter with this.
    pub limit: Option<Arc<LimiterMember>>,
    /// Runs before the first request.
    pub warmup: Arc<[WarmupSample]>,
    /// Time limit of the warm-up.
    pub warmup_limit: Option<Duration>,
    /// Breaks off the warm-up.
    pub cancel: Arc<LoadCancel>,
    /// Progress of the load; `None` once the instance is open.
    pub progress: Option<Arc<LoadProgress>>,
    pub stats: Arc<VersionStats>,
    /// A batch waits for all responses of the one before, since it may contain the next requests of
    /// the same sequences.
    pub one_at_a_time: bool,
    /// The configuration asks for `eager_batching`.
    pub eager: bool,
    /// Requests get any number of responses, whose times are counted.
    pub decoupled: bool,
    /// How long a closing instance waits for outstanding requests.
    pub drain: Duration,
    /// The last number of a batch of all instances, for traces.
    pub batch_numbers: Arc<AtomicU64>,
    /// Dropped last, after the instance, its model and its streams, as the signal that all are
    /// closed.
    pub open: Arc<dyn Any + Send + Sync>,
}

impl InstanceWorker {
    /// Starts the thread, which reports through `opened` once, whether it is ready to execute, and
    /// which sizes of batches it is prepared for.
    ///
    /// # Errors
    /// The system starts no further thread.
    pub fn spawn(self, opened: Sender<Result<Vec<BatchSize>>>) -> Result<()> {
        let stack = self.model.backend.facts.stack_bytes;
        std::thread::Builder::new()
            .name(self.thread_name())
            .stack_size(stack)
            .spawn(move || self.run(opened))
            .map(drop)
            .map_err(|e| Error::internal(format!("the thread of an instance did not start: {e}")))
    }

    pub(super) fn thread_name(&self) -> String {
        format!("{}/{}#{}", self.signature.model, self.version, self.ordinal)
    }

    fn run(mut self, opened: Sender<Result<Vec<BatchSize>>>) {
        // The process may end at this signal, so it is given after the streams are destroyed.
        let _open = Arc::clone(&self.open);
        // The streams outlive the instance that uses them.
        let (_gpu, instance) = match self.open() {
            Ok(open) => open,
            Err(e) => {
                let _ = opened.send(Err(e));
                return;
            }
        };
        self.progress = None;
        let _ = opened.send(Ok(instance.batch_sizes().to_vec()));
        // The loader waits for all instances. If one of them panics, the channel must close.
        drop(opened);
        self.serve(instance);
    }

    fn serve(self, instance: BackendInstance) {
        // A network thread has neither this thread's niceness nor its cores nor its streams nor a
        // larger stack.
        let inline = self.plan.nice == load_priority::server_nice()
            && !self.is_bound()
            && self.plan.kind != Kind::Gpu
            && self.model.backend.facts.stack_bytes <= DEFAULT_STACK;
        match AnyThread::new(instance) {
            Ok(instance) if inline => self.serve_inline(instance),
            Ok(mut instance) => self.serve_here(instance.get_mut()),
            Err(mut instance) => self.serve_here(&mut instance),
        }
    }

    /// Serves on this thread alone.
    fn serve_here(&self, instance: &mut BackendInstance) {
        let mut context = self.batch_context();
        let mut batch = RequestBatch::default();
        let _guard = PanicGuard(Arc::clone(&self.queue));
        if let Some(gpu) = self.copies_ahead(instance) {
            self.serve_copying_ahead(instance, &gpu, &mut context);
        }
        while self.queue.take(self.ordinal, &mut batch) {
            self.run_batch(instance, &mut context, &mut batch, true);
            context.outstanding.wait_at_most(self.max_outstanding(), None);
        }
        self.drain_outstanding(&context.outstanding);
        self.close_alone(instance);
    }

    /// Serves on this thread, and on network threads while this one sleeps.
    fn serve_inline(self, instance: AnyThread) {
        let (queue, ordinal) = (Arc::clone(&self.queue), self.ordinal);
        let _guard = PanicGuard(Arc::clone(&queue));
        let context = self.batch_context();
        let executor = InlineExecutor { instance, context, worker: self };
        if let Some(mut executor) = SharedInstance::serve(queue, ordinal, executor) {
            executor.worker.drain_outstanding(&executor.context.outstanding);
            executor.worker.close_alone(executor.instance.get_mut());
        }
    }

    /// Closes an isolated instance in its process if the others of the version serve on.
    fn close_alone(&self, instance: &mut BackendInstance) {
        if let BackendInstance::Isolated(remote) = instance
            && !self.queue.is_closed()
        {
            remote.close_alone();
        }
    }

    fn batch_context(&self) -> BatchContext {
        let context = BatchContext::default();
        context.outstanding.on_broken(self.broken_observer());
        context
    }

    /// Takes the instance out of service when it is called with the reason.
    pub(super) fn broken_observer(&self) -> impl Fn(&str) + Send + Sync + 'static {
        let (queue, health) = (Arc::downgrade(&self.queue), self.model.health());
        let (model, instance) = (self.signature.model.clone(), self.plan.name.clone());
        let ordinal = self.ordinal;
        move |reason| {
            let Some(queue) = queue.upgrade() else { return };
            let text = format!(
                "model '{model}' is out of service: its instance '{instance}' is broken: {reason}"
            );
            if queue.retire(ordinal, &Error::unavailable(&*text)) {
                tracing::error!("{text}");
                health.fail(text);
            } else {
                tracing::error!(
                    "instance '{instance}' of model '{model}' is broken and executes no further request: {reason}"
                );
            }
        }
    }

    /// Executions that may be outstanding when the next one begins.
    pub(super) fn max_outstanding(&self) -> usize {
        if self.one_at_a_time {
            return 0;
        }
        self.model.backend.facts.max_in_flight_for(self.plan.kind, self.decoupled) - 1
    }

    pub(super) fn drain_outstanding(&self, outstanding: &OutstandingExecutions) {
        if !outstanding.wait_at_most(0, Some(self.drain)) {
            tracing::error!(
                "instance {}: the backend still has outstanding requests after {:?}",
                self.plan.name,
                self.drain
            );
        }
    }
}

/// Takes the queue out of service when a thread of the instance panics: requests must not wait for it.
pub(super) struct PanicGuard(pub Arc<RequestQueue>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.take_out_of_service();
        }
    }
}
