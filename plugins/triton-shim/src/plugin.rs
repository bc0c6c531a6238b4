//! The backend table of this library: each entry calls the entry point of a Triton backend, with
//! handles for what the host passes.

use crate::batch_strategy::{self, BatchStrategy};
use crate::completion::missing_tensors;
use crate::execute::{self, BatchLists};
use crate::execution_env;
use crate::fault::{Result, TritonFault};
use crate::handles::{self, LiveObject, create_object};
use crate::host::{self, owned_text, raise_error};
use crate::loader::entries::take_entry_error;
use crate::objects::backend::BackendAttribute;
use crate::objects::instance::{InstanceObject, kind};
use crate::objects::message::MessageObject;
use crate::objects::model::{ModelObject, NewModel};
use crate::objects::request::view_slice;
use crate::objects::server::ServerToken;
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
    unsafe { host::accept_host(host) };
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
struct ShimInstance {
    instance: LiveObject<InstanceObject>,
    /// Accessed by one entry at a time: `execute` calls of an instance never overlap.
    lists: UnsafeCell<BatchLists>,
}

/// A model that was initialised to complete its configuration.
struct CompletedModel {
    model: LiveObject<ModelObject>,
    /// `model_open` has it.
    opened: AtomicBool,
}

/// Runs an entry; an error or a panic becomes an error of the host.
fn guard_entry(name: &str, body: impl FnOnce() -> Result<()>) -> *mut types::Error {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => ptr::null_mut(),
        Ok(Err(fault)) => raise_error(&fault),
        Err(payload) => {
            std::mem::forget(payload);
            raise_error(&TritonFault::internal(format_args!(
                "the plugin 'triton' panicked in {name}"
            )))
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
    unsafe { view_slice(text.p, u32::try_from(text.n).unwrap_or(u32::MAX)) }
}

/// # Safety
/// The text is valid during the call.
unsafe fn c_string(text: Str) -> CString {
    // SAFETY: by the caller's promise.
    owned_text(&unsafe { host::str_text(text) })
}

unsafe extern "C" fn backend_info(backend: *mut BackendHandle) -> *const BackendInfo {
    static CLOSED: LazyLock<Info> =
        LazyLock::new(|| Info::new(c"triton".into(), &BackendAttribute::default()));
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
    guard_entry("backend_open", || {
        // SAFETY: the host's arguments are valid during the call, its scope until `backend_close`.
        unsafe {
            let name = host::str_text(name).into_owned();
            let settings = view_slice(settings, n_settings).iter();
            let settings = settings.map(|setting| {
                (
                    host::str_text(setting.key).into_owned(),
                    host::str_text(setting.text).into_owned(),
                )
            });
            let scope = Scope::for_backend(scope, &name)?;
            let dir = model_directory(path(dir));
            let opened = OpenBackend::open(name, dir, settings.collect(), Arc::clone(&scope));
            let open = opened.inspect_err(|_| scope.close())?;
            out.write(Box::into_raw(Box::new(open)).cast());
        }
        Ok(())
    })
}

/// A directory without slashes at its end.
fn model_directory(path: &Path) -> PathBuf {
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
enum ModelUse {
    /// To complete its configuration, if that is allowed; perhaps it is opened afterwards, with
    /// another scope.
    Complete {
        allowed: bool,
    },
    Open,
}

/// Makes a model and has its backend initialise it.
///
/// # Safety
/// The descriptor is valid during the call, its scope until the model's is closed.
unsafe fn start_model(
    open: &OpenBackend,
    desc: &ModelDesc,
    use_of: ModelUse,
) -> Result<LiveObject<ModelObject>> {
    let completing = matches!(use_of, ModelUse::Complete { allowed: true });
    // SAFETY: by the caller's promise.
    let (scope, config, backend, name, dir) = unsafe {
        let config = host::str_text(desc.config_json);
        let (version_dir, dir) = (path(desc.version_dir), path(desc.dir));
        let environments = open.setting(execution_env::DIRECTORIES);
        execution_env::check_execution_env(&config, &open.places(dir), environments)?;
        let name = host::str_text(desc.name);
        let backend = open.find_backend(&name, &runtime_setting(&config), version_dir, dir)?;
        let scope = Scope::new(desc.scope, &open.name)?;
        if let ModelUse::Complete { .. } = use_of {
            scope.end_before_model(&open.scope);
        }
        let dir = CString::new(model_directory(dir).as_os_str().as_bytes()).unwrap_or_default();
        (scope, owned_text(&config), backend, c_string(desc.name), dir)
    };
    let server = create_object(ServerToken { model: OnceLock::new() });
    let model = create_object(ModelObject::new(NewModel {
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
    match take_entry_error("TRITONBACKEND_ModelInitialize", returned) {
        Ok(()) => Ok(model),
        Err(fault) => {
            free_model(model);
            Err(fault)
        }
    }
}

/// `runtime` of a configuration.
fn runtime_setting(config: &str) -> String {
    let config: serde_json::Value = serde_json::from_str(config).unwrap_or_default();
    config.get("runtime").and_then(|runtime| runtime.as_str()).unwrap_or_default().to_owned()
}

fn free_model(model: LiveObject<ModelObject>) {
    let scope = model.scope();
    if let Ok(model) = handles::free_object(model.raw()) {
        let _ = handles::free_object(model.server.raw());
    }
    scope.close();
}

fn finish_model(model: LiveObject<ModelObject>) {
    let scope = model.scope();
    if let Some(strategy) = model.strategy.get() {
        strategy.close(&scope);
    }
    if let Some(finalize) = model.backend.entries.model_finalize {
        // SAFETY: the backend interface requires a live handle, once, after the last instance: the
        // host closes instances before their model.
        let returned = scope.enter(|| unsafe { finalize(model.raw()) });
        if let Err(fault) = take_entry_error("TRITONBACKEND_ModelFinalize", returned) {
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
    guard_entry("autocomplete", || {
        // SAFETY: the handle is open, the descriptor is valid during the call.
        let (open, desc) = unsafe { (&*backend.cast::<OpenBackend>(), &*desc) };
        // SAFETY: the scope is closed before this returns.
        let model = unsafe {
            start_model(open, desc, ModelUse::Complete { allowed: desc.autocomplete != 0 })?
        };
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
    guard_entry("model_open", || {
        // SAFETY: the handle is open; descriptor and scope are valid until `model_close`; the state
        // is null or one of `autocomplete`, valid during the call.
        unsafe {
            let (open, desc) = (&*backend.cast::<OpenBackend>(), &*desc);
            let model = host::str_text(desc.name);
            if let Some(line) = missing_tensors(desc.n_inputs, desc.n_outputs, &open.name, &model) {
                Scope::new(desc.scope, &open.name)?.warn(&line);
            }
            tensorrt_only::check(&open.name, &model, &host::str_text(desc.config_json))?;
            let dirs = [path(desc.version_dir), path(desc.dir), open.dir()];
            let strategy = batch_strategy::find_strategy(
                &host::str_text(desc.config_json),
                dirs,
                &open.places(dirs[1]),
            )?;
            let model = match desc.state.cast::<CompletedModel>().as_ref() {
                Some(completed) => {
                    let config = c_string(desc.config_json);
                    completed.model.reopen(Scope::new(desc.scope, &open.name)?, config);
                    completed.opened.store(true, Ordering::Release);
                    completed.model
                }
                None => start_model(open, desc, ModelUse::Open)?,
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
    if let Ok(model) = handles::get_object(model.cast::<ModelObject>()) {
        let _ = catch_unwind(AssertUnwindSafe(|| finish_model(model)));
    }
}

unsafe extern "C" fn instance_open(
    model: *mut ModelHandle,
    desc: *const InstanceDesc,
    out: *mut *mut InstanceHandle,
) -> *mut types::Error {
    guard_entry("instance_open", || {
        let model = handles::get_object(model.cast::<ModelObject>())?;
        // SAFETY: the descriptor and its scope are valid until `instance_close`.
        let instance = unsafe { create_object(new_instance(model, &*desc)?) };
        if let Some(initialize) = model.backend.entries.instance_initialize {
            // SAFETY: the backend interface requires a live instance handle, which was just made.
            let returned = instance.scope.enter(|| unsafe { initialize(instance.raw()) });
            if let Err(fault) = take_entry_error("TRITONBACKEND_ModelInstanceInitialize", returned)
            {
                free_instance(instance);
                return Err(fault);
            }
        }
        processes::watch_process(&instance.scope, &instance.name);
        let open = ShimInstance { instance, lists: UnsafeCell::default() };
        // SAFETY: the host's variable is valid during the call.
        unsafe { out.write(Box::into_raw(Box::new(open)).cast()) };
        Ok(())
    })
}

/// # Safety
/// The descriptor is valid during the call, its scope until the instance's is closed.
unsafe fn new_instance(
    model: LiveObject<ModelObject>,
    desc: &InstanceDesc,
) -> Result<InstanceObject> {
    // SAFETY: by the caller's promise.
    unsafe {
        let scope = Scope::new(desc.scope, model.scope().backend())?;
        let (kind, device_id, policy) = match desc.kind {
            instance_kind::GPU => (kind::GPU, desc.device_id, format!("gpu_{}", desc.device_id)),
            instance_kind::MODEL => (kind::MODEL, 0, "model".to_owned()),
            _ => (kind::CPU, 0, "cpu".to_owned()),
        };
        let host_policy = match &*host::str_text(desc.host_policy_json) {
            "" | "{}" => serde_json::json!({ policy: {} }).to_string(),
            json => json.to_owned(),
        };
        let profiles = view_slice(desc.profiles, desc.n_profiles).iter();
        let secondary = view_slice(desc.secondary, desc.n_secondary).iter();
        Ok(InstanceObject {
            model,
            name: c_string(desc.name),
            kind,
            device_id,
            host_policy: MessageObject::create(&host_policy),
            passive: desc.passive != 0,
            profiles: profiles.map(|name| c_string(*name)).collect(),
            secondary: secondary.map(|device| (c_string(device.kind), device.id)).collect(),
            scope,
            state: Default::default(),
        })
    }
}

fn free_instance(instance: LiveObject<InstanceObject>) {
    if let Ok(InstanceObject { host_policy, scope, .. }) = handles::free_object(instance.raw()) {
        let _ = handles::free_object(host_policy.raw());
        scope.close();
    }
}

unsafe extern "C" fn instance_close(instance: *mut InstanceHandle) {
    // SAFETY: a handle of `instance_open`, closed once.
    let open = unsafe { Box::from_raw(instance.cast::<ShimInstance>()) };
    let instance = open.instance;
    let scope = Arc::clone(&instance.scope);
    let close = || {
        if let Some(finalize) = instance.model.backend.entries.instance_finalize {
            // SAFETY: the backend interface requires a live handle that executes nothing: the host
            // closes an instance after its last batch.
            let returned = instance.scope.enter(|| unsafe { finalize(instance.raw()) });
            if let Err(fault) = take_entry_error("TRITONBACKEND_ModelInstanceFinalize", returned) {
                let text = format!("TRITONBACKEND_ModelInstanceFinalize failed: {fault}");
                instance.scope.error(&text);
            }
        }
        free_instance(instance);
    };
    let _ = catch_unwind(AssertUnwindSafe(|| processes::close_instance(&scope, close)));
}

unsafe extern "C" fn execute_batch(
    instance: *mut InstanceHandle,
    batch: *mut Batch,
) -> *mut types::Error {
    guard_entry("execute", || {
        // SAFETY: the handle is open and executes one batch at a time; the batch was just passed.
        unsafe {
            let open = &*instance.cast::<ShimInstance>();
            execute::execute_batch(open.instance, &mut *open.lists.get(), batch)
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
