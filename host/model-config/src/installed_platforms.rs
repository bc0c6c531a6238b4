//! Platforms of the installed backends and the files that they recognise, for `model_config`.

use crate::{FileProbe, PlatformCandidate, PlatformDirectory, VersionListing};
use std::path::{Path, PathBuf};
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_plugin_host::discovery::backends::VERSION_PARAMETER;
use trtserver_plugin_host::{Backends, ProbeFacts};
use trtserver_proto::v2::ModelConfig;

impl PlatformDirectory for Backends {
    fn find_backend(&self, platform: &str) -> Option<String> {
        self.inventory().backend_for(platform, None).map(|b| b.facts.name.clone())
    }

    fn list_platforms(&self, backend: &str) -> Vec<String> {
        self.inventory().default_version(backend).map_or(Vec::new(), |i| {
            i.backend.facts.platforms.iter().map(|(platform, _)| platform.clone()).collect()
        })
    }

    fn default_file(&self, platform_or_backend: &str) -> Option<String> {
        let inventory = self.inventory();
        let of_platform = inventory.backend_for(platform_or_backend, None).and_then(|b| {
            b.facts.platforms.iter().find(|(p, _)| p == platform_or_backend).map(|(_, file)| file)
        });
        let of_backend = || {
            let facts = &inventory.default_version(platform_or_backend)?.backend.facts;
            facts.platforms.first().map(|(_, file)| file).or(facts.default_file.as_ref())
        };
        of_platform.or_else(of_backend).filter(|f| !f.is_empty()).cloned()
    }

    fn installed_backends(&self) -> Vec<String> {
        self.inventory().names().into_iter().map(str::to_owned).collect()
    }

    fn unusable(&self, backend: &str) -> Vec<String> {
        let inventory = self.inventory();
        let of_backend = inventory.unusable.iter().filter(|unusable| unusable.name == backend);
        of_backend.map(|unusable| unusable.error.message.clone()).collect()
    }

    fn searched_dirs(&self) -> Vec<PathBuf> {
        self.dirs().into_iter().map(Path::to_owned).collect()
    }
}

/// Installed backends and one whose library is in the model's directory. It takes the place of an
/// installed one of its name.
pub struct WithOwnBackend<'a> {
    pub installed: &'a Backends,
    pub own: &'a PluginBackend,
}

impl PlatformDirectory for WithOwnBackend<'_> {
    fn find_backend(&self, platform: &str) -> Option<String> {
        self.installed.find_backend(platform).filter(|backend| *backend != self.own.facts.name)
    }

    fn list_platforms(&self, backend: &str) -> Vec<String> {
        match backend == self.own.facts.name {
            // An adapter's library serves whatever the configuration calls its platform.
            true => Vec::new(),
            false => self.installed.list_platforms(backend),
        }
    }

    fn default_file(&self, platform_or_backend: &str) -> Option<String> {
        let own = &self.own.facts;
        if platform_or_backend == own.name {
            return own.default_file.clone();
        }
        match self.installed.find_backend(platform_or_backend) {
            Some(backend) if backend == own.name => None,
            _ => self.installed.default_file(platform_or_backend),
        }
    }

    fn installed_backends(&self) -> Vec<String> {
        let mut names = self.installed.installed_backends();
        if !names.contains(&self.own.facts.name) {
            names.push(self.own.facts.name.clone());
        }
        names
    }

    fn searched_dirs(&self) -> Vec<PathBuf> {
        self.installed.searched_dirs()
    }
}

/// The model's own backend is not asked: an adapter's library has no function for it.
impl FileProbe for WithOwnBackend<'_> {
    fn probe(
        &self,
        config: &ModelConfig,
        candidate: &PlatformCandidate,
        version: &VersionListing,
    ) -> Result<Option<String>, String> {
        match candidate.backend == self.own.facts.name {
            true => Ok(None),
            false => self.installed.probe(config, candidate, version),
        }
    }
}

impl FileProbe for Backends {
    fn probe(
        &self,
        config: &ModelConfig,
        candidate: &PlatformCandidate,
        version: &VersionListing,
    ) -> Result<Option<String>, String> {
        let inventory = self.inventory();
        let requested = config.parameters.get(VERSION_PARAMETER).map(|v| &*v.string_value);
        let Some(installed) = inventory.matching_or_default(&candidate.backend, requested) else {
            return Ok(None);
        };
        let facts = ProbeFacts {
            model: &config.name,
            version: version.number,
            version_dir: &version.dir,
            platform: &candidate.platform,
            default_file: &candidate.default_file,
            entries: &version.entries,
        };
        installed.backend.probe(config, &facts).map_err(|e| e.message)
    }
}
