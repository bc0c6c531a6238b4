//! The plugin's table, the symbol that swaps it for the host's, and the layout-checked door for Rust plugins.

use super::call::{Batch, Call};
use super::describe::{About, InstanceDesc, ModelDesc};
use super::host::{HostTable, HostTable1_1};
use super::types::{
    BatcherHandle, Error, InstanceHandle, ModelHandle, Param, PluginHandle, Reply, Scope, Str,
};
use abi_stable::StableAbi;
use abi_stable::library::RootModule;
use abi_stable::package_version_strings;
use abi_stable::sabi_types::VersionStrings;

/// Entry points of a plugin. Entries returning `*mut Error` give null on success or an error made by
/// the host's `error_new`, which the host frees. The host holds no lock while it calls any of them. The server does not
/// call `model_probe`, `drain`, `instance_ready`, `trim` and the batcher yet: nothing may depend on them.
#[repr(C)]
#[derive(StableAbi)]
pub struct PluginTable {
    /// sizeof, as the plugin knows it.
    pub size: u64,
    /// The interface that the plugin was built for.
    pub abi_major: u32,
    pub abi_minor: u32,

    /// With null: facts of the library. With an open plugin: may narrow them (framework version).
    /// Never null; static, or valid until `plugin_close`.
    pub describe: unsafe extern "C" fn(plugin: *mut PluginHandle) -> *const About,
    /// Once per configured backend name, on a loader thread. `dir`: where the plugin's file lies.
    pub plugin_open: unsafe extern "C" fn(
        scope: *mut Scope,
        name: Str,
        dir: Str,
        settings: *const Param,
        n_settings: u32,
        out: *mut *mut PluginHandle,
    ) -> *mut Error,
    /// After the last model is closed. Must join the plugin's own threads.
    pub plugin_close: unsafe extern "C" fn(plugin: *mut PluginHandle),

    /// Confidence from 0 to 1000 that `dir` holds a model of this plugin.
    pub model_probe: Option<unsafe extern "C" fn(plugin: *mut PluginHandle, dir: Str) -> u32>,
    /// Fills in what the configuration leaves out, through the host's `config_patch`. Loader thread, may be slow.
    pub model_complete: Option<
        unsafe extern "C" fn(plugin: *mut PluginHandle, desc: *const ModelDesc) -> *mut Error,
    >,
    /// One per version, on a loader thread. `desc` lives until `model_close`.
    pub model_open: unsafe extern "C" fn(
        plugin: *mut PluginHandle,
        desc: *const ModelDesc,
        out: *mut *mut ModelHandle,
    ) -> *mut Error,
    /// When no instance is left.
    pub model_close: unsafe extern "C" fn(model: *mut ModelHandle),

    /// On the thread that will execute; one at a time per plugin unless `PARALLEL_OPEN`. `desc` lives until `instance_close`.
    pub instance_open: unsafe extern "C" fn(
        model: *mut ModelHandle,
        desc: *const InstanceDesc,
        out: *mut *mut InstanceHandle,
    ) -> *mut Error,
    /// The work, on the instance's thread or, with `ANY_THREAD`, on any other, one at a time. An error = nothing was accepted, the host still owns every call. Success = each call's
    /// reply must be ended and each request released exactly once, now or later, on any thread. What is
    /// neither ended nor retained when `execute` returns, the host ends with an error and releases.
    pub execute:
        unsafe extern "C" fn(instance: *mut InstanceHandle, batch: *mut Batch) -> *mut Error,
    /// Nobody waits any more for a call that the instance has: for those that wait for something else than the call's
    /// `cancelled` word, which was set before. From a thread of the host's, also during `execute`; must not block. At
    /// most once for a call. The instance stays open meanwhile. The call had not ended when the host looked and may end
    /// meanwhile, so `reply` is for comparing. A call that was cancelled before `execute` got it is not told of.
    pub cancel: Option<unsafe extern "C" fn(instance: *mut InstanceHandle, reply: *mut Reply)>,
    /// Finish or fail everything accepted until the given time.
    pub drain: Option<unsafe extern "C" fn(instance: *mut InstanceHandle, until_ns: u64)>,
    /// Non-zero = healthy. Any thread, quick.
    pub instance_ready: Option<unsafe extern "C" fn(instance: *mut InstanceHandle) -> u32>,
    /// Give caches back; `model` may be null for all. Returns the bytes freed.
    pub trim: Option<
        unsafe extern "C" fn(plugin: *mut PluginHandle, model: *mut ModelHandle, bytes: u64) -> u64,
    >,
    /// On the instance's thread.
    pub instance_close: unsafe extern "C" fn(instance: *mut InstanceHandle),

    /// Custom batching, on a scheduler thread: microseconds, no host calls but `log`.
    pub batcher_open: Option<
        unsafe extern "C" fn(model: *mut ModelHandle, out: *mut *mut BatcherHandle) -> *mut Error,
    >,
    pub batcher_begin: Option<unsafe extern "C" fn(batcher: *mut BatcherHandle) -> *mut Error>,
    /// Non-zero = take the call into the batch.
    pub batcher_offer:
        Option<unsafe extern "C" fn(batcher: *mut BatcherHandle, call: *const Call) -> u32>,
    pub batcher_end: Option<unsafe extern "C" fn(batcher: *mut BatcherHandle)>,
    pub batcher_close: Option<unsafe extern "C" fn(batcher: *mut BatcherHandle)>,
}

/// The one entry symbol, `trts_plugin_main`: takes the host's table (valid for ever), gives the
/// plugin's (static). A plugin that cannot run on this host still returns its table with its own
/// `abi_major` and `abi_minor`: the host compares and says so in words. Null = refused for another reason.
pub type PluginMain = unsafe extern "C" fn(host: *const HostTable) -> *const PluginTable;

/// What a Rust plugin exports beside nothing else: the same `main`, wrapped so that abi_stable
/// compares every type behind it, down to `Tensor`, before it is called.
#[repr(C)]
#[derive(StableAbi)]
#[sabi(kind(Prefix(prefix_ref = PluginModuleRef)))]
#[sabi(missing_field(option))]
pub struct PluginModule {
    #[sabi(last_prefix_field)]
    pub main: unsafe extern "C" fn(host: *const HostTable) -> *const PluginTable,
    /// Since 1.1: the same entry, with the types of that version, for the comparison. Hosts call `main`.
    pub main_1_1: unsafe extern "C" fn(host: *const HostTable1_1) -> *const PluginTable,
}

impl RootModule for PluginModuleRef {
    abi_stable::declare_root_module_statics! {PluginModuleRef}
    const BASE_NAME: &'static str = "trtserver_plugin";
    const NAME: &'static str = "trtserver_plugin";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}
