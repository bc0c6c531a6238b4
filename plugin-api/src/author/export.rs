//! The entries of a backend, each wrapped so that no panic leaves it, and the macro that exports
//! them.

use super::batch::run_batch;
use super::context::{
    BackendContext, Completion, ConfigPatch, InstanceContext, ModelContext, State,
};
use super::error::Error;
use super::host::{Host, as_bytes};
use super::info::OwnedBackendInfo;
use super::probe::ModelProbe;
use super::request::RequestKey;
use super::scope::Scope;
use super::{Backend, CancelHandler, Instance, Kind, Model};
use crate::abi;
use crate::abi::backend::{BackendModule, BackendModuleRef, BackendTable};
use crate::abi::descriptors::{BackendInfo, InstanceDesc, ModelDesc};
use crate::abi::extensions::{
    AUTOCOMPLETE, AUTOCOMPLETE_VERSION, AutocompleteExtension, BATCH_SIZES, BATCH_SIZES_VERSION,
    BatchSize, BatchSizesExtension, CANCEL, CANCEL_VERSION, CancelExtension, MODEL_PROBE,
    MODEL_PROBE_VERSION, ModelProbeExtension, ProbeDesc,
};
use crate::abi::host::{HostTable, patch_format};
use crate::abi::types::{BackendHandle, InstanceHandle, ModelHandle, Param, Responder, Str};
use abi_stable::library::{CheckTypeLayout, LibHeader, RootModuleResult};
use std::any::{Any, TypeId};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

struct OpenBackend<B> {
    backend: Arc<B>,
    info: OwnedBackendInfo,
    scope: Scope,
}

struct OpenModel<M> {
    model: Arc<M>,
    scope: Scope,
}

struct OpenInstance<I> {
    /// Accessed by one entry at a time: `execute` calls of an instance never overlap.
    instance: UnsafeCell<I>,
    cancel_handler: Option<CancelHandler>,
    batch_sizes: Box<[BatchSize]>,
    scope: Scope,
}

type ModelOf<B> = <B as Backend>::Model;
type InstanceOf<B> = <ModelOf<B> as Model>::Instance;

/// Runs code of the author; a panic becomes an error.
fn guard_entry<B: Backend, R>(
    entry: &str,
    f: impl FnOnce() -> Result<R, Error>,
) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = text_of_panic(payload);
        let name = B::INFO.name;
        Err(Error::internal(format_args!("backend '{name}' panicked in {entry}: {text}")))
    })
}

fn text_of_panic(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not a string".to_owned()
    };
    // A payload whose own Drop panics is leaked, so that no panic leaves this function.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
}

/// Returns the result of an `open` entry to the host.
///
/// # Safety
/// `out` can be written.
unsafe fn opened_backend<T, H>(
    host: Host,
    result: Result<Box<T>, Error>,
    out: *mut *mut H,
) -> *mut abi::types::Error {
    match result {
        Ok(it) => {
            // SAFETY: by the caller's promise; the host passes the handle back to this library
            // only.
            unsafe { out.write(Box::into_raw(it).cast::<H>()) };
            ptr::null_mut()
        }
        Err(error) => error.raise(host),
    }
}

unsafe extern "C" fn backend_info<B: Backend>(backend: *mut BackendHandle) -> *const BackendInfo {
    /// One leaked info for each backend type of this library: in practice, one.
    static CLOSED: Mutex<Option<HashMap<TypeId, &'static OwnedBackendInfo>>> = Mutex::new(None);
    // SAFETY: null, or a handle of `backend_open` below.
    if let Some(open) = unsafe { backend.cast::<OpenBackend<B>>().as_ref() } {
        return open.info.get();
    }
    let mut closed = CLOSED.lock().unwrap_or_else(PoisonError::into_inner);
    let info = closed.get_or_insert_default().entry(TypeId::of::<B>()).or_insert_with(|| {
        Box::leak(Box::new(build_backend_info::<B>(B::INFO.instance_kinds, "")))
    });
    info.get()
}

fn build_backend_info<B: Backend>(kinds: &[Kind], runtime: &str) -> OwnedBackendInfo {
    let any_thread = <<B::Model as Model>::Instance as Instance>::ANY_THREAD.allowed();
    OwnedBackendInfo::new(&B::INFO, kinds, runtime, any_thread)
}

unsafe extern "C" fn backend_open<B: Backend>(
    scope: *mut abi::types::Scope,
    name: Str,
    dir: Str,
    settings: *const Param,
    n_settings: u32,
    out: *mut *mut BackendHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the host's arguments are valid during the call, its scope until `backend_close`.
    unsafe {
        let scope = Scope::new(host, scope);
        let result = guard_entry::<B, _>("backend_open", || {
            let context = BackendContext::new(name, dir, settings, n_settings, scope.clone());
            let backend = B::open(&context)?;
            let info = build_backend_info::<B>(backend.instance_kinds(), &backend.runtime());
            Ok(Box::new(OpenBackend { backend: Arc::new(backend), info, scope: scope.clone() }))
        });
        if result.is_err() {
            scope.close();
        }
        opened_backend(host, result, out)
    }
}

unsafe extern "C" fn backend_close<B: Backend>(backend: *mut BackendHandle) {
    // SAFETY: a handle of `backend_open`, closed once.
    let open = unsafe { Box::from_raw(backend.cast::<OpenBackend<B>>()) };
    let OpenBackend { backend, info, scope } = *open;
    close_object::<B>("backend_close", &scope, backend);
    drop(info);
}

unsafe extern "C" fn autocomplete_model<B: Backend>(
    backend: *mut BackendHandle,
    desc: *const ModelDesc,
    state: *mut *mut u8,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: handle and descriptor are valid during the call.
    let (open, raw, context) = unsafe {
        let open = &*backend.cast::<OpenBackend<B>>();
        (open, (*desc).scope, ModelContext::new(host, desc))
    };
    let found = guard_entry::<B, _>("autocomplete", || open.backend.autocomplete(&context));
    context.log().close();
    let Completion { patch, state: kept } = match found {
        Ok(found) => found,
        Err(error) => return error.raise(host),
    };
    if let Some(patch) = &patch {
        let (format, bytes) = match patch {
            ConfigPatch::Protobuf(bytes) => (patch_format::PROTOBUF, bytes.as_slice()),
            ConfigPatch::Json(text) => (patch_format::JSON, text.as_bytes()),
            ConfigPatch::Text(text) => (patch_format::TEXT, text.as_bytes()),
        };
        // SAFETY: scope and bytes are valid during the call. An error of the host goes back to it
        // as it is.
        let error = unsafe { (host.config_patch)(raw, format, bytes.as_ptr(), bytes.len() as u64) };
        if !error.is_null() {
            return error;
        }
    }
    if let Some(kept) = kept {
        // SAFETY: the host's variable is valid during the call.
        unsafe { state.write(Box::into_raw(Box::new(kept)).cast()) };
    }
    ptr::null_mut()
}

unsafe extern "C" fn state_free<B: Backend>(state: *mut u8) {
    // SAFETY: a state of `autocomplete`, freed once.
    let state = unsafe { Box::from_raw(state.cast::<State>()) };
    // There is no scope any more that could log a panic of its destructor.
    let _ = guard_entry::<B, _>("state_free", || {
        drop(state);
        Ok(())
    });
}

unsafe extern "C" fn model_probe<B: Backend>(
    desc: *const ProbeDesc,
    found: *mut u32,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the descriptor is valid during the call.
    let probe = unsafe { ModelProbe::new(&*desc) };
    let entry = guard_entry::<B, _>("model_probe", || {
        let Some(name) = B::model_probe(probe)? else { return Ok(None) };
        let index = probe.entries().position(|entry| entry.name == name);
        index.map(Some).ok_or_else(|| {
            Error::internal(format_args!("\"{name}\" is not in {}", probe.version_dir()))
        })
    });
    match entry {
        Ok(None) => {}
        // SAFETY: the host's variable is valid during the call.
        Ok(Some(index)) => unsafe { found.write(index as u32) },
        Err(error) => return error.raise(host),
    }
    ptr::null_mut()
}

unsafe extern "C" fn model_open<B: Backend>(
    backend: *mut BackendHandle,
    desc: *const ModelDesc,
    out: *mut *mut ModelHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, and the descriptor is valid longer than the context.
    unsafe {
        let open = &*backend.cast::<OpenBackend<B>>();
        let context = ModelContext::new(host, desc);
        let scope = context.log().clone();
        let result = guard_entry::<B, _>("model_open", || {
            let model = Arc::new(ModelOf::<B>::open(&open.backend, &context)?);
            Ok(Box::new(OpenModel { model, scope: scope.clone() }))
        });
        if result.is_err() {
            scope.close();
        }
        opened_backend(host, result, out)
    }
}

unsafe extern "C" fn model_close<B: Backend>(model: *mut ModelHandle) {
    // SAFETY: a handle of `model_open`, closed once.
    let open = unsafe { Box::from_raw(model.cast::<OpenModel<ModelOf<B>>>()) };
    let OpenModel { model, scope } = *open;
    close_object::<B>("model_close", &scope, model);
}

unsafe extern "C" fn instance_open<B: Backend>(
    model: *mut ModelHandle,
    desc: *const InstanceDesc,
    out: *mut *mut InstanceHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, and the descriptor is valid longer than the context.
    unsafe {
        let open = &*model.cast::<OpenModel<ModelOf<B>>>();
        let context = InstanceContext::new(host, desc);
        let scope = context.log().clone();
        let result = guard_entry::<B, _>("instance_open", || {
            let instance = InstanceOf::<B>::open(&open.model, &context)?;
            let cancel_handler = instance.cancel_handler();
            let batch_sizes = instance.batch_sizes().into();
            let instance = UnsafeCell::new(instance);
            let scope = scope.clone();
            Ok(Box::new(OpenInstance { instance, cancel_handler, batch_sizes, scope }))
        });
        if result.is_err() {
            scope.close();
        }
        opened_backend(host, result, out)
    }
}

unsafe extern "C" fn execute_batch<B: Backend>(
    instance: *mut InstanceHandle,
    batch: *mut abi::request::Batch,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, the batch just passed, and the host calls `execute` of an
    // instance one at a time: this is the only reference into the cell.
    unsafe {
        let open = &*instance.cast::<OpenInstance<InstanceOf<B>>>();
        run_batch(host, batch, |batch| {
            guard_entry::<B, _>("execute", || (*open.instance.get()).execute(batch))
        });
    }
    ptr::null_mut()
}

unsafe extern "C" fn cancel_request<B: Backend>(
    instance: *mut InstanceHandle,
    responder: *mut Responder,
) {
    let open = instance.cast::<OpenInstance<InstanceOf<B>>>();
    // SAFETY: the handle is open; the handler is `Sync`, and the cell beside it is not accessed.
    let handler = unsafe { &(*open).cancel_handler };
    if let Some(handler) = handler {
        let done = guard_entry::<B, _>("cancel", || {
            handler(RequestKey(responder as usize));
            Ok(())
        });
        if let Err(error) = done {
            // SAFETY: the handle is open during this call; the scope is `Sync`, and the cell beside
            // it is not accessed.
            unsafe { &(*open).scope }.error(format_args!("{error}"));
        }
    }
}

unsafe extern "C" fn batch_sizes<B: Backend>(
    instance: *mut InstanceHandle,
    n: *mut u32,
) -> *const BatchSize {
    let open = instance.cast::<OpenInstance<InstanceOf<B>>>();
    // SAFETY: the handle is open, and the list is never changed; the cell beside it is not
    // accessed. The host's variable is valid during the call.
    unsafe {
        let sizes = &(*open).batch_sizes;
        n.write(sizes.len() as u32);
        sizes.as_ptr()
    }
}

unsafe extern "C" fn instance_close<B: Backend>(instance: *mut InstanceHandle) {
    // SAFETY: a handle of `instance_open`, closed once, on the instance's thread.
    let open = unsafe { Box::from_raw(instance.cast::<OpenInstance<InstanceOf<B>>>()) };
    let OpenInstance { instance, cancel_handler, batch_sizes: _, scope } = *open;
    close_object::<B>("instance_close", &scope, (instance, cancel_handler));
}

/// Drops an object of the author and closes its scope; a panic is logged, since `close` entries
/// return nothing.
fn close_object<B: Backend>(entry: &str, scope: &Scope, it: impl Sized) {
    if let Err(error) = guard_entry::<B, _>(entry, || {
        drop(it);
        Ok(())
    }) {
        scope.error(format_args!("{error}"));
    }
    scope.close();
}

unsafe extern "C" fn get_extension<B: Backend>(name: Str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    let name = unsafe { as_bytes(name.p, name.n) };
    if name == AUTOCOMPLETE.as_bytes() && version <= AUTOCOMPLETE_VERSION {
        (&raw const *Export::<B>::AUTOCOMPLETE).cast()
    } else if name == CANCEL.as_bytes() && version <= CANCEL_VERSION {
        (&raw const *Export::<B>::CANCEL).cast()
    } else if name == MODEL_PROBE.as_bytes() && version <= MODEL_PROBE_VERSION {
        (&raw const *Export::<B>::MODEL_PROBE).cast()
    } else if name == BATCH_SIZES.as_bytes() && version <= BATCH_SIZES_VERSION {
        (&raw const *Export::<B>::BATCH_SIZES).cast()
    } else {
        ptr::null()
    }
}

struct Export<B>(PhantomData<B>);

impl<B: Backend> Export<B> {
    const TABLE: &BackendTable = &BackendTable {
        size: size_of::<BackendTable>() as u64,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        backend_info: backend_info::<B>,
        backend_open: backend_open::<B>,
        backend_close: backend_close::<B>,
        model_open: model_open::<B>,
        model_close: model_close::<B>,
        instance_open: instance_open::<B>,
        instance_close: instance_close::<B>,
        execute: execute_batch::<B>,
        get_extension: Some(get_extension::<B>),
    };
    const AUTOCOMPLETE: &AutocompleteExtension = &AutocompleteExtension {
        size: size_of::<AutocompleteExtension>() as u64,
        autocomplete: autocomplete_model::<B>,
        state_free: Some(state_free::<B>),
    };
    const CANCEL: &CancelExtension =
        &CancelExtension { size: size_of::<CancelExtension>() as u64, cancel: cancel_request::<B> };
    const BATCH_SIZES: &BatchSizesExtension = &BatchSizesExtension {
        size: size_of::<BatchSizesExtension>() as u64,
        batch_sizes: batch_sizes::<B>,
    };
    const MODEL_PROBE: &ModelProbeExtension = &ModelProbeExtension {
        size: size_of::<ModelProbeExtension>() as u64,
        model_probe: model_probe::<B>,
    };
}

/// The table of a backend.
pub const fn table<B: Backend>() -> &'static BackendTable {
    Export::<B>::TABLE
}

/// Body of the entry symbol.
///
/// # Safety
/// `host` is null or a host table, valid for the life of the process.
pub unsafe extern "C" fn main<B: Backend>(host: *const HostTable) -> *const BackendTable {
    // SAFETY: passed on to the caller.
    unsafe { Host::accept(host) };
    table::<B>()
}

extern "C" fn module<B: Backend>() -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(|| -> BackendModuleRef {
        abi_stable::prefix_type::PrefixTypeTrait::leak_into_prefix(BackendModule {
            main: main::<B>,
        })
    } as fn() -> BackendModuleRef)
}

/// What abi_stable's `#[export_root_module]` expands to, but without requiring the backend's crate
/// to depend on abi_stable.
pub const fn header<B: Backend>() -> LibHeader {
    // SAFETY: `module` returns a `BackendModuleRef` and nothing else.
    unsafe { LibHeader::from_constructor::<BackendModuleRef>(module::<B>, CheckTypeLayout::Yes) }
}

/// Exports a type that implements [`Backend`]: as the root module whose layouts abi_stable checks,
/// and as the entry symbol of the C interface. Once per library.
#[macro_export]
macro_rules! export_backend {
    ($backend:ty) => {
        /// The entry symbol; see [`BackendMain`]($crate::abi::backend::BackendMain).
        ///
        /// # Safety
        /// The argument is null or a host table, valid for the life of the process.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn trts_backend_main(
            host: *const $crate::abi::host::HostTable,
        ) -> *const $crate::abi::backend::BackendTable {
            // SAFETY: passed on to the host.
            unsafe { $crate::author::export::main::<$backend>(host) }
        }

        /// The root module that abi_stable looks for.
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        pub static TRTS_ROOT_MODULE: $crate::abi_stable::library::LibHeader =
            $crate::author::export::header::<$backend>();
    };
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
