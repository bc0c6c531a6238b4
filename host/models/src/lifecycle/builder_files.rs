//! Opens the model files of a version, after a look at what they are and where they lie.

use super::builder_instances::threads_each;
use super::client_loads::judge_model_file;
use super::version_builder::VersionBuilder;
use crate::instance::group::InstancePlan;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::host_policy::HostPolicy;
use trtserver_plugin_host::ModelFacts;
use trtserver_plugin_host::backend::CompletedConfig;
use trtserver_plugin_host::batch::gpu::pinned_inputs::PinnedInputs;
use trtserver_plugin_host::model::BackendModel;
use trtserver_request::ModelSignature;
use trtserver_request::buffer::InputPool;

/// A model file of a version, and the backend's model that was opened from it.
pub(super) struct OpenFile {
    pub file: String,
    pub model: Arc<BackendModel>,
}

impl VersionBuilder {
    /// What the completion of the configuration handed over for opening version `number` from
    /// `file`: completions read the default model file.
    fn take_completed(&self, number: i64, file: &str) -> Option<CompletedConfig> {
        if file != self.config.default_model_filename {
            return None;
        }
        self.completed.lock().take_if(|(of, _)| *of == number).map(|(_, completed)| completed)
    }

    /// Opens the backend's models of a version, one for each model file of `plans`:
    /// `cc_model_filenames` may name different files for the GPUs of this machine.
    pub(super) fn open_models(
        &self,
        signature: &ModelSignature,
        number: i64,
        dir_name: &str,
        plans: &[InstancePlan],
    ) -> Result<Vec<OpenFile>> {
        let mut files: Vec<OpenFile> = Vec::new();
        for plan in plans {
            if files.iter().any(|open| open.file == plan.file) {
                continue;
            }
            self.check_file(dir_name, &plan.file)?;
            let completed = self.take_completed(number, &plan.file);
            let facts = ModelFacts {
                name: &self.config.name,
                version: number,
                dir: self.dir.path(),
                version_dir: &self.dir.path().join(dir_name),
                file: &plan.file,
                config: &self.config,
                signature,
                n_instances: plans.iter().filter(|of| of.file == plan.file).count() as u32,
                threads: plan.host_policy.limit_threads(threads_each(plans.len())),
                host_policy: shared_policy(plans),
                state: completed.as_ref().map_or(std::ptr::null_mut(), CompletedConfig::state),
            };
            let in_process = self.cancel.calls(&self.backend, &self.config)?;
            let model = BackendModel::open(&self.backend, &facts, self.cancel.flag())?;
            drop((in_process, completed));
            self.cancel.opened(&model.health());
            files.push(OpenFile { file: plan.file.clone(), model });
        }
        Ok(files)
    }

    /// The model file must be a regular file or a directory where it exists: a backend that opens a
    /// FIFO would hang. It must lie where files of the model may lie.
    pub fn check_file(&self, dir_name: &str, file: &str) -> Result<()> {
        let version_dir = self.dir.path().join(dir_name);
        judge_model_file(&self.config.name, &self.places, &version_dir, file)?;
        let path = version_dir.join(file);
        match std::fs::metadata(&path) {
            Ok(found) if !found.is_file() && !found.is_dir() => Err(Error::invalid(format!(
                "model '{}': '{}' is neither a regular file nor a directory",
                self.config.name,
                path.display()
            ))),
            _ => Ok(()),
        }
    }
}

/// The policy with settings that all instances have.
pub(super) fn shared_policy(plans: &[InstancePlan]) -> Option<&HostPolicy> {
    let first = &plans.first()?.host_policy;
    let shared = first.has_settings() && plans.iter().all(|plan| plan.host_policy == *first);
    shared.then_some(&**first)
}

/// Pinned memory for large bodies of a model whose instances are all on GPUs, the first on `gpu`.
pub(super) fn input_pool(model: &BackendModel, gpu: Option<i32>) -> Option<Arc<dyn InputPool>> {
    if model.is_isolated() || !model.backend.facts.takes_gpu_memory() {
        return None;
    }
    let device = trtserver_device::find_gpu(gpu?).ok()?;
    Some(Arc::new(PinnedInputs(device)))
}
