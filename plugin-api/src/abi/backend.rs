//! The backend table, the entry symbol that exchanges it for the host table, and the layout-checked
//! root module of Rust backends.

use super::descriptors::{BackendInfo, InstanceDesc, ModelDesc};
use super::host::HostTable;
use super::request::Batch;
use super::types::{BackendHandle, Error, InstanceHandle, ModelHandle, Param, Scope, Str};
use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::sabi_types::VersionStrings;

/// Entries of a backend. Those that return `*mut Error` return null on success or an error created
/// with the host's `error_new`, which the host frees. The host holds no lock while it calls an
/// entry.
#[repr(C)]
#[derive(StableAbi)]
pub struct BackendTable {
    /// sizeof, as the backend was built.
    pub size: u64,
    /// The interface that the backend was built for.
    pub abi_major: u32,
    /// [`super::ABI_MINOR`], as the backend was built.
    pub abi_minor: u32,

    /// Describes the library (null) or an open backend, which may narrow what the library says.
    /// Never returns null; static, or valid until `backend_close`.
    pub backend_info: unsafe extern "C" fn(backend: *mut BackendHandle) -> *const BackendInfo,
    /// Opens the backend, with the first model that uses it, on a loader thread. `dir` holds the
    /// plugin file.
    pub backend_open: unsafe extern "C" fn(
        scope: *mut Scope,
        name: Str,
        dir: Str,
        settings: *const Param,
        n_settings: u32,
        out: *mut *mut BackendHandle,
    ) -> *mut Error,
    /// Closes the backend after its last model; it must join its threads here.
    pub backend_close: unsafe extern "C" fn(backend: *mut BackendHandle),

    /// Opens one version of a model, on a loader thread. `desc` is valid until `model_close`.
    pub model_open: unsafe extern "C" fn(
        backend: *mut BackendHandle,
        desc: *const ModelDesc,
        out: *mut *mut ModelHandle,
    ) -> *mut Error,
    /// Closes a model that has no instance left.
    pub model_close: unsafe extern "C" fn(model: *mut ModelHandle),

    /// Opens an instance on its own thread, one at a time per backend unless `PARALLEL_OPEN`.
    /// `desc` is valid until `instance_close`.
    pub instance_open: unsafe extern "C" fn(
        model: *mut ModelHandle,
        desc: *const InstanceDesc,
        out: *mut *mut InstanceHandle,
    ) -> *mut Error,
    /// Closes an instance, on its own thread.
    pub instance_close: unsafe extern "C" fn(instance: *mut InstanceHandle),

    /// Executes a batch on the instance's thread or, with `ANY_THREAD`, on any thread; never twice
    /// at once for an instance. An error means that nothing was accepted: the host still owns every
    /// request. Success means that the backend finishes each request and releases its handle
    /// exactly once, now or later, on any thread. What is neither finished nor detached when
    /// `execute` returns, the host fails and releases.
    pub execute:
        unsafe extern "C" fn(instance: *mut InstanceHandle, batch: *mut Batch) -> *mut Error,

    /// Returns an extension table of at least this version, or null when the backend has no such
    /// extension or only an older version. The table is static. Called when the library is loaded
    /// and when models are opened. Null = the backend offers none.
    pub get_extension: Option<unsafe extern "C" fn(name: Str, version: u32) -> *const u8>,
}

/// The entry symbol, `trts_backend_main`: takes the host table, valid for the life of the process,
/// and returns the backend table, which is static. A backend that cannot run on this host returns
/// its table all the same: the host compares `abi_major` and `abi_minor` and reports both. Null =
/// the backend refuses the host for another reason.
pub type BackendMain = unsafe extern "C" fn(host: *const HostTable) -> *const BackendTable;

/// What a Rust backend exports beside the symbol: the same `main`, in a root module whose types
/// abi_stable compares, down to `Tensor`, before it is called.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = BackendModuleRef)))]
#[sabi(missing_field(option))]
pub struct BackendModule {
    /// As `trts_backend_main`: the type is [`BackendMain`].
    #[sabi(last_prefix_field)]
    pub main: unsafe extern "C" fn(host: *const HostTable) -> *const BackendTable,
}

impl RootModule for BackendModuleRef {
    abi_stable::declare_root_module_statics! {BackendModuleRef}
    const BASE_NAME: &'static str = "trtserver_backend";
    const NAME: &'static str = "trtserver_backend";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
