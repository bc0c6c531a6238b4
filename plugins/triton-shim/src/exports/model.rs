//! `TRITONBACKEND_Model*` except instances: name, directories, configuration, state.

use super::guard::{List, Out, export};
use crate::fault::Fault;
use crate::handles::{Live, create};
use crate::objects::attributes::{BufferAttributes, memory};
use crate::objects::backend::Backend;
use crate::objects::message::Message;
use crate::objects::model::Model;
use crate::objects::server::Server;
use crate::scope::Scope;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

export! {
    /// The name, owned by the model.
    fn TRITONBACKEND_ModelName(model: Live<Model>, name: Out<*const c_char>) {
        name.set(model.name.as_ptr());
    }

    /// The version.
    fn TRITONBACKEND_ModelVersion(model: Live<Model>, version: Out<u64>) {
        version.set(model.version);
    }

    /// The model's directory without the version, owned by the model.
    fn TRITONBACKEND_ModelRepository(
        model: Live<Model>,
        artifact_type: Out<c_int>,
        location: Out<*const c_char>,
    ) {
        artifact_type.set(0);
        location.set(model.dir.as_ptr());
    }

    /// The configuration with all defaults, a message owned by the caller.
    fn TRITONBACKEND_ModelConfig(
        model: Live<Model>,
        config_version: u32,
        model_config: Out<*mut Message>,
    ) {
        Model::check_config_version(config_version)?;
        model_config.set(create(Message { json: model.config() }).raw());
    }

    /// Whether the backend may complete the configuration.
    fn TRITONBACKEND_ModelAutoCompleteConfig(model: Live<Model>, auto_complete_config: Out<u8>) {
        auto_complete_config.set(model.autocomplete.into());
    }

    /// Completes the configuration, in `TRITONBACKEND_ModelInitialize` only. The message stays the caller's.
    fn TRITONBACKEND_ModelSetConfig(
        model: Live<Model>,
        config_version: u32,
        model_config: Live<Message>,
    ) {
        Model::check_config_version(config_version)?;
        crate::completion::set_config(&model, &model_config.json)?;
    }

    /// The token for nested inference, owned by the server.
    fn TRITONBACKEND_ModelServer(model: Live<Model>, server: Out<*mut Server>) {
        server.set(model.server.raw());
    }

    /// The backend of the model.
    fn TRITONBACKEND_ModelBackend(model: Live<Model>, backend: Out<*mut Backend>) {
        backend.set(model.backend.raw());
    }

    /// The backend's own pointer.
    fn TRITONBACKEND_ModelState(model: Live<Model>, state: Out<*mut c_void>) {
        state.set(model.state.load(Ordering::Acquire));
    }

    /// Stores the backend's own pointer.
    fn TRITONBACKEND_ModelSetState(model: Live<Model>, state: *mut c_void) {
        model.state.store(state, Ordering::Release);
    }

    /// Reports memory that the model has beside the server's. The list stays the caller's.
    fn TRITONBACKEND_ModelReportMemoryUsage(
        model: Live<Model>,
        usage: List<BufferAttributes>,
        usage_size: u32,
    ) {
        report_memory(&model.scope(), &usage.of(usage_size.into())?)?;
    }
}

/// Passes a memory report on to the host.
pub(super) fn report_memory(
    scope: &Scope,
    usage: &[Live<BufferAttributes>],
) -> crate::fault::Result<()> {
    for entry in usage {
        let (kind, id) =
            (entry.memory_type.load(Ordering::Relaxed), entry.memory_id.load(Ordering::Relaxed));
        let memory = memory(kind, id).ok_or_else(|| {
            Fault::misuse(format_args!("memory type {kind} with id {id} does not exist"))
        })?;
        scope.report(memory, entry.bytes.load(Ordering::Relaxed))?;
    }
    Ok(())
}
