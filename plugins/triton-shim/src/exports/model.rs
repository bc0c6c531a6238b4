//! `TRITONBACKEND_Model*` except instances: name, directories, configuration, state.

use super::guard::{List, Out, export};
use crate::fault::TritonFault;
use crate::handles::{LiveObject, create_object};
use crate::objects::attributes::{BufferAttributes, memory_location};
use crate::objects::backend::BackendObject;
use crate::objects::message::MessageObject;
use crate::objects::model::ModelObject;
use crate::objects::server::ServerToken;
use crate::scope::Scope;
use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

export! {
    /// The name, owned by the model.
    fn TRITONBACKEND_ModelName(model: LiveObject<ModelObject>, name: Out<*const c_char>) {
        name.set(model.name.as_ptr());
    }

    /// The version.
    fn TRITONBACKEND_ModelVersion(model: LiveObject<ModelObject>, version: Out<u64>) {
        version.set(model.version);
    }

    /// The model's directory without the version, owned by the model.
    fn TRITONBACKEND_ModelRepository(
        model: LiveObject<ModelObject>,
        artifact_type: Out<c_int>,
        location: Out<*const c_char>,
    ) {
        artifact_type.set(0);
        location.set(model.dir.as_ptr());
    }

    /// The configuration with all defaults, a message owned by the caller.
    fn TRITONBACKEND_ModelConfig(
        model: LiveObject<ModelObject>,
        config_version: u32,
        model_config: Out<*mut MessageObject>,
    ) {
        ModelObject::check_config_version(config_version)?;
        model_config.set(create_object(MessageObject { json: model.config() }).raw());
    }

    /// Whether the backend may complete the configuration.
    fn TRITONBACKEND_ModelAutoCompleteConfig(model: LiveObject<ModelObject>, auto_complete_config: Out<u8>) {
        auto_complete_config.set(model.autocomplete.into());
    }

    /// Completes the configuration, in `TRITONBACKEND_ModelInitialize` only. The message stays the
    /// caller's.
    fn TRITONBACKEND_ModelSetConfig(
        model: LiveObject<ModelObject>,
        config_version: u32,
        model_config: LiveObject<MessageObject>,
    ) {
        ModelObject::check_config_version(config_version)?;
        crate::completion::set_config(&model, &model_config.json)?;
    }

    /// The token for nested inference, owned by the server.
    fn TRITONBACKEND_ModelServer(model: LiveObject<ModelObject>, server: Out<*mut ServerToken>) {
        server.set(model.server.raw());
    }

    /// The backend of the model.
    fn TRITONBACKEND_ModelBackend(model: LiveObject<ModelObject>, backend: Out<*mut BackendObject>) {
        backend.set(model.backend.raw());
    }

    /// The backend's own pointer.
    fn TRITONBACKEND_ModelState(model: LiveObject<ModelObject>, state: Out<*mut c_void>) {
        state.set(model.state.load(Ordering::Acquire));
    }

    /// Stores the backend's own pointer.
    fn TRITONBACKEND_ModelSetState(model: LiveObject<ModelObject>, state: *mut c_void) {
        model.state.store(state, Ordering::Release);
    }

    /// Reports memory that the model has beside the server's. The list stays the caller's.
    fn TRITONBACKEND_ModelReportMemoryUsage(
        model: LiveObject<ModelObject>,
        usage: List<BufferAttributes>,
        usage_size: u32,
    ) {
        report_memory(&model.scope(), &usage.objects(usage_size.into())?)?;
    }
}

/// Passes a memory report on to the host.
pub(super) fn report_memory(
    scope: &Scope,
    usage: &[LiveObject<BufferAttributes>],
) -> crate::fault::Result<()> {
    for entry in usage {
        let (kind, id) =
            (entry.memory_type.load(Ordering::Relaxed), entry.memory_id.load(Ordering::Relaxed));
        let memory = memory_location(kind, id).ok_or_else(|| {
            TritonFault::misuse(format_args!("memory type {kind} with id {id} does not exist"))
        })?;
        scope.report(memory, entry.bytes.load(Ordering::Relaxed))?;
    }
    Ok(())
}
