//! An open model version and its instances, in this process or in one of their own.

use super::backend::Backend;
use super::batch::cancel_notifier::Nudges;
use super::batch::frame::FrameHold;
use super::descriptors::{InstanceFacts, InstanceHold, ModelHold};
use super::isolated::{Health, IsolatedInstance, IsolatedModel};
use super::library::table;
use crate::arena::Arena;
use crate::error::Result;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::backend_flags;
use trtserver_plugin_api::abi::types::{InstanceHandle, ModelHandle};

/// Open model versions in this process; shutdown waits until none is left.
static LIVE: AtomicUsize = AtomicUsize::new(0);

/// Counts a model while it is open.
struct Live;

impl Live {
    fn new() -> Self {
        LIVE.fetch_add(1, Ordering::AcqRel);
        Self
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        LIVE.fetch_sub(1, Ordering::AcqRel);
    }
}

pub fn live_models() -> usize {
    LIVE.load(Ordering::Acquire)
}

/// An open model version; closes with its last user.
pub struct Model {
    placement: Placement,
    pub backend: Arc<Backend>,
    /// Last, so that the backend, if this was its last model, is closed before the process may end.
    _live: Live,
}

/// Where a model runs.
enum Placement {
    Local { table: &'static BackendTable, handle: *mut ModelHandle, _hold: Box<ModelHold> },
    Isolated(Arc<IsolatedModel>),
}

// SAFETY: models are opened and closed on loader threads and shared by instance threads, by the interface.
unsafe impl Send for Model {}
// SAFETY: as above.
unsafe impl Sync for Model {}

impl Model {
    /// What `model_open` made in this process.
    pub(super) fn local(
        backend: &Arc<Backend>,
        table: &'static BackendTable,
        handle: *mut ModelHandle,
        hold: ModelHold,
    ) -> Arc<Self> {
        Self::new(backend, Placement::Local { table, handle, _hold: Box::new(hold) })
    }

    /// In a process of its own.
    pub(super) fn isolated(backend: &Arc<Backend>, remote: Arc<IsolatedModel>) -> Arc<Self> {
        Self::new(backend, Placement::Isolated(remote))
    }

    fn new(backend: &Arc<Backend>, placement: Placement) -> Arc<Self> {
        Arc::new(Self { placement, backend: Arc::clone(backend), _live: Live::new() })
    }

    /// In a process of its own.
    pub fn is_isolated(&self) -> bool {
        matches!(self.placement, Placement::Isolated(_))
    }

    /// Where inputs are best received: memory that the model's process sees.
    pub fn arena(&self) -> Option<Arc<Arena>> {
        match &self.placement {
            Placement::Local { .. } => None,
            Placement::Isolated(remote) => Some(remote.inputs()),
        }
    }

    /// Whether it serves; `None` = always, as long as it is open.
    pub fn health(&self) -> Option<Arc<Health>> {
        match &self.placement {
            Placement::Local { .. } => None,
            Placement::Isolated(remote) => Some(remote.health()),
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        if let Placement::Local { table, handle, .. } = self.placement {
            // SAFETY: every instance holds the model, so none is left.
            unsafe { (table.model_close)(handle) };
        }
    }
}

/// An open instance; stays on the thread that opened it, unless it is made for [`AnyThread`].
pub enum Instance {
    Local(LocalInstance),
    Isolated(IsolatedInstance),
}

impl Instance {
    /// Opens an instance on this thread, or has its process open it.
    pub fn open(model: &Arc<Model>, facts: &InstanceFacts<'_>) -> Result<Self> {
        match &model.placement {
            Placement::Local { table, handle, .. } => {
                LocalInstance::open(model, table, *handle, facts).map(Self::Local)
            }
            Placement::Isolated(remote) => {
                IsolatedInstance::open(remote, facts).map(Self::Isolated)
            }
        }
    }
}

/// An instance of a backend that does not care which thread executes it.
pub struct AnyThread(Instance);

// SAFETY: the backend has declared `ANY_THREAD`, which allows to execute the instance on any thread, one at a time; that is
// all that `AnyThread` offers. It is closed, by the interface, on the thread that opened it: whoever holds an `AnyThread`
// lets go of it there.
unsafe impl Send for AnyThread {}

impl AnyThread {
    /// The instance for any thread, or back if it is not made for that, or not in this process.
    pub fn new(instance: Instance) -> std::result::Result<Self, Instance> {
        match &instance {
            Instance::Local(here)
                if here.model.backend.facts.flags & backend_flags::ANY_THREAD != 0 =>
            {
                Ok(Self(instance))
            }
            _ => Err(instance),
        }
    }

    pub fn get_mut(&mut self) -> &mut Instance {
        &mut self.0
    }
}

/// An instance in this process.
pub struct LocalInstance {
    table: &'static BackendTable,
    handle: *mut InstanceHandle,
    /// If the plugin wants to be told.
    nudges: Option<Arc<Nudges>>,
    model: Arc<Model>,
    _hold: InstanceHold,
}

impl LocalInstance {
    fn open(
        model: &Arc<Model>,
        table: &'static BackendTable,
        parent: *mut ModelHandle,
        facts: &InstanceFacts<'_>,
    ) -> Result<Self> {
        let backend = &model.backend;
        let parallel = backend.facts.flags & backend_flags::PARALLEL_OPEN != 0;
        let _one = (!parallel).then(|| backend.opening.lock());
        let hold = InstanceHold::new(facts);
        let mut handle = null_mut();
        // SAFETY: the descriptor lives until `instance_close`, in the instance.
        let error = unsafe { (table.instance_open)(parent, hold.desc(), &mut handle) };
        backend.check(error, "instance_open", facts.name)?;
        let nudges = table::cancel(table).map(|e| Nudges::new(e.cancel, handle));
        Ok(Self { table, handle, nudges, model: Arc::clone(model), _hold: hold })
    }

    /// Executes the batch in `hold`. An error means that nothing was accepted.
    pub fn execute(&mut self, hold: &FrameHold) -> Result<()> {
        if let Some(nudges) = &self.nudges {
            hold.frame().requests.watch(&nudges.weak());
        }
        // SAFETY: the hold keeps the batch; one call at a time by `&mut self`.
        let error = hold.enter(|batch| unsafe { (self.table.execute)(self.handle, batch) });
        self.model.backend.check(error, "execute", "")
    }

    pub fn backend(&self) -> &Backend {
        &self.model.backend
    }
}

impl Drop for LocalInstance {
    fn drop(&mut self) {
        if let Some(nudges) = &self.nudges {
            nudges.close();
        }
        // SAFETY: on the instance's thread, with nothing executing.
        unsafe { (self.table.instance_close)(self.handle) };
    }
}
