//! A backend at work: opened, given models, instances and calls, and closed, with every step looked at.

mod instance; // executing
mod view; // calls as a backend sees them

pub use instance::{Instance, Outcome};
use view::held;
pub use view::{CallSpec, InputSpec, Lay, gather, released};

use super::child::{breach, seen};
use super::host::{Failure, HOST};
use super::model::Plan;
use crate::plugin::backend::Texts;
use crate::plugin::descriptors::{InstanceHold, ModelHold};
use crate::plugin::host_api::scope::Scope;
use crate::plugin::text::{c_text, view as lend};
use crate::plugin::{InstanceFacts, ModelFacts, Patch};
use crate::sync::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{BackendInfo, InstanceDesc, ModelDesc, backend_flags};
use trtserver_plugin_api::abi::types::{self, BackendHandle, ModelHandle};

/// A backend under one name; closed when it is dropped.
pub struct Plugin {
    pub table: &'static BackendTable,
    pub handle: *mut BackendHandle,
    scope: Arc<Scope>,
    settings: BTreeMap<String, String>,
    pub flags: u32,
    pub align: usize,
    pub stack: usize,
}

// SAFETY: the interface lets any loader thread use an open plugin.
unsafe impl Send for Plugin {}
// SAFETY: as above.
unsafe impl Sync for Plugin {}

fn open_scope(scope: &Arc<Scope>, label: &str) {
    HOST.lock().scopes.insert(scope.handle().addr(), (label.to_owned(), true));
}

/// Its memory goes with it; who uses it from here on is found out.
fn close_scope(address: usize) {
    let mut state = HOST.lock();
    if let Some(scope) = state.scopes.get_mut(&address) {
        scope.1 = false;
    }
    state.leases.retain(|_, lease| lease.scope != address);
}

/// What an entry returned. A function, so that the lock is gone when its caller goes on.
fn taken(error: *mut types::Error, from: &str) -> Result<(), Failure> {
    HOST.lock().take_error(error, from)
}

impl Plugin {
    pub fn open(
        table: &'static BackendTable,
        file: &Path,
        name: &str,
        settings: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let scope = Scope::new(format!("backend {name}"));
        open_scope(&scope, &format!("backend '{name}'"));
        let (name, dir) = (c_text(name), c_text(&file.parent().unwrap_or(file).to_string_lossy()));
        let texts = Texts::new(settings);
        let mut handle = null_mut();
        let params = texts.params();
        // SAFETY: all texts live through the call, the scope until after the close.
        let error = unsafe {
            let (scope, n) = (scope.handle(), params.len() as u32);
            (table.backend_open)(scope, lend(&name), lend(&dir), params.as_ptr(), n, &mut handle)
        };
        taken(error, "backend_open").inspect_err(|_| {
            close_scope(scope.handle().addr());
        })?;
        // SAFETY: the plugin is open; the description was checked when the file was loaded.
        let about: Option<&BackendInfo> = unsafe { (table.backend_info)(handle).as_ref() };
        let (flags, align, stack) = about.map_or((0, 0, 0), |a| (a.flags, a.align, a.stack_kib));
        let stack = if stack == 0 { 8 << 20 } else { (stack as usize * 1024).max(512 << 10) };
        let settings = settings.clone();
        Ok(Self { table, handle, scope, settings, flags, align: align as usize, stack })
    }

    fn facts<'a>(plan: &'a Plan, instances: u32) -> ModelFacts<'a> {
        ModelFacts {
            name: &plan.config.name,
            version: plan.version,
            dir: &plan.dir,
            version_dir: &plan.version_dir,
            file: &plan.config.default_model_filename,
            config: &plan.config,
            signature: &plan.signature,
            n_instances: instances,
            threads: 1,
        }
    }

    /// Asks the backend to complete a configuration; `None` = it does not offer that.
    pub fn complete(&self, plan: &Plan) -> Option<Result<Option<Patch>, Failure>> {
        let extension = crate::plugin::library::table::autocomplete(self.table)?;
        let hold = ModelHold::new(&Self::facts(plan, 1), &self.settings, true);
        open_scope(&hold.scope, "a model being completed");
        HOST.lock().patch = None;
        // SAFETY: the descriptor lives through the call.
        let error = unsafe { (extension.autocomplete)(self.handle, hold.desc()) };
        let mut state = HOST.lock();
        let result = state.take_error(error, "autocomplete");
        let patch = state.patch.take();
        drop(state);
        close_scope(hold.scope.handle().addr());
        Some(result.map(|()| patch.map(|(format, data)| Patch { format, data })))
    }

    /// Opens a model; `tweak` may spoil what is said of it.
    pub fn model(
        &self,
        plan: &Plan,
        instances: u32,
        tweak: impl FnOnce(&mut ModelDesc),
    ) -> Result<Model<'_>, Failure> {
        let hold = ModelHold::new(&Self::facts(plan, instances), &self.settings, false);
        open_scope(&hold.scope, &format!("model '{}'", plan.config.name));
        // SAFETY: a descriptor is plain data; what it points at lives in the hold, beside it.
        let mut desc = Box::new(unsafe { hold.desc().read() });
        tweak(&mut desc);
        let mut handle = null_mut();
        // SAFETY: the descriptor lives until `model_close`, in the `Model`.
        let error = unsafe { (self.table.model_open)(self.handle, &*desc, &mut handle) };
        taken(error, "model_open").inspect_err(|_| {
            close_scope(hold.scope.handle().addr());
        })?;
        Ok(Model { plugin: self, handle, hold, _desc: desc, plan: plan.clone() })
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        // SAFETY: models borrow the plugin, so none is left; this is the only close.
        unsafe { (self.table.backend_close)(self.handle) };
        close_scope(self.scope.handle().addr());
    }
}

/// An open model.
pub struct Model<'p> {
    pub plugin: &'p Plugin,
    pub handle: *mut ModelHandle,
    hold: ModelHold,
    _desc: Box<ModelDesc>,
    pub plan: Plan,
}

// SAFETY: by the interface models are shared by instance threads.
unsafe impl Send for Model<'_> {}
// SAFETY: as above.
unsafe impl Sync for Model<'_> {}

/// Instances open one at a time unless the backend allows more.
static OPENING: Mutex<()> = Mutex::new(());

impl Model<'_> {
    /// Opens an instance on this thread.
    pub fn instance(&self, ordinal: u32) -> Result<Instance<'_>, Failure> {
        let name = format!("{}_{ordinal}", self.plan.config.name);
        let hold = InstanceHold::new(&InstanceFacts {
            name: &name,
            kind: 2,
            ordinal,
            device: -1,
            threads: 1,
            max_rows: self.plan.signature.max_batch_size.max(1),
            profiles: &[],
            streams: [null_mut(); 4],
            nice: 0,
            drain: std::time::Duration::ZERO,
        });
        // SAFETY: the hold's descriptor.
        let scope = unsafe { (*hold.desc()).scope }.addr();
        HOST.lock().scopes.insert(scope, (format!("instance '{name}'"), true));
        let parallel = self.plugin.flags & backend_flags::PARALLEL_OPEN != 0;
        let _one = (!parallel).then(|| OPENING.lock());
        let mut handle = null_mut();
        let desc: *const InstanceDesc = hold.desc();
        // SAFETY: the descriptor lives until `instance_close`, in the instance.
        let error = unsafe { (self.plugin.table.instance_open)(self.handle, desc, &mut handle) };
        taken(error, "instance_open").inspect_err(|_| close_scope(scope))?;
        Ok(Instance { model: self, handle, _hold: hold, scope })
    }

    /// Runs `work` with an instance on a thread as the server would give it.
    pub fn on_instance<T: Send>(
        &self,
        ordinal: u32,
        work: impl FnOnce(&mut Instance<'_>) -> T + Send,
    ) -> Result<T, Failure> {
        let fault = |text: String| Failure { code: types::code::INTERNAL, text };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(self.plugin.stack);
            let thread = thread.spawn_scoped(scope, || {
                let mut instance = self.instance(ordinal)?;
                Ok(work(&mut instance))
            });
            let thread = thread.map_err(|e| fault(format!("no thread: {e}")))?;
            thread.join().unwrap_or_else(|_| Err(fault("the kit failed".to_owned())))
        })
    }
}

impl Drop for Model<'_> {
    fn drop(&mut self) {
        // SAFETY: instances borrow the model, so none is left.
        unsafe { (self.plugin.table.model_close)(self.handle) };
        close_scope(self.hold.scope.handle().addr());
    }
}

/// What is left when everything is closed; then the books begin anew.
pub fn close_books() {
    let mut state = HOST.lock();
    state.look_back();
    if let Some(error) = state.errors.values().next() {
        let n = state.errors.len();
        breach(
            "host.errors",
            format!("{n} errors were never freed, one says '{}'", error.text.to_string_lossy()),
        );
    }
    seen("host.errors");
    state.errors.clear();
    state.calls.clear();
    state.responses.clear();
    state.batches.clear();
    state.metrics.clear();
    state.families.clear();
    state.hold_releases = false;
    let done = std::mem::take(&mut state.done);
    drop(state);
    super::host::release(done);
    held().clear();
}
