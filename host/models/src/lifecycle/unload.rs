//! Unloads one model. Runs on a blocking thread, under the model's lock.

use super::super::memory::log_in_use;
use super::super::{ChangeKind, Model, ModelVersion, VersionState};
use super::version::UNLOADED;
use super::{LoadError, ModelControl};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long an unload waits for idle instances to close, so that its caller finds the model
/// unloaded.
const WAIT_IDLE: Duration = Duration::from_secs(1);
/// The same for a version with requests in flight. Enough for a request whose response is already
/// being sent; longer ones are not waited for.
const WAIT_BUSY: Duration = Duration::from_millis(20);

impl ModelControl {
    /// Takes every version of `name` out of service.
    pub(super) fn unload_model(&self, name: &str) -> Result<(), LoadError> {
        if self.is_stopping() {
            return Err(LoadError::Stopping);
        }
        let Some(mut model) = self.models.get(name) else { return Ok(()) };
        if model.refusal.is_some() && model.versions.is_empty() {
            // It was never loaded: back to the state before the refused load.
            let _stopping = self.stopping.lock();
            self.models.update(|models| drop(models.remove(name)));
            return Ok(());
        }
        if model.refusal.is_some() {
            model = model.without_refusal();
            self.publish(&model)?;
        }
        model.set_reload_failure(None);
        model.load_info.should_serve.store(false, Ordering::Relaxed);
        model.load_info.requested_by_name.store(false, Ordering::Relaxed);
        model.ending.close_all();
        let mut unloading = Vec::new();
        for version in model.versions.values() {
            if let Some(served) = version.served().filter(|_| version.is_loaded()) {
                tracing::info!("unloading: {name}:{}", version.number);
                let changes = &self.models.loads.changes;
                changes.add(&model.name, Some(version.number), ChangeKind::Unloading, "");
                let users = Arc::downgrade(&served);
                let queue_empty = served.scheduler.waiting() == 0;
                drop(served);
                model.set_unloading(version);
                let idle = queue_empty && users.strong_count() == 0;
                unloading.push((version, if idle { WAIT_IDLE } else { WAIT_BUSY }));
            } else if !version.is_unloaded() {
                model.set_unavailable(version, UNLOADED);
            }
        }
        for (version, limit) in unloading {
            if !version.usage().wait_until_unused(limit) {
                log_in_use(name, version.number, &version.isolated_memory());
            }
        }
        if !self.loader.polls {
            self.remove_deleted_models();
        }
        Ok(())
    }

    /// Takes a model out of service whose directory was removed. Its versions and counters stay
    /// visible until a model of that name is added, which begins anew.
    pub(super) fn remove_model(&self, name: &str) -> Result<(), LoadError> {
        self.unload_model(name)?;
        if let Some(model) = self.models.get(name) {
            model.load_info.deleted.store(true, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Removes models from the table that are neither loaded nor in any repository.
    fn remove_deleted_models(&self) {
        let is_open = |v: &Arc<ModelVersion>| v.status().0 != VersionState::Unavailable;
        let unserved =
            |model: &Arc<Model>| !model.should_serve() && !model.versions.values().any(is_open);
        // A repository that cannot be listed may have the model. Repositories are asked without the
        // lock.
        let deleted = |name: &str| self.repositories.find(name).is_ok_and(|found| found.is_empty());
        let models = self.models.all().into_iter();
        let deleted: Vec<String> = models
            .filter(|(name, model)| unserved(model) && deleted(name))
            .map(|(name, _)| name)
            .collect();
        if !deleted.is_empty() {
            let _stopping = self.stopping.lock();
            self.models.update(|models| {
                models.retain(|name, model| !(deleted.contains(name) && unserved(model)));
            });
        }
    }
}
