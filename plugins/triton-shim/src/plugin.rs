//! The backend table of this library: each entry calls the entry point of a Triton backend, with handles for what the host passes.

use crate::batch_strategy::{self, BatchStrategy};
use crate::completion::check_tensors;
use crate::execute::{self, BatchLists};
use crate::execution_env;
use crate::fault::{Fault, Result};
use crate::handles::{self, Live, create};
use crate::host::{self, owned, raised};
use crate::loader::entries::taken;
use crate::objects::backend::Attribute;
use crate::objects::instance::{Instance, kind};
use crate::objects::message::Message;
use crate::objects::model::{Model, NewModel};
use crate::objects::request::slice;
use crate::objects::server::Server;
use crate::open_backend::{Info, OpenBackend};
use crate::processes;
use crate::scope::Scope;
use crate::tensorrt_only;
use std::cell::UnsafeCell;
use std::ffi::{CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use trtserver_plugin_api::abi::backend::BackendTable;
use trtserver_plugin_api::abi::descriptors::{BackendInfo, InstanceDesc, ModelDesc, instance_kind};
use trtserver_plugin_api::abi::extensions::{
    AUTOCOMPLETE, AUTOCOMPLETE_VERSION, AutocompleteExtension,
};
use trtserver_plugin_api::abi::host::HostTable;
use trtserver_plugin_api::abi::request::Batch;
use trtserver_plugin_api::abi::types::{
    self, BackendHandle, InstanceHandle, ModelHandle, Param, Str,
};
use trtserver_plugin_api::abi::{ABI_MAJOR, ABI_MINOR};

/// The entry symbol: stores the host's table and returns this library's.
///
/// # Safety
/// `host` is null or a host table, valid for the life of the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn trts_backend_main(host: *const HostTable) -> *const BackendTable {
    // SAFETY: passed on to the caller.
    unsafe { host::accept(host) };
    &raw const TABLE
}

static TABLE: BackendTable = BackendTable {
    size: size_of::<BackendTable>() as u64,
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    backend_info,
    backend_open,
    backend_close,
    model_open,
    model_close,
    instance_open,
    instance_close,
    execute: execute_batch,
    get_extension: Some(get_extension),
};

static COMPLETION: AutocompleteExtension = AutocompleteExtension {
    size: size_of::<AutocompleteExtension>() as u64,
    autocomplete,
    state_free: Some(state_free),
};

/// An instance, and lists that its batches reuse.
struct OpenInstance {
    instance: Live<Instance>,
    /// Accessed by one entry at a time: `execute` calls of an instance never overlap.
    lists: UnsafeCell<BatchLists>,
}

/// A model that was initialised to complete its configuration.
struct CompletedModel {
    model: Live<Model>,
    /// `model_open` has it.
    opened: AtomicBool,
}

/// Runs an entry; an error or a panic becomes an error of the host.
fn entry(name: &str, body: impl FnOnce() -> Result<()>) -> *mut types::Error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(fault)) => raised(&fault),
        Err(payload) => {
            std::mem::forget(payload);
            raised(&Fault::internal(format_args!("the plugin 'triton' panicked in {name}")))
        }
    }
}

/// # Safety
/// The text is valid for `'a`.
unsafe fn path<'a>(text: Str) -> &'a Path {
    // SAFETY: by the caller's promise.
    Path::new(OsStr::from_bytes(unsafe { bytes(text) }))
}

/// # Safety
/// The text is valid for `'a`.
unsafe fn bytes<'a>(text: Str) -> &'a [u8] {
    // SAFETY: by the caller's promise.
    unsafe { slice(text.p, u32::try_from(text.n).unwrap_or(u32::MAX)) }
}

/// # Safety
/// The text is valid during the call.
unsafe fn c_string(text: Str) -> CString {
    // SAFETY: by the caller's promise.
    owned(&unsafe { host::text(text) })
}

unsafe extern "C" fn backend_info(backend: *mut BackendHandle) -> *const BackendInfo {
    static CLOSED: LazyLock<Info> =
        LazyLock::new(|| Info::new(c"triton".into(), &Attribute::default()));
    // SAFETY: null or a handle of `backend_open`.
    match unsafe { backend.cast::<OpenBackend>().as_ref() } {
        Some(open) => open.info(),
        None => CLOSED.raw(),
    }
}

unsafe extern "C" fn backend_open(
    scope: *mut types::Scope,
    name: Str,
    dir: Str,
    settings: *const Param,
    n_settings: u32,
    out: *mut *mut BackendHandle,
) -> *mut types::Error {
    entry("backend_open", || {
        // SAFETY: the host's arguments are valid during the call, its scope until `backend_close`.
        unsafe {
            let name = host::text(name).into_owned();
            let settings = slice(settings, n_settings).iter();
            let settings = settings.map(|setting| {
                (host::text(setting.key).into_owned(), host::text(setting.text).into_owned())
            });
            let scope = Scope::of_backend(scope, &name)?;
            let dir = directory(path(dir));
            let opened = OpenBackend::open(name, dir, settings.collect(), Arc::clone(&scope));
            let open = opened.inspect_err(|_| scope.close())?;
            out.write(Box::into_raw(Box::new(open)).cast());
        }
        Ok(())
    })
}

/// A directory without slashes at its end.
fn directory(path: &Path) -> PathBuf {
    path.components().collect()
}

unsafe extern "C" fn backend_close(backend: *mut BackendHandle) {
    // SAFETY: a handle of `backend_open`, closed once, after its last model.
    let open = unsafe { Box::from_raw(backend.cast::<OpenBackend>()) };
    let scope = Arc::clone(&open.scope);
    let _ = catch_unwind(AssertUnwindSafe(|| drop(open)));
    scope.close();
}

/// What a model is initialised for.
enum Use {
    /// To complete its configuration, if that is allowed; perhaps it is opened afterwards, with another scope.
    Complete {
        allowed: bool,
    },
    Open,
}

/// Makes a model and has its backend initialise it.
///
/// # Safety
/// The descriptor is valid during the call, its scope until the model's is closed.
unsafe fn start_model(open: &OpenBackend, desc: &ModelDesc, use_of: Use) -> Result<Live<Model>> {
    let completing = matches!(use_of, Use::Complete { allowed: true });
    // SAFETY: by the caller's promise.
    let (scope, config, backend, name, dir) = unsafe {
        let config = host::text(desc.config_json);
        let (version_dir, dir) = (path(desc.version_dir), path(desc.dir));
        let environments = open.setting(execution_env::DIRECTORIES);
        execution_env::check(&config, &open.places(dir), environments)?;
        let backend = open.backend_of(&runtime(&config), version_dir, dir)?;
        let scope = Scope::new(desc.scope, &open.name)?;
        if let Use::Complete { .. } = use_of {
            scope.end_before_model(&open.scope);
        }
        let dir = CString::new(directory(dir).as_os_str().as_bytes()).unwrap_or_default();
        (scope, owned(&config), backend, c_string(desc.name), dir)
    };
    let server = create(Server { model: OnceLock::new() });
    let model = create(Model::new(NewModel {
        backend,
        name,
        version: u64::try_from(desc.version).unwrap_or_default(),
        dir,
        autocomplete: completing,
        server,
        scope,
        config,
    }));
    let _ = server.model.set(model);
    let Some(initialize) = backend.entries.model_initialize else { return Ok(model) };
    model.completing.store(completing, Ordering::Release);
    // SAFETY: the backend interface requires a live model handle, which was just made.
    let returned = model.scope().enter(|| unsafe { initialize(model.raw()) });
    model.completing.store(false, Ordering::Release);
    match taken("TRITONBACKEND_ModelInitialize", returned) {
        Ok(()) => Ok(model),
        Err(fault) => {
            free_model(model);
            Err(fault)
        }
    }
}

/// `runtime` of a configuration.
fn runtime(config: &str) -> String {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    config.get("runtime").and_then(|runtime| runtime.as_str()).unwrap_or_default().to_owned()
}

fn free_model(model: Live<Model>) {
    let scope = model.scope();
    if let Ok(model) = handles::free(model.raw()) {
        let _ = handles::free(model.server.raw());
    }
    scope.close();
}

fn finish_model(model: Live<Model>) {
    let scope = model.scope();
    if let Some(strategy) = model.strategy.get() {
        strategy.close(&scope);
    }
    if let Some(finalize) = model.backend.entries.model_finalize {
        // SAFETY: the backend interface requires a live handle, once, after the last instance: the
        // host closes instances before their model.
        let returned = scope.enter(|| unsafe { finalize(model.raw()) });
        if let Err(fault) = taken("TRITONBACKEND_ModelFinalize", returned) {
            scope.error(&format!("TRITONBACKEND_ModelFinalize failed: {fault}"));
        }
    }
    free_model(model);
}

unsafe extern "C" fn autocomplete(
    backend: *mut BackendHandle,
    desc: *const ModelDesc,
    state: *mut *mut u8,
) -> *mut types::Error {
    entry("autocomplete", || {
        // SAFETY: the handle is open, the descriptor is valid during the call.
        let (open, desc) = unsafe { (&*backend.cast::<OpenBackend>(), &*desc) };
        // SAFETY: the scope is closed before this returns.
        let model =
            unsafe { start_model(open, desc, Use::Complete { allowed: desc.autocomplete != 0 })? };
        // The host's scope is for this call; `model_open` gives another one.
        model.scope().close();
        let completed = CompletedModel { model, opened: AtomicBool::new(false) };
        // SAFETY: the host's variable is valid during the call.
        unsafe { state.write(Box::into_raw(Box::new(completed)).cast()) };
        Ok(())
    })
}

unsafe extern "C" fn state_free(state: *mut u8) {
    // SAFETY: a state of `autocomplete`, freed once.
    let completed = unsafe { Box::from_raw(state.cast::<CompletedModel>()) };
    if !completed.opened.load(Ordering::Acquire) {
        let _ = catch_unwind(AssertUnwindSafe(|| finish_model(completed.model)));
    }
}

unsafe extern "C" fn model_open(
    backend: *mut BackendHandle,
    desc: *const ModelDesc,
    out: *mut *mut ModelHandle,
) -> *mut types::Error {
    entry("model_open", || {
        // SAFETY: the handle is open; descriptor and scope are valid until `model_close`; the state is null or one of
        // `autocomplete`, valid during the call.
        unsafe {
            let (open, desc) = (&*backend.cast::<OpenBackend>(), &*desc);
            check_tensors(desc.n_inputs, desc.n_outputs, &open.name)?;
            let model = host::text(desc.name);
            tensorrt_only::check(&open.name, &model, &host::text(desc.config_json))?;
            let dirs = [path(desc.version_dir), path(desc.dir), open.dir()];
            let strategy =
                batch_strategy::find(&host::text(desc.config_json), dirs, &open.places(dirs[1]))?;
            let model = match desc.state.cast::<CompletedModel>().as_ref() {
                Some(completed) => {
                    let config = c_string(desc.config_json);
                    completed.model.reopen(Scope::new(desc.scope, &open.name)?, config);
                    completed.opened.store(true, Ordering::Release);
                    completed.model
                }
                None => start_model(open, desc, Use::Open)?,
            };
            if let Some(library) = strategy {
                match BatchStrategy::open(&library, model) {
                    Ok(strategy) => drop(model.strategy.set(strategy)),
                    Err(fault) => {
                        finish_model(model);
                        return Err(fault);
                    }
                }
            }
            out.write(model.raw().cast());
        }
        Ok(())
    })
}

unsafe extern "C" fn model_close(model: *mut ModelHandle) {
    if let Ok(model) = handles::get(model.cast::<Model>()) {
        let _ = catch_unwind(AssertUnwindSafe(|| finish_model(model)));
    }
}

unsafe extern "C" fn instance_open(
    model: *mut ModelHandle,
    desc: *const InstanceDesc,
    out: *mut *mut InstanceHandle,
) -> *mut types::Error {
    entry("instance_open", || {
        let model = handles::get(model.cast::<Model>())?;
        // SAFETY: the descriptor and its scope are valid until `instance_close`.
        let instance = unsafe { create(new_instance(model, &*desc)?) };
        if let Some(initialize) = model.backend.entries.instance_initialize {
            // SAFETY: the backend interface requires a live instance handle, which was just made.
            let returned = instance.scope.enter(|| unsafe { initialize(instance.raw()) });
            if let Err(fault) = taken("TRITONBACKEND_ModelInstanceInitialize", returned) {
                free_instance(instance);
                return Err(fault);
            }
        }
        processes::watch(&instance.scope, &instance.name);
        let open = OpenInstance { instance, lists: UnsafeCell::default() };
        // SAFETY: the host's variable is valid during the call.
        unsafe { out.write(Box::into_raw(Box::new(open)).cast()) };
        Ok(())
    })
}

/// # Safety
/// The descriptor is valid during the call, its scope until the instance's is closed.
unsafe fn new_instance(model: Live<Model>, desc: &InstanceDesc) -> Result<Instance> {
    // SAFETY: by the caller's promise.
    unsafe {
        let scope = Scope::new(desc.scope, model.scope().backend())?;
        let (kind, device_id, policy) = match desc.kind {
            instance_kind::GPU => (kind::GPU, desc.device_id, format!("gpu_{}", desc.device_id)),
            instance_kind::MODEL => (kind::MODEL, 0, "model".to_owned()),
            _ => (kind::CPU, 0, "cpu".to_owned()),
        };
        let host_policy = match &*host::text(desc.host_policy_json) {
            "" | "{}" => serde_json::json!({ policy: {} }).to_string(),
            json => json.to_owned(),
        };
        let profiles = slice(desc.profiles, desc.n_profiles).iter();
        let secondary = slice(desc.secondary, desc.n_secondary).iter();
        Ok(Instance {
            model,
            name: c_string(desc.name),
            kind,
            device_id,
            host_policy: Message::create(&host_policy),
            passive: desc.passive != 0,
            profiles: profiles.map(|name| c_string(*name)).collect(),
            secondary: secondary.map(|device| (c_string(device.kind), device.id)).collect(),
            scope,
            state: Default::default(),
        })
    }
}

fn free_instance(instance: Live<Instance>) {
    if let Ok(Instance { host_policy, scope, .. }) = handles::free(instance.raw()) {
        let _ = handles::free(host_policy.raw());
        scope.close();
    }
}

unsafe extern "C" fn instance_close(instance: *mut InstanceHandle) {
    // SAFETY: a handle of `instance_open`, closed once.
    let open = unsafe { Box::from_raw(instance.cast::<OpenInstance>()) };
    let close = || {
        let instance = open.instance;
        if let Some(finalize) = instance.model.backend.entries.instance_finalize {
            // SAFETY: the backend interface requires a live handle that executes nothing: the host
            // closes an instance after its last batch.
            let returned = instance.scope.enter(|| unsafe { finalize(instance.raw()) });
            if let Err(fault) = taken("TRITONBACKEND_ModelInstanceFinalize", returned) {
                let text = format!("TRITONBACKEND_ModelInstanceFinalize failed: {fault}");
                instance.scope.error(&text);
            }
        }
        free_instance(instance);
    };
    let _ = catch_unwind(AssertUnwindSafe(|| processes::closing(close)));
}

unsafe extern "C" fn execute_batch(
    instance: *mut InstanceHandle,
    batch: *mut Batch,
) -> *mut types::Error {
    entry("execute", || {
        // SAFETY: the handle is open and executes one batch at a time; the batch was just passed.
        unsafe {
            let open = &*instance.cast::<OpenInstance>();
            execute::execute(open.instance, &mut *open.lists.get(), batch)
        }
    })
}

unsafe extern "C" fn get_extension(name: Str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    let name = unsafe { bytes(name) };
    if name == AUTOCOMPLETE.as_bytes() && version <= AUTOCOMPLETE_VERSION {
        (&raw const COMPLETION).cast()
    } else {
        ptr::null()
    }
}
