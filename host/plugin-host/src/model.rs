//! An open model version and its instances, local or isolated.

use super::backend::PluginBackend;
use super::batch::cancel_notifier::CancelNotifier;
use super::batch::frame::FrameHold;
use super::batch::gpu::GpuInstance;
use super::batch_sizes;
use super::crash_report::{self, CrashSubject};
use super::descriptors::{InstanceFacts, InstanceHold, ModelFacts, ModelHold};
use super::host_api::scope::Scope;
use super::isolation::{self, Isolation};
use super::library::table;
use crate::child_processes::{IsolatedInstance, IsolatedModel};
use crate::health::Health;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_base::arena::Arena;
use trtserver_base::cancel_flag::CancelFlag;
use trtserver_base::error::{Error, Result};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::extensions::BatchSize;
use trtserver_plugin_api::abi::types::{InstanceHandle, ModelHandle};

/// Counts a model among the live ones, which shutdown waits for, while it is open.
struct LiveModel(Arc<AtomicUsize>);

impl LiveModel {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(count))
    }
}

impl Drop for LiveModel {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An open model version; closes with its last user.
pub struct BackendModel {
    placement: Placement,
    pub backend: Arc<PluginBackend>,
    /// Declared last: the backend, if this was its last model, is closed before shutdown may go on.
    _live: LiveModel,
}

/// Where a model runs.
enum Placement {
    Local {
        table: &'static BackendTable,
        handle: *mut ModelHandle,
        subject: CrashSubject,
        health: Arc<Health>,
        hold: Box<ModelHold>,
    },
    Isolated(Arc<dyn IsolatedModel>),
}

// SAFETY: models are opened and closed on loader threads and shared by instance threads, by the
// interface.
unsafe impl Send for BackendModel {}
// SAFETY: the interface lets all instance threads use one open model at the same time.
unsafe impl Sync for BackendModel {}

impl BackendModel {
    /// Opens one version of a model, local or isolated. `cancel` breaks off the opening of an
    /// isolated one and of its instances.
    pub fn open(
        backend: &Arc<PluginBackend>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Self>> {
        match isolation::choose_isolation(facts.config, backend.isolation)? {
            Isolation::Process => {
                let remote = backend.child_processes()?.open_model(backend, facts, cancel)?;
                Ok(Self::new(backend, Placement::Isolated(remote)))
            }
            Isolation::None => Self::open_locally(backend, facts, cancel),
        }
    }

    /// As [`BackendModel::open`], always in this process. A backend that reports its progress
    /// learns of `cancel`.
    pub fn open_locally(
        backend: &Arc<PluginBackend>,
        facts: &ModelFacts<'_>,
        cancel: &CancelFlag,
    ) -> Result<Arc<Self>> {
        let opened = backend.opened()?;
        let hold = Box::new(ModelHold::new(facts, &backend.settings, false));
        hold.scope.belongs_to(cancel);
        let (table, mut handle) = (opened.table, null_mut());
        let subject = CrashSubject::new(format!(
            "model '{}' version {}, {}",
            facts.name,
            facts.version,
            backend.subject.text()
        ));
        let entered = subject.enter(&crash_report::MODEL_OPEN);
        // SAFETY: the descriptor lives until `model_close`, in the `BackendModel`.
        let error = unsafe { (table.model_open)(opened.handle, hold.desc(), &mut handle) };
        drop(entered);
        backend.check(error, "model_open", facts.name)?;
        let health = Arc::default();
        Ok(Self::new(backend, Placement::Local { table, handle, subject, health, hold }))
    }

    fn new(backend: &Arc<PluginBackend>, placement: Placement) -> Arc<Self> {
        let live = LiveModel::new(&backend.live_models);
        Arc::new(Self { placement, backend: Arc::clone(backend), _live: live })
    }

    pub fn is_isolated(&self) -> bool {
        matches!(self.placement, Placement::Isolated(_))
    }

    /// The arena for inputs of an isolated model: network threads receive tensors there, which
    /// saves a copy.
    pub fn arena(&self) -> Option<Arc<Arena>> {
        match &self.placement {
            Placement::Local { .. } => None,
            Placement::Isolated(remote) => Some(remote.input_arena()),
        }
    }

    /// The load has ended: the process of an isolated model serves at its own priority from now on.
    pub fn end_low_priority(&self) {
        if let Placement::Isolated(remote) = &self.placement {
            remote.end_low_priority();
        }
    }

    /// Whether the model serves.
    pub fn health(&self) -> Arc<Health> {
        match &self.placement {
            Placement::Local { health, .. } => Arc::clone(health),
            Placement::Isolated(remote) => remote.health(),
        }
    }
}

impl Drop for BackendModel {
    fn drop(&mut self) {
        if let Placement::Local { table, handle, subject, hold, .. } = &self.placement {
            hold.scope.nested.close();
            let _entered = subject.enter(&crash_report::MODEL_CLOSE);
            // SAFETY: every instance holds the model, so none is left.
            unsafe { (table.model_close)(*handle) };
        }
    }
}

/// An open instance. It stays on the thread that opened it, unless it becomes [`AnyThread`].
pub enum BackendInstance {
    Local(LocalInstance),
    Isolated(Box<dyn IsolatedInstance>),
}

impl BackendInstance {
    /// Opens an instance on this thread, or in the child process.
    pub fn open(model: &Arc<BackendModel>, facts: &InstanceFacts<'_>) -> Result<Self> {
        match &model.placement {
            Placement::Local { table, handle, subject, hold, .. } => {
                let parent = (*handle, &*hold.scope);
                LocalInstance::open(model, table, parent, subject, facts).map(Self::Local)
            }
            Placement::Isolated(remote) => {
                Arc::clone(remote).open_instance(facts).map(Self::Isolated)
            }
        }
    }

    /// The sizes that it is prepared for, ascending; empty: any.
    pub fn batch_sizes(&self) -> &[BatchSize] {
        match self {
            Self::Local(here) => here.batch_sizes(),
            Self::Isolated(remote) => remote.batch_sizes(),
        }
    }
}

/// Refuses an instance on a GPU of whose memory too much is in use.
fn check_load_limit(facts: &InstanceFacts<'_>) -> Result<()> {
    let Some((limit, gpu)) = facts.load_limit.zip(facts.streams.gpu()) else { return Ok(()) };
    let (free, total) = gpu.device.memory_info()?;
    let used = total.saturating_sub(free);
    if used as f64 <= total as f64 * limit {
        return Ok(());
    }
    let device = facts.device;
    Err(Error::unavailable(format!(
        "instance '{}' is not opened: {used} of {total} bytes of GPU {device} are in use, more than \
         --model-load-gpu-limit={device}:{limit} allows; unload other models, or raise the limit",
        facts.name
    )))
}

/// An instance of a backend that declares `ANY_THREAD`, or an isolated one.
pub struct AnyThread(BackendInstance);

// SAFETY: `ANY_THREAD` allows executing the instance on any thread, one at a time, which is all
// that `AnyThread` offers. The interface requires closing on the opening thread: the owner of an
// `AnyThread` must drop it there. An isolated instance executes on a thread of the child.
unsafe impl Send for AnyThread {}

impl AnyThread {
    /// Wraps an instance that any thread may execute; else returns it.
    pub fn new(instance: BackendInstance) -> std::result::Result<Self, Box<BackendInstance>> {
        match &instance {
            BackendInstance::Local(here)
                if here.model.backend.facts.flags & backend_flags::ANY_THREAD != 0 =>
            {
                Ok(Self(instance))
            }
            BackendInstance::Isolated(_) => Ok(Self(instance)),
            BackendInstance::Local(_) => Err(Box::new(instance)),
        }
    }

    pub fn get_mut(&mut self) -> &mut BackendInstance {
        &mut self.0
    }

    /// The instance, if it is isolated: its methods with a shared reference may be called on any
    /// thread.
    pub fn isolated(&self) -> Option<&dyn IsolatedInstance> {
        match &self.0 {
            BackendInstance::Isolated(remote) => Some(&**remote),
            BackendInstance::Local(_) => None,
        }
    }
}

/// An instance in this process.
pub struct LocalInstance {
    table: &'static BackendTable,
    handle: *mut InstanceHandle,
    /// Description of the instance for crash reports.
    subject: Arc<CrashSubject>,
    /// If the backend has a `cancel` entry.
    cancel_notifier: Option<Arc<CancelNotifier>>,
    model: Arc<BackendModel>,
    gpu: Option<Arc<GpuInstance>>,
    batch_sizes: Vec<BatchSize>,
    hold: InstanceHold,
}

impl LocalInstance {
    fn open(
        model: &Arc<BackendModel>,
        table: &'static BackendTable,
        (parent, scope): (*mut ModelHandle, &Scope),
        of: &CrashSubject,
        facts: &InstanceFacts<'_>,
    ) -> Result<Self> {
        let backend = &model.backend;
        let parallel = backend.facts.flags & backend_flags::PARALLEL_OPEN != 0;
        let _one = (!parallel).then(|| backend.opening.lock());
        check_load_limit(facts)?;
        let hold = InstanceHold::new(facts, scope);
        let mut handle = null_mut();
        let text = format!("instance '{}' of {}", facts.name, of.text());
        let subject = Arc::new(CrashSubject::new(text));
        let entered = subject.enter(&crash_report::INSTANCE_OPEN);
        // SAFETY: the descriptor lives until `instance_close`, in the instance.
        let error = unsafe { (table.instance_open)(parent, hold.desc(), &mut handle) };
        drop(entered);
        backend.check(error, "instance_open", facts.name)?;
        let notifier = |cancel| CancelNotifier::new(cancel, handle, &subject);
        let cancel_notifier = table::cancel_extension(table).map(|e| notifier(e.cancel));
        let takes_inputs = backend.facts.takes_gpu_memory();
        let own_stream = backend.facts.flags & backend_flags::OWN_STREAM != 0;
        let gpu = |streams| GpuInstance::new(Arc::clone(streams), takes_inputs, own_stream);
        let gpu = facts.streams.gpu().map(gpu);
        let (model, batch_sizes) = (Arc::clone(model), Vec::new());
        let mut open =
            Self { table, handle, subject, cancel_notifier, model, gpu, batch_sizes, hold };
        open.batch_sizes = open.read_batch_sizes(facts)?;
        Ok(open)
    }

    /// The sizes that the backend has prepared the instance for.
    ///
    /// # Errors
    /// The list is not what the interface asks for.
    fn read_batch_sizes(&self, facts: &InstanceFacts<'_>) -> Result<Vec<BatchSize>> {
        let Some(extension) = table::batch_sizes_extension(self.table) else {
            return Ok(Vec::new());
        };
        let mut n = 0;
        // SAFETY: the instance is open, on its own thread; the variable is ours.
        let list = unsafe { (extension.batch_sizes)(self.handle, &raw mut n) };
        if list.is_null() || n == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: by the interface the list has this length and is valid until `instance_close`.
        let sizes = unsafe { std::slice::from_raw_parts(list, n as usize) };
        batch_sizes::check_sizes(sizes, facts.max_rows)
            .map_err(|why| Error::internal(format!("instance '{}': {why}", facts.name)))?;
        Ok(sizes.to_vec())
    }

    /// The sizes that it is prepared for, ascending; empty: any.
    pub fn batch_sizes(&self) -> &[BatchSize] {
        &self.batch_sizes
    }

    /// The GPU that it executes on.
    pub fn gpu(&self) -> Option<&Arc<GpuInstance>> {
        self.gpu.as_ref()
    }

    /// Executes the batch in `hold`. After an error no request was accepted.
    pub fn execute(&mut self, hold: &FrameHold) -> Result<()> {
        if let Some(cancel_notifier) = &self.cancel_notifier {
            hold.frame().requests.watch(&cancel_notifier.observer());
        }
        let entered = self.subject.enter(&crash_report::EXECUTE);
        // SAFETY: the hold keeps the batch; one call at a time by `&mut self`.
        let error = hold.enter(|batch| unsafe { (self.table.execute)(self.handle, batch) });
        drop(entered);
        self.model.backend.check(error, "execute", "")
    }

    pub fn backend(&self) -> &PluginBackend {
        &self.model.backend
    }
}

impl Drop for LocalInstance {
    fn drop(&mut self) {
        if let Some(cancel_notifier) = &self.cancel_notifier {
            cancel_notifier.close();
        }
        self.hold.scope.nested.close();
        let _entered = self.subject.enter(&crash_report::INSTANCE_CLOSE);
        // SAFETY: on the instance's thread, with nothing executing.
        unsafe { (self.table.instance_close)(self.handle) };
    }
}
