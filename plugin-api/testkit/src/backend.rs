//! Backends and models: opens them as the server does, and closes them when they are dropped.

use crate::host::{Failure, ScopeId, host_table, lock_state};
use crate::instance::Instance;
use crate::model::{InstanceSpec, ModelDescriptor, ModelSpec};
use crate::report::report_violation;
use crate::text::{Params, as_str, c_text, literal_str};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use trtserver_plugin_api::abi::BACKEND_MAIN;
use trtserver_plugin_api::abi::backend::{BackendMain, BackendTable};
use trtserver_plugin_api::abi::descriptors::BackendInfo;
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE_VERSION, AutocompleteExtension, CANCEL_VERSION, CancelExtension,
};
use trtserver_plugin_api::abi::types::{self, BackendHandle, ModelHandle, Str};
use trtserver_plugin_api::author;

/// The table of a backend in Rust, in this process.
pub fn table<B: author::Backend>() -> &'static BackendTable {
    // SAFETY: the host table is valid for the life of the process; the backend table is static.
    unsafe { &*author::export::main::<B>(host_table()) }
}

/// Loads a plugin file and returns the backend's table. The library is never closed.
///
/// # Errors
/// The file cannot be loaded, has no entry symbol, or returns no table.
pub fn load(file: &Path) -> Result<&'static BackendTable, String> {
    let text = |e: libloading::Error| {
        let source = std::error::Error::source(&e).map(ToString::to_string);
        format!("{}: {}", file.display(), source.unwrap_or_else(|| e.to_string()))
    };
    // SAFETY: the caller wants to run this library; its entry has this type by the interface's
    // definition.
    unsafe {
        let library = Library::open(Some(file), RTLD_NOW | RTLD_LOCAL).map_err(text)?;
        let main = *library.get::<BackendMain>(BACKEND_MAIN.as_bytes()).map_err(text)?;
        std::mem::forget(library);
        let refused = || format!("{}: {BACKEND_MAIN} returned null", file.display());
        main(host_table()).as_ref().ok_or_else(refused)
    }
}

/// What an entry returned. A function, so that the lock is released when it returns.
pub(crate) fn take_error(error: *mut types::Error, from: &str) -> Result<(), Failure> {
    lock_state().take_error(error, from)
}

/// Looks up an extension of a backend.
pub(crate) fn find_extension<T>(
    table: &BackendTable,
    name: Str,
    version: u32,
) -> Option<&'static T> {
    // SAFETY: the name is valid during the call; extension tables are static and have the type of
    // their name.
    unsafe { table.get_extension?(name, version).cast::<T>().as_ref() }
}

pub(crate) struct OpenBackend {
    pub table: &'static BackendTable,
    handle: *mut BackendHandle,
    scope: ScopeId,
    settings: Vec<(String, String)>,
    pub flags: u32,
    pub max_in_flight: u32,
    pub align: usize,
    pub stack: usize,
    pub cancel: Option<&'static CancelExtension>,
}

// SAFETY: by the interface any thread may use an open backend.
unsafe impl Send for OpenBackend {}
// SAFETY: by the interface several threads may use one open backend at once.
unsafe impl Sync for OpenBackend {}

impl Drop for OpenBackend {
    fn drop(&mut self) {
        // SAFETY: models hold the backend, so none is left; closed once.
        unsafe { (self.table.backend_close)(self.handle) };
        self.scope.close();
    }
}

/// Format (one of `abi::host::patch_format`) and contents of a configuration patch.
pub type Patch = (u32, Vec<u8>);

/// An open backend. Closed after its last model.
#[derive(Clone)]
pub struct Backend(Arc<OpenBackend>);

impl Backend {
    /// Opens a backend under `name` with settings as of `--backend-config`. `dir` is said to hold
    /// its file.
    ///
    /// # Errors
    /// The backend returns an error.
    pub fn open(
        table: &'static BackendTable,
        name: &str,
        dir: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let scope = ScopeId::open(format!("backend '{name}'"));
        let settings: Vec<(String, String)> =
            settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let (name, dir, params) = (c_text(name), c_text(dir), Params::new(&settings));
        let mut handle = null_mut();
        // SAFETY: all strings live through the call, the scope until after the close.
        let error = unsafe {
            let (params, n) = (params.list.as_ptr(), params.list.len() as u32);
            let (name, dir) = (as_str(&name), as_str(&dir));
            (table.backend_open)(scope.handle(), name, dir, params, n, &raw mut handle)
        };
        take_error(error, "backend_open").inspect_err(|_| scope.close())?;
        // SAFETY: the backend is open, the info valid until it is closed.
        let info: Option<&BackendInfo> = unsafe { (table.backend_info)(handle).as_ref() };
        let (flags, align, stack) = info.map_or((0, 0, 0), |i| (i.flags, i.align, i.stack_kib));
        let stack = if stack == 0 { 8 << 20 } else { (stack as usize * 1024).max(512 << 10) };
        let cancel = find_extension(table, literal_str(c"trts.cancel"), CANCEL_VERSION);
        let max_in_flight = info.map_or(1, |i| i.max_in_flight.max(1));
        let align = align as usize;
        Ok(Self(Arc::new(OpenBackend {
            table,
            handle,
            scope,
            settings,
            flags,
            max_in_flight,
            align,
            stack,
            cancel,
        })))
    }

    /// What the open backend says of itself; valid until it is closed.
    pub fn info(&self) -> *const BackendInfo {
        // SAFETY: the backend is open.
        unsafe { (self.0.table.backend_info)(self.0.handle) }
    }

    /// Asks the backend to complete a configuration. `None` without the extension.
    pub fn autocomplete(&self, spec: &ModelSpec) -> Option<Result<Vec<Patch>, Failure>> {
        Some(self.completed(spec)?.map(|(patches, _state)| patches))
    }

    /// As [`Backend::open_model`], with the state from a completion of the same configuration if
    /// the backend offers that.
    ///
    /// # Errors
    /// The backend refuses the completion or the model.
    pub fn open_completed_model(&self, spec: &ModelSpec) -> Result<Model, Failure> {
        let completed = self.completed(spec).transpose()?;
        self.open_with(spec, completed.as_ref().map_or(null_mut(), |(_, state)| state.state))
    }

    fn completed(
        &self,
        spec: &ModelSpec,
    ) -> Option<Result<(Vec<Patch>, CompletionState), Failure>> {
        let extension: &AutocompleteExtension =
            find_extension(self.0.table, literal_str(c"trts.autocomplete"), AUTOCOMPLETE_VERSION)?;
        let scope = ScopeId::open(format!("model '{}'", spec.name));
        let descriptor = ModelDescriptor::new(spec, &self.0.settings, scope, true);
        let mut state = null_mut();
        // SAFETY: the backend is open; the descriptor lives through the call.
        let error = unsafe {
            (extension.autocomplete)(self.0.handle, &raw const *descriptor.desc, &raw mut state)
        };
        let result = take_error(error, "autocomplete");
        scope.close();
        if !state.is_null() && extension.state_free.is_none() {
            report_violation(
                "model.complete",
                "autocomplete returned a state, and there is no state_free",
            );
        }
        let free = extension.state_free.filter(|_| result.is_ok());
        let state = CompletionState { state, free, _backend: Arc::clone(&self.0) };
        Some(result.map(|()| (scope.record().patches, state)))
    }

    /// # Errors
    /// The backend returns an error.
    pub fn open_model(&self, spec: &ModelSpec) -> Result<Model, Failure> {
        self.open_with(spec, null_mut())
    }

    fn open_with(&self, spec: &ModelSpec, state: *mut u8) -> Result<Model, Failure> {
        let scope = ScopeId::open(format!("model '{}'", spec.name));
        let mut descriptor = ModelDescriptor::new(spec, &self.0.settings, scope, false);
        descriptor.desc.state = state;
        let mut handle = null_mut();
        // SAFETY: the backend is open; the descriptor lives until `model_close`, in the model.
        let error = unsafe {
            (self.0.table.model_open)(self.0.handle, &raw const *descriptor.desc, &raw mut handle)
        };
        take_error(error, "model_open").inspect_err(|_| scope.close())?;
        Ok(Model(Arc::new(OpenModel { backend: self.0.clone(), handle, scope, descriptor })))
    }
}

/// What `autocomplete` hands to `model_open`; freed when dropped.
struct CompletionState {
    state: *mut u8,
    free: Option<unsafe extern "C" fn(*mut u8)>,
    /// Closed later.
    _backend: Arc<OpenBackend>,
}

impl Drop for CompletionState {
    fn drop(&mut self) {
        if let Some(free) = self.free.filter(|_| !self.state.is_null()) {
            // SAFETY: a state of this backend, freed once.
            unsafe { free(self.state) };
        }
    }
}

pub(crate) struct OpenModel {
    pub backend: Arc<OpenBackend>,
    pub handle: *mut ModelHandle,
    scope: ScopeId,
    descriptor: ModelDescriptor,
}

// SAFETY: by the interface any thread may use an open model.
unsafe impl Send for OpenModel {}
// SAFETY: by the interface several threads may use one open model at once.
unsafe impl Sync for OpenModel {}

impl OpenModel {
    pub fn spec(&self) -> &ModelSpec {
        &self.descriptor.spec
    }
}

impl Drop for OpenModel {
    fn drop(&mut self) {
        // SAFETY: instances hold the model, so none is left; closed once.
        unsafe { (self.backend.table.model_close)(self.handle) };
        self.scope.close();
    }
}

/// An open model. Closed after its last instance.
#[derive(Clone)]
pub struct Model(Arc<OpenModel>);

impl Model {
    /// Opens an instance, on a thread of its own.
    ///
    /// # Errors
    /// The backend returns an error.
    pub fn open_instance(&self, spec: &InstanceSpec) -> Result<Instance, Failure> {
        Instance::open(self.0.clone(), spec)
    }
}
