//! The entries that the host calls, each wrapped so that no panic crosses; and the macro that exports them.

use super::call::{CallKey, run};
use super::context::{BackendContext, ConfigPatch, InstanceContext, ModelContext};
use super::describe::AboutBox;
use super::error::Error;
use super::host::Host;
use super::scope::Scope;
use super::{Backend, Canceller, Instance, Model};
use crate::abi;
use crate::abi::describe::{About, InstanceDesc, ModelDesc};
use crate::abi::host::{HostTable, HostTable1_1, patch_format};
use crate::abi::plugin::{PluginModule, PluginModuleRef, PluginTable};
use crate::abi::types::{InstanceHandle, ModelHandle, Param, PluginHandle, Reply, Str};
use abi_stable::library::{CheckTypeLayout, LibHeader, RootModuleResult};
use std::any::{Any, TypeId};
use std::cell::UnsafeCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

struct PluginSlot<B> {
    backend: Arc<B>,
    about: AboutBox,
    scope: Scope,
}

struct ModelSlot<M> {
    model: Arc<M>,
    scope: Scope,
}

struct InstanceSlot<I> {
    /// Touched by the instance's thread alone, and there by one entry at a time.
    instance: UnsafeCell<I>,
    canceller: Option<Canceller>,
    scope: Scope,
}

type ModelOf<B> = <B as Backend>::Model;
type InstanceOf<B> = <ModelOf<B> as Model>::Instance;

/// Runs author's code; a panic becomes an error.
fn guard<B: Backend, R>(entry: &str, f: impl FnOnce() -> Result<R, Error>) -> Result<R, Error> {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload| {
        let text = text_of_panic(payload);
        let name = B::ABOUT.name;
        Err(Error::internal(format_args!("plugin '{name}' panicked in {entry}: {text}")))
    })
}

fn text_of_panic(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a value that is not a text".to_owned()
    };
    // A payload whose own Drop panics is left alone rather than let out.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
    text
}

/// Gives the result of an `open` entry to the host.
///
/// # Safety
/// `out` is null or can be written.
unsafe fn give<T, H>(
    host: Host,
    opened: Result<Box<T>, Error>,
    out: *mut *mut H,
) -> *mut abi::types::Error {
    match opened {
        Ok(it) => {
            // SAFETY: the promise above; the host passes the handle back to us only.
            unsafe { out.write(Box::into_raw(it).cast::<H>()) };
            ptr::null_mut()
        }
        Err(error) => error.raise(host),
    }
}

unsafe extern "C" fn describe<B: Backend>(plugin: *mut PluginHandle) -> *const About {
    /// One leaked description for each backend type of this library: in practice, one.
    static FACTS: Mutex<Option<HashMap<TypeId, &'static AboutBox>>> = Mutex::new(None);
    // SAFETY: null, or a handle of `plugin_open` below.
    if let Some(slot) = unsafe { plugin.cast::<PluginSlot<B>>().as_ref() } {
        return slot.about.get();
    }
    let mut facts = FACTS.lock().unwrap_or_else(PoisonError::into_inner);
    let about = facts
        .get_or_insert_default()
        .entry(TypeId::of::<B>())
        .or_insert_with(|| Box::leak(Box::new(about_of::<B>(""))));
    about.get()
}

fn about_of<B: Backend>(runtime: &str) -> AboutBox {
    let any_thread = <<B::Model as Model>::Instance as Instance>::ANY_THREAD.allowed();
    AboutBox::new(&B::ABOUT, runtime, any_thread)
}

unsafe extern "C" fn plugin_open<B: Backend>(
    scope: *mut abi::types::Scope,
    name: Str,
    dir: Str,
    settings: *const Param,
    n_settings: u32,
    out: *mut *mut PluginHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the host's arguments are valid during the call, its scope until `plugin_close`.
    unsafe {
        let scope = Scope::new(host, scope);
        let opened = guard::<B, _>("plugin_open", || {
            let context = BackendContext::new(name, dir, settings, n_settings, scope.clone());
            let backend = B::open(&context)?;
            let about = about_of::<B>(&backend.runtime());
            Ok(Box::new(PluginSlot { backend: Arc::new(backend), about, scope: scope.clone() }))
        });
        if opened.is_err() {
            scope.close();
        }
        give(host, opened, out)
    }
}

unsafe extern "C" fn plugin_close<B: Backend>(plugin: *mut PluginHandle) {
    // SAFETY: a handle of `plugin_open`, closed once.
    let slot = unsafe { Box::from_raw(plugin.cast::<PluginSlot<B>>()) };
    let PluginSlot { backend, about, scope } = *slot;
    close::<B>("plugin_close", &scope, backend);
    drop(about);
}

unsafe extern "C" fn model_complete<B: Backend>(
    plugin: *mut PluginHandle,
    desc: *const ModelDesc,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: handle and descriptor are valid during the call.
    let (slot, raw, context) = unsafe {
        let slot = &*plugin.cast::<PluginSlot<B>>();
        (slot, (*desc).scope, ModelContext::new(host, desc))
    };
    let found = guard::<B, _>("model_complete", || slot.backend.complete(&context));
    context.log().close();
    let (format, bytes) = match &found {
        Ok(None) => return ptr::null_mut(),
        Ok(Some(ConfigPatch::Protobuf(bytes))) => (patch_format::PROTOBUF, bytes.as_slice()),
        Ok(Some(ConfigPatch::Json(text))) => (patch_format::JSON, text.as_bytes()),
        Ok(Some(ConfigPatch::Text(text))) => (patch_format::TEXT, text.as_bytes()),
        Err(error) => return error.raise(host),
    };
    // SAFETY: scope and bytes are valid during the call. An error of the host goes back to it as it is.
    unsafe { (host.config_patch)(raw, format, bytes.as_ptr(), bytes.len() as u64) }
}

unsafe extern "C" fn model_open<B: Backend>(
    plugin: *mut PluginHandle,
    desc: *const ModelDesc,
    out: *mut *mut ModelHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, and the descriptor is valid longer than the context.
    unsafe {
        let slot = &*plugin.cast::<PluginSlot<B>>();
        let context = ModelContext::new(host, desc);
        let scope = context.log().clone();
        let opened = guard::<B, _>("model_open", || {
            let model = Arc::new(ModelOf::<B>::open(&slot.backend, &context)?);
            Ok(Box::new(ModelSlot { model, scope: scope.clone() }))
        });
        if opened.is_err() {
            scope.close();
        }
        give(host, opened, out)
    }
}

unsafe extern "C" fn model_close<B: Backend>(model: *mut ModelHandle) {
    // SAFETY: a handle of `model_open`, closed once.
    let slot = unsafe { Box::from_raw(model.cast::<ModelSlot<ModelOf<B>>>()) };
    let ModelSlot { model, scope } = *slot;
    close::<B>("model_close", &scope, model);
}

unsafe extern "C" fn instance_open<B: Backend>(
    model: *mut ModelHandle,
    desc: *const InstanceDesc,
    out: *mut *mut InstanceHandle,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, and the descriptor is valid longer than the context.
    unsafe {
        let slot = &*model.cast::<ModelSlot<ModelOf<B>>>();
        let context = InstanceContext::new(host, desc);
        let scope = context.log().clone();
        let opened = guard::<B, _>("instance_open", || {
            let instance = InstanceOf::<B>::open(&slot.model, &context)?;
            let canceller = instance.canceller();
            let instance = UnsafeCell::new(instance);
            Ok(Box::new(InstanceSlot { instance, canceller, scope: scope.clone() }))
        });
        if opened.is_err() {
            scope.close();
        }
        give(host, opened, out)
    }
}

unsafe extern "C" fn execute<B: Backend>(
    instance: *mut InstanceHandle,
    batch: *mut abi::call::Batch,
) -> *mut abi::types::Error {
    let Some(host) = Host::get() else { return ptr::null_mut() };
    // SAFETY: the handle is open, the batch just passed, and the host calls `execute` of an instance
    // on one thread, one at a time: the only reference to what the cell holds.
    unsafe {
        let slot = &*instance.cast::<InstanceSlot<InstanceOf<B>>>();
        run(host, batch, |batch| {
            guard::<B, _>("execute", || (*slot.instance.get()).execute(batch))
        });
    }
    ptr::null_mut()
}

unsafe extern "C" fn cancel<B: Backend>(instance: *mut InstanceHandle, reply: *mut Reply) {
    let slot = instance.cast::<InstanceSlot<InstanceOf<B>>>();
    // SAFETY: the handle is open; the canceller is shareable, and the cell beside it stays untouched.
    let canceller = unsafe { &(*slot).canceller };
    if let Some(canceller) = canceller {
        let done = guard::<B, _>("cancel", || {
            canceller(CallKey(reply as usize));
            Ok(())
        });
        if let Err(error) = done {
            // SAFETY: as above.
            unsafe { &(*slot).scope }.error(format_args!("{error}"));
        }
    }
}

unsafe extern "C" fn instance_close<B: Backend>(instance: *mut InstanceHandle) {
    // SAFETY: a handle of `instance_open`, closed once, on the instance's thread.
    let slot = unsafe { Box::from_raw(instance.cast::<InstanceSlot<InstanceOf<B>>>()) };
    let InstanceSlot { instance, canceller, scope } = *slot;
    close::<B>("instance_close", &scope, (instance, canceller));
}

/// Drops what an author made; a panic on the way is logged, there is nobody to return it to.
fn close<B: Backend>(entry: &str, scope: &Scope, it: impl Sized) {
    if let Err(error) = guard::<B, _>(entry, || {
        drop(it);
        Ok(())
    }) {
        scope.error(format_args!("{error}"));
    }
    scope.close();
}

struct Export<B>(PhantomData<B>);

impl<B: Backend> Export<B> {
    const TABLE: PluginTable = PluginTable {
        size: size_of::<PluginTable>() as u64,
        abi_major: abi::ABI_MAJOR,
        abi_minor: abi::ABI_MINOR,
        describe: describe::<B>,
        plugin_open: plugin_open::<B>,
        plugin_close: plugin_close::<B>,
        model_probe: None,
        model_complete: Some(model_complete::<B>),
        model_open: model_open::<B>,
        model_close: model_close::<B>,
        instance_open: instance_open::<B>,
        execute: execute::<B>,
        cancel: Some(cancel::<B>),
        drain: None,
        instance_ready: None,
        trim: None,
        instance_close: instance_close::<B>,
        batcher_open: None,
        batcher_begin: None,
        batcher_offer: None,
        batcher_end: None,
        batcher_close: None,
    };
}

/// The entries for a backend.
pub const fn table<B: Backend>() -> &'static PluginTable {
    &Export::<B>::TABLE
}

/// Body of the exported symbol.
///
/// # Safety
/// `host` is null or a host's table, valid for ever.
pub unsafe extern "C" fn main<B: Backend>(host: *const HostTable) -> *const PluginTable {
    // SAFETY: passed on to the caller.
    unsafe { Host::accept(host) };
    table::<B>()
}

unsafe extern "C" fn main_1_1<B: Backend>(host: *const HostTable1_1) -> *const PluginTable {
    // SAFETY: by the caller's promise; the first part lies first.
    unsafe { main::<B>(host.cast()) }
}

extern "C" fn module<B: Backend>() -> RootModuleResult {
    abi_stable::library::__call_root_module_loader(|| -> PluginModuleRef {
        abi_stable::prefix_type::PrefixTypeTrait::leak_into_prefix(PluginModule {
            main: main::<B>,
            main_1_1: main_1_1::<B>,
        })
    } as fn() -> PluginModuleRef)
}

/// What abi_stable's `#[export_root_module]` writes out, without its demand that the plugin's own
/// crate names abi_stable.
pub const fn header<B: Backend>() -> LibHeader {
    // SAFETY: `module` makes a `PluginModuleRef` and nothing else.
    unsafe { LibHeader::from_constructor::<PluginModuleRef>(module::<B>, CheckTypeLayout::Yes) }
}

/// Exports a type that implements [`Backend`] through both doors: the root module that abi_stable
/// checks, and the C symbol. Once per library.
#[macro_export]
macro_rules! export_backend {
    ($backend:ty) => {
        /// The C door; see the interface's documentation of the symbol.
        ///
        /// # Safety
        /// The argument is null or a host's table, valid for ever.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn trts_plugin_main(
            host: *const $crate::abi::host::HostTable,
        ) -> *const $crate::abi::plugin::PluginTable {
            // SAFETY: passed on to the host.
            unsafe { $crate::author::export::main::<$backend>(host) }
        }

        /// The layout-checked door.
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        pub static TRTS_ROOT_MODULE: $crate::abi_stable::library::LibHeader =
            $crate::author::export::header::<$backend>();
    };
}

#[cfg(test)]
#[path = "export_tests.rs"]
mod tests;
