//! One instance: an OS thread that opens the backend instance, takes batches and executes them.
//!
//! The thread runs no async code. It ends when the queue is closed and empty. The backend instance
//! is closed on the same thread, and the model with its last instance.

use super::group::InstancePlan;
use super::load_cancel::LoadCancel;
use super::load_progress::LoadProgress;
use super::priority::set_niceness;
use super::warmup::WarmupSample;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::request_id::enter_all;
use trtserver_base::stats::{BatchExecution, ExecutionHold, OutstandingExecutions, VersionStats};
use trtserver_device::{GpuDevice, InstanceStreams, LostWatch};
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_host::batch::gpu::InputCopies;
use trtserver_plugin_host::child_processes::IsolatedInstance;
use trtserver_plugin_host::load_priority;
use trtserver_plugin_host::load_priority::LowPriority;
use trtserver_plugin_host::model::{BackendInstance, BackendModel};
use trtserver_plugin_host::{
    AnyThread, DEFAULT_STACK, FrameHold, InstanceFacts, Runner, TensorNames,
};
use trtserver_proto::v2::model_instance_group::Kind;
use trtserver_request::completion::InlineCompletion;
use trtserver_request::request_tracing;
use trtserver_request::response_times::TimedSink;
use trtserver_request::{InferRequest, ModelSignature};
use trtserver_scheduler::inline::{InstanceExecutor, SharedInstance};
use trtserver_scheduler::limiter::{ExecutionGrant, LimiterMember};
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

/// Batches that are sent to an isolated model ahead of the one that it executes, if it is fast: the
/// process then need not wait for the next one. A batch that was sent is not given to another
/// instance.
const AHEAD: usize = 15;
/// What a fast execution takes at most.
const FAST_NS: u64 = 100_000;

impl InstanceWorker {
    /// Starts the thread, which reports through `opened` once, whether it is ready to execute, and
    /// which sizes of batches it is prepared for.
    ///
    /// # Errors
    /// The system starts no further thread.
    pub fn spawn(self, opened: Sender<Result<Vec<BatchSize>>>) -> Result<()> {
        let name = format!("{}/{}#{}", self.signature.model, self.version, self.ordinal);
        let stack = self.model.backend.facts.stack_bytes;
        std::thread::Builder::new()
            .name(name)
            .stack_size(stack)
            .spawn(move || self.run(opened))
            .map(drop)
            .map_err(|e| Error::internal(format!("the thread of an instance did not start: {e}")))
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

    fn open(&mut self) -> Result<(WorkerGpu, BackendInstance)> {
        // The process of an isolated model has streams of its own.
        let gpu = self.plan.kind == Kind::Gpu && !self.model.is_isolated();
        let priority = self.plan.priority;
        // First, because threads that the backend starts inherit it.
        let low = LowPriority::inherited(self.plan.nice);
        let nice = match &low {
            Some(_) => self.plan.nice,
            None => set_niceness(self.plan.nice),
        };
        if self.is_bound() {
            self.plan.host_policy.bind_thread()?;
        }
        self.stats.placed(self.ordinal, self.gpu_uuid());
        self.stats.set_decoupled(self.decoupled);
        let streams = InstanceStreams::for_instance(gpu, self.plan.device, priority.stream())?;
        tracing::info!(
            "model '{}' instance {}: nice value {nice}{}{}",
            self.signature.model,
            self.plan.name,
            streams.priority().map_or(String::new(), |p| format!(", stream priority {p}")),
            match self.plan.host_policy.has_settings() {
                true => format!(", {}", self.plan.host_policy.describe()),
                false => String::new(),
            }
        );
        let facts = InstanceFacts {
            name: &self.plan.name,
            kind: self.plan.kind as u32,
            ordinal: self.ordinal as u32,
            device: self.plan.device,
            threads: self.plan.host_policy.limit_threads(self.threads),
            load_limit: self.load_limit,
            max_rows: self.signature.max_batch_size.max(1),
            profiles: &self.plan.profiles,
            secondary_devices: &self.plan.secondary_devices,
            host_policy: &self.plan.host_policy,
            streams: streams.clone(),
            nice: self.plan.nice,
            drain: self.drain,
        };
        let in_process =
            (!self.model.is_isolated()).then(|| self.cancel.enters(&self.model.backend.facts.name));
        let mut instance = BackendInstance::open(&self.model, &facts)?;
        drop(in_process);
        if let BackendInstance::Isolated(remote) = &instance {
            let (queue, ordinal) = (Arc::downgrade(&self.queue), self.ordinal);
            remote.on_sequences_lost(Box::new(move || {
                if let Some(queue) = queue.upgrade() {
                    queue.lose_instance_state(ordinal);
                }
            }));
        }
        self.progress.iter().for_each(|progress| progress.instance_opened());
        // The samples may be large and are not needed afterwards.
        let samples = std::mem::take(&mut self.warmup);
        if !samples.is_empty() {
            self.stats.warmed_up(self.warm_up(&mut instance, &samples)?);
        }
        if low.is_some() {
            drop(low);
            load_priority::restore_started();
        }
        let watch = streams.gpu().map(|gpu| {
            let broken = self.broken_observer();
            let ordinal = gpu.device.ordinal;
            gpu.device
                .context()
                .on_lost(move |reason| broken(&format!("GPU {ordinal} is lost: {reason}")))
        });
        Ok((WorkerGpu { _watch: watch, _streams: streams }, instance))
    }

    /// Whether this thread runs on cores of its own; of an isolated model the thread of its process
    /// does.
    fn is_bound(&self) -> bool {
        self.plan.host_policy.has_settings() && !self.model.is_isolated()
    }

    /// UUID of the instance's GPU, also if another process executes the instance.
    fn gpu_uuid(&self) -> Option<String> {
        let gpu = (self.plan.kind == Kind::Gpu)
            .then(|| trtserver_device::find_gpu(self.plan.device).ok());
        gpu.flatten().map(GpuDevice::uuid_text)
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
        if self.copies_ahead(instance) {
            self.serve_copying_ahead(instance, &mut context);
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
    fn broken_observer(&self) -> impl Fn(&str) + Send + Sync + 'static {
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
        let BatchContext { hold, outstanding, last, close_reason, copied, grant } = context;
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

/// What an instance has on its GPU, if it has one.
struct WorkerGpu {
    /// Dropped first.
    _watch: Option<LostWatch>,
    _streams: InstanceStreams,
}

/// Reusable state of an instance for executing batches.
#[derive(Default)]
pub(super) struct BatchContext {
    pub hold: FrameHold,
    pub outstanding: Arc<OutstandingExecutions>,
    last: Option<Arc<BatchExecution>>,
    /// Inputs that are in GPU memory already, or are being copied there.
    pub(super) copied: Option<InputCopies>,
    /// Why the batch was closed: an index of `CLOSE_REASONS`.
    close_reason: Option<usize>,
    /// The resources of the next execution.
    grant: Option<Arc<ExecutionGrant>>,
}

/// An instance that any thread may execute. Fields are dropped in this order, on the instance's own
/// thread.
struct InlineExecutor {
    instance: AnyThread,
    context: BatchContext,
    worker: InstanceWorker,
}

impl InlineExecutor {
    /// Executions that may be outstanding when the next one begins.
    fn max_outstanding(&self) -> usize {
        if self.sends_ahead() { AHEAD } else { self.worker.max_outstanding() }
    }

    fn sends_ahead(&self) -> bool {
        let worker = &self.worker;
        self.instance.isolated().is_some_and(|remote| {
            worker.queue.is_independent()
                && !worker.one_at_a_time
                && worker.limit.is_none()
                && worker.queue.instances() == 1
                && (1..FAST_NS).contains(&remote.execution_ns())
        })
    }
}

impl InstanceExecutor for InlineExecutor {
    fn execute(&mut self, batch: &mut RequestBatch, may_wait: bool) {
        self.worker.run_batch(self.instance.get_mut(), &mut self.context, batch, may_wait);
    }

    fn is_remote(&self) -> bool {
        self.instance.isolated().is_some()
    }

    fn accepts_ahead(&self) -> bool {
        self.sends_ahead() && self.has_capacity()
    }

    fn collect(&mut self, more: bool) -> Option<u64> {
        let remote = self.instance.isolated()?;
        remote.poll(!more);
        Some(remote.execution_ns())
    }

    fn has_capacity(&self) -> bool {
        !self.instance.isolated().is_some_and(IsolatedInstance::has_delayed)
            && self.context.outstanding.at_most(self.max_outstanding())
    }

    fn wait_for_capacity(&mut self) {
        if let BackendInstance::Isolated(remote) = self.instance.get_mut() {
            remote.send_delayed();
        }
        self.context.outstanding.wait_at_most(self.max_outstanding(), None);
    }
}

/// Takes the queue out of service when the instance's thread panics: requests must not wait for it.
struct PanicGuard(Arc<RequestQueue>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.take_out_of_service();
        }
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
