//! The use of a backend by a model version, for its status and the log.

use std::sync::{Arc, Weak};
use trtserver_plugin_host::PluginFile;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::backend_facts::BackendFacts;
use trtserver_plugin_host::model::BackendModel;

/// The backend of a loaded model version. Does not keep the backend open.
pub struct BackendUse {
    /// Facts of the backend when the model was opened.
    pub facts: BackendFacts,
    pub file: PluginFile,
    /// The model runs in a process of its own.
    pub isolated: bool,
    /// An instance is on a GPU in this process, and takes inputs in its memory.
    pub on_gpu: bool,
    pub(super) backend: Weak<PluginBackend>,
}

impl BackendUse {
    /// `has_gpu`: an instance is on a GPU.
    pub fn from_model(model: &BackendModel, has_gpu: bool) -> Self {
        let backend = &model.backend;
        let facts = BackendFacts { runtime: backend.runtime(), ..backend.facts.clone() };
        let (file, isolated) = (backend.file.clone(), model.is_isolated());
        let on_gpu = has_gpu && !isolated && facts.takes_gpu_memory();
        Self { facts, file, isolated, on_gpu, backend: Arc::downgrade(backend) }
    }

    /// Whether this is a use of `backend`.
    pub fn is(&self, backend: &Arc<PluginBackend>) -> bool {
        std::ptr::eq(self.backend.as_ptr(), Arc::as_ptr(backend))
    }

    /// The mode as the log shows it.
    pub fn mode(&self) -> &'static str {
        if self.isolated { "isolated" } else { "local" }
    }
}
