//! What `open` receives: views of the host's descriptors, borrowed for the call; copy what you
//! store.

use super::dtype::Dtype;
use super::host::{Host, as_blob, as_slice, as_text};
use super::scope::Scope;
use super::value::{Params, Value};
use crate::abi;
use crate::abi::descriptors::{InstanceDesc, ModelDesc, SecondaryDevice, instance_kind};
use crate::abi::host::host_flags;
use crate::abi::types::{Param, Str, tensor_flags};
use std::any::Any;
use std::marker::PhantomData;

/// For [`super::Backend::open`].
pub struct BackendContext {
    name: String,
    dir: String,
    settings: &'static [Param],
    scope: Scope,
}

impl BackendContext {
    /// # Safety
    /// All arguments stay valid while the context exists.
    pub(crate) unsafe fn new(
        name: Str,
        dir: Str,
        settings: *const Param,
        n_settings: u32,
        scope: Scope,
    ) -> BackendContext {
        // SAFETY: by the caller's promise; accessors return nothing that outlives the context.
        unsafe {
            BackendContext {
                name: as_text(name).to_owned(),
                dir: as_text(dir).to_owned(),
                settings: as_slice(settings, n_settings.into()),
                scope,
            }
        }
    }

    /// The name under which models ask for this backend.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Directory of the plugin file.
    pub fn dir(&self) -> &str {
        &self.dir
    }

    /// Whether this is a child process that runs one model of this backend and nothing else.
    pub fn isolated(&self) -> bool {
        Host::get().is_some_and(|host| host.flags & host_flags::ISOLATED != 0)
    }

    /// Whether the host has found GPUs, and offers the extension
    /// [`DEVICE`](crate::abi::extensions::DEVICE).
    pub fn has_gpus(&self) -> bool {
        Host::get().is_some_and(|host| host.device().is_some())
    }

    /// Server-wide settings: `--backend-config=NAME,key=value`.
    pub fn settings(&self) -> Params<'_> {
        // SAFETY: the promise of `new`.
        unsafe { Params::new(self.settings) }
    }

    /// The text of one of them.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings().text(key)
    }

    /// Version of the host.
    pub fn host_version(&self) -> &str {
        // SAFETY: a host table is valid for the life of the process.
        Host::get().map_or("", |host| unsafe { as_text(host.version) })
    }

    /// Log, progress and metrics of the backend.
    pub fn log(&self) -> &Scope {
        &self.scope
    }
}

/// For [`super::Model::open`] and [`super::Backend::autocomplete`]: one version of a model.
pub struct ModelContext {
    raw: &'static ModelDesc,
    scope: Scope,
}

impl ModelContext {
    /// # Safety
    /// The descriptor stays valid while the context exists.
    pub(crate) unsafe fn new(host: Host, raw: *const ModelDesc) -> ModelContext {
        // SAFETY: by the caller's promise; accessors return nothing that outlives the context.
        unsafe { ModelContext { raw: &*raw, scope: Scope::new(host, (*raw).scope) } }
    }

    /// Name of the model.
    pub fn name(&self) -> &str {
        self.text(self.raw.name)
    }

    /// Number of the version, which is the name of its directory.
    pub fn version(&self) -> i64 {
        self.raw.version
    }

    /// The model's directory in the repository.
    pub fn dir(&self) -> &str {
        self.text(self.raw.dir)
    }

    /// The directory of this version.
    pub fn version_dir(&self) -> &str {
        self.text(self.raw.version_dir)
    }

    /// The model's file, or directory, inside the version directory.
    pub fn file(&self) -> &str {
        self.text(self.raw.file)
    }

    /// The effective configuration as JSON, with all defaults.
    pub fn config_json(&self) -> &str {
        self.text(self.raw.config_json)
    }

    /// The effective `ModelConfig`, serialized.
    pub fn config_pb(&self) -> &[u8] {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { as_blob(self.raw.config_pb) }
    }

    /// Server-wide settings of this backend.
    pub fn settings(&self) -> Params<'_> {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { Params::new(as_slice(self.raw.settings, self.raw.n_settings.into())) }
    }

    /// A server-wide setting as text: `--backend-config=NAME,key=value`.
    pub fn setting(&self, key: &str) -> Option<&str> {
        self.settings().text(key)
    }

    /// The model's own parameters: `parameters { key: … }` of its configuration.
    pub fn parameters(&self) -> Params<'_> {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { Params::new(as_slice(self.raw.params, self.raw.n_params.into())) }
    }

    /// A parameter of the model as text.
    pub fn parameter(&self, key: &str) -> Option<&str> {
        self.parameters().text(key)
    }

    /// As [`ModelContext::parameter`], for numbers and booleans.
    pub fn value(&self, key: &str) -> Option<Value<'_>> {
        self.parameters().get(key)
    }

    /// Inputs in the order of the configuration.
    pub fn inputs(&self) -> impl ExactSizeIterator<Item = TensorDecl<'_>> {
        self.tensors(self.raw.inputs, self.raw.n_inputs)
    }

    /// Outputs in the order of the configuration.
    pub fn outputs(&self) -> impl ExactSizeIterator<Item = TensorDecl<'_>> {
        self.tensors(self.raw.outputs, self.raw.n_outputs)
    }

    /// 0 = the model does not batch.
    pub fn max_batch_size(&self) -> usize {
        usize::try_from(self.raw.max_batch_size).unwrap_or(0)
    }

    /// The backend may add what the configuration omits.
    pub fn autocomplete(&self) -> bool {
        self.raw.autocomplete != 0
    }

    /// For [`super::Model::open`]: what [`super::Backend::autocomplete`] handed over for this
    /// version with [`Completion::with_state`]. `None` if it did not, if the configuration was not
    /// completed, or if that happened in another process (isolated models).
    pub fn state<T: Any>(&self) -> Option<&T> {
        // SAFETY: null, or a state of `export.rs` in this library, which the host keeps until
        // `model_open` returns.
        unsafe { self.raw.state.cast::<State>().as_ref() }?.downcast_ref()
    }

    /// `optimization.graph.level`; 0 when unset.
    pub fn graph_level(&self) -> i32 {
        self.raw.graph_level
    }

    /// Instances that the host will open at first, over all instance groups. Their number may
    /// change while the model is open.
    pub fn n_instances(&self) -> usize {
        self.raw.n_instances as usize
    }

    /// Threads that the framework may use for each instance, at least 1.
    pub fn threads(&self) -> usize {
        self.raw.threads.max(1) as usize
    }

    /// Log, progress and metrics of the model.
    pub fn log(&self) -> &Scope {
        &self.scope
    }

    fn text(&self, text: Str) -> &str {
        // SAFETY: the descriptor and its texts are valid as long as `self`.
        unsafe { as_text(text) }
    }

    fn tensors(
        &self,
        p: *const abi::descriptors::TensorDecl,
        n: u32,
    ) -> impl ExactSizeIterator<Item = TensorDecl<'_>> {
        // SAFETY: the descriptor is valid as long as `self`.
        let all: &[abi::descriptors::TensorDecl] = unsafe { as_slice(p, n.into()) };
        all.iter().map(|raw| TensorDecl { raw, of: PhantomData })
    }
}

/// A tensor as the configuration declares it.
#[derive(Clone, Copy)]
pub struct TensorDecl<'a> {
    raw: &'a abi::descriptors::TensorDecl,
    of: PhantomData<&'a ModelContext>,
}

impl<'a> TensorDecl<'a> {
    /// As clients and the configuration call it.
    pub fn name(self) -> &'a str {
        // SAFETY: part of a descriptor that is valid for `'a`.
        unsafe { as_text(self.raw.name) }
    }

    /// Type of the elements.
    pub fn dtype(self) -> Dtype {
        Dtype::from_abi(self.raw.dtype)
    }

    /// Shape for clients, without the batch dimension; -1 = variable.
    pub fn dims(self) -> &'a [i64] {
        // SAFETY: part of a descriptor that is valid for `'a`.
        unsafe { as_slice(self.raw.dims, self.raw.rank.into()) }
    }

    /// Shape for the model: differs from `dims` where the configuration reshapes.
    pub fn model_dims(self) -> &'a [i64] {
        // SAFETY: part of a descriptor that is valid for `'a`.
        unsafe { as_slice(self.raw.model_dims, self.raw.model_rank.into()) }
    }

    /// Requests may omit this input.
    pub fn optional(self) -> bool {
        self.raw.flags & tensor_flags::OPTIONAL != 0
    }

    /// The values are a shape: never has a batch dimension.
    pub fn shape_tensor(self) -> bool {
        self.raw.flags & tensor_flags::SHAPE_TENSOR != 0
    }

    /// Shapes may differ within a batch: see [`super::Tensor::is_ragged`].
    pub fn ragged(self) -> bool {
        self.raw.flags & tensor_flags::RAGGED != 0
    }
}

/// Where an instance runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// On the CPU.
    Cpu,
    /// On a GPU.
    Gpu,
    /// The model decides.
    Model,
}

/// For [`super::Instance::open`].
pub struct InstanceContext {
    raw: &'static InstanceDesc,
    scope: Scope,
}

impl InstanceContext {
    /// # Safety
    /// The descriptor stays valid while the context exists.
    pub(crate) unsafe fn new(host: Host, raw: *const InstanceDesc) -> InstanceContext {
        // SAFETY: by the caller's promise; accessors return nothing that outlives the context.
        unsafe { InstanceContext { raw: &*raw, scope: Scope::new(host, (*raw).scope) } }
    }

    /// Name of the instance, for logs.
    pub fn name(&self) -> &str {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { as_text(self.raw.name) }
    }

    /// `{"NAME":{"cpu-cores":"0-3"}}`: the host policy of the instance group, with its settings.
    pub fn host_policy_json(&self) -> &str {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { as_text(self.raw.host_policy_json) }
    }

    /// Where the instance executes.
    pub fn kind(&self) -> Kind {
        match self.raw.kind {
            instance_kind::GPU => Kind::Gpu,
            instance_kind::MODEL => Kind::Model,
            _ => Kind::Cpu,
        }
    }

    /// Number among the model's instances, from 0.
    pub fn ordinal(&self) -> usize {
        self.raw.ordinal as usize
    }

    /// GPU ordinal.
    pub fn device_id(&self) -> Option<i32> {
        (self.raw.device_id >= 0).then_some(self.raw.device_id)
    }

    /// UUID of the GPU; zeros on the CPU.
    pub fn device_uuid(&self) -> [u8; 16] {
        self.raw.device_uuid
    }

    /// Opened, but not scheduled yet.
    pub fn passive(&self) -> bool {
        self.raw.passive != 0
    }

    /// Cores to which the instance's thread is pinned; empty = any.
    pub fn cpus(&self) -> &[u32] {
        // SAFETY: the descriptor is valid as long as `self`.
        unsafe { as_slice(self.raw.cpus, self.raw.n_cpus.into()) }
    }

    /// Threads that the framework may use for this instance, at least 1.
    pub fn threads(&self) -> usize {
        self.raw.threads.max(1) as usize
    }

    /// The memory node of the host policy; `None`: any.
    pub fn numa_node(&self) -> Option<i32> {
        (self.raw.numa_node >= 0).then_some(self.raw.numa_node)
    }

    /// Largest number of rows in one batch, at least 1.
    pub fn max_rows(&self) -> usize {
        self.raw.max_rows.max(1) as usize
    }

    /// CUDA driver handles owned by the host: primary context, compute stream, copy streams in and
    /// out. Null without a GPU.
    pub fn cuda(&self) -> [*mut u8; 4] {
        [self.raw.cu_context, self.raw.cu_stream, self.raw.cu_copy_in, self.raw.cu_copy_out]
    }

    /// Names of `instance_group.profile`.
    pub fn profiles(&self) -> impl ExactSizeIterator<Item = &str> {
        // SAFETY: the descriptor is valid as long as `self`.
        let all: &[Str] = unsafe { as_slice(self.raw.profiles, self.raw.n_profiles.into()) };
        // SAFETY: the host keeps the texts of the descriptor valid as long as the descriptor.
        all.iter().map(|text| unsafe { as_text(*text) })
    }

    /// Kind and number of each further device of the instance.
    pub fn secondary_devices(&self) -> impl ExactSizeIterator<Item = (&str, i64)> {
        // SAFETY: the descriptor is valid as long as `self`.
        let all: &[SecondaryDevice] =
            unsafe { as_slice(self.raw.secondary, self.raw.n_secondary.into()) };
        // SAFETY: the host keeps the texts of the descriptor valid as long as the descriptor.
        all.iter().map(|device| (unsafe { as_text(device.kind) }, device.id))
    }

    /// Log, progress and metrics of the instance.
    pub fn log(&self) -> &Scope {
        &self.scope
    }
}

/// Result of [`super::Backend::autocomplete`]. The default adds nothing.
#[derive(Default)]
pub struct Completion {
    pub(crate) patch: Option<ConfigPatch>,
    pub(crate) state: Option<State>,
}

/// A value between `autocomplete` and `model_open`.
pub(crate) type State = Box<dyn Any + Send + Sync>;

impl Completion {
    /// Hands `state` to [`super::Model::open`] of the same version, where [`ModelContext::state`]
    /// returns it: a model that was read for the completion need not be read again. It is dropped
    /// after that, or when the model is not opened; an `Arc` may be cloned there.
    #[must_use]
    pub fn with_state<T: Any + Send + Sync>(self, state: T) -> Completion {
        Completion { state: Some(Box::new(state)), ..self }
    }
}

impl From<ConfigPatch> for Completion {
    fn from(patch: ConfigPatch) -> Completion {
        Some(patch).into()
    }
}

impl From<Option<ConfigPatch>> for Completion {
    fn from(patch: Option<ConfigPatch>) -> Completion {
        Completion { patch, state: None }
    }
}

/// What [`super::Backend::autocomplete`] adds to a configuration. What the configuration has takes
/// precedence, field by field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConfigPatch {
    /// A serialized `ModelConfig` with the fields to add.
    Protobuf(Vec<u8>),
    /// The same as JSON.
    Json(String),
    /// Protobuf text, as in `config.pbtxt`.
    Text(String),
}
