//! Backend versions and the model versions that use them, for `/v2/backends` and the log.

use super::ModelTable;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use trtserver_model_store::{CacheReport, CacheUsage};
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::backend_facts::BackendFacts;
use trtserver_plugin_host::{Backends, Isolation, PluginFile};

/// One version of a backend, and the model versions that use it.
pub struct BackendStatus {
    pub facts: BackendFacts,
    pub file: PluginFile,
    /// Models are isolated unless their configuration says otherwise.
    pub isolated: bool,
    /// Used by models that name no backend version.
    pub default: bool,
    /// False if its file was deleted or replaced: further models do not use this version.
    pub installed: bool,
    /// Name, version, and whether the model is isolated.
    pub models: Vec<(String, i64, bool)>,
}

/// Backend versions, and files that cannot be used, with the reasons.
#[derive(Default)]
pub struct AllBackends {
    pub usable: Vec<BackendStatus>,
    pub unusable: Vec<(PathBuf, String)>,
}

impl ModelTable {
    /// Sets the backends that models are loaded with.
    pub fn set_backends(&self, backends: Arc<Backends>) {
        self.backends.store(Some(backends));
    }

    /// Sets the cache of the repositories.
    pub fn set_cache(&self, cache: Option<Arc<dyn CacheReport>>) {
        let _ = cache.map(|cache| self.cache.set(cache));
    }

    /// Use of the model cache; `None`: this server has no repository in an object store. Lists the
    /// files.
    pub fn cache_usage(&self) -> Option<CacheUsage> {
        self.cache.get()?.cache_usage()
    }

    /// Removes the copies of models from object stores, before the process ends: a thread that
    /// closes the last of them may not get to it.
    pub fn remove_copies(&self) {
        if let Some(cache) = self.cache.get() {
            cache.remove_copies();
        }
    }

    /// Model versions that are open, or being closed.
    pub fn live_models(&self) -> usize {
        self.backends.load().as_ref().map_or(0, |backends| backends.live_models())
    }

    /// Empty before backends were discovered.
    pub fn backends(&self) -> AllBackends {
        let Some(backends) = self.backends.load_full() else { return AllBackends::default() };
        let listed = backends.list().into_iter().map(|listed| {
            let status = BackendStatus {
                facts: listed.facts,
                file: listed.file,
                isolated: listed.isolation == Isolation::Process,
                default: listed.default,
                installed: true,
                models: Vec::new(),
            };
            (listed.in_use, status)
        });
        let mut usable: Vec<(Weak<PluginBackend>, BackendStatus)> = listed.collect();
        let mut models: Vec<_> = self.all().into_values().collect();
        models.sort_by(|a, b| a.name.cmp(&b.name));
        for version in models.iter().flat_map(|model| model.versions.values()) {
            let Some(served) = version.served() else { continue };
            let Some(used) = &served.backend else { continue };
            let at = usable.iter().position(|(of, _)| of.ptr_eq(&used.backend));
            let at = at.unwrap_or_else(|| {
                let status = BackendStatus {
                    facts: used.facts.clone(),
                    file: used.file.clone(),
                    isolated: used.isolated,
                    default: false,
                    installed: false,
                    models: Vec::new(),
                };
                usable.push((used.backend.clone(), status));
                usable.len() - 1
            });
            let status = &mut usable[at].1;
            status.facts.runtime.clone_from(&used.facts.runtime);
            status.models.push((served.name.to_string(), served.version, used.isolated));
        }
        let unusable = backends.unusable().into_iter().map(|(path, e)| (path, e.message));
        let usable = usable.into_iter().map(|(_, status)| status).collect();
        AllBackends { usable, unusable: unusable.collect() }
    }
}
