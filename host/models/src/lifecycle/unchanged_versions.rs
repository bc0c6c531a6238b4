//! Which open versions a reload leaves open: a version of which no file and no setting has changed.
//! Its queues and sequences stay as they are, and its instances too unless the instance groups have
//! changed.

use super::super::Model;
use super::ModelVersion;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use trtserver_model_config::FILE_NAME;
use trtserver_model_store::fingerprint::ModelFingerprint;
use trtserver_plugin_host::backend::PluginBackend;
use trtserver_proto::v2::ModelConfig;

/// The versions of the entry before a reload that it may leave open.
#[derive(Default)]
pub(super) struct UnchangedVersions<'a> {
    /// With the fingerprints before and now; `None`: all versions are reopened.
    compared: Option<(&'a Model, &'a ModelFingerprint, &'a ModelFingerprint)>,
    /// Versions with another backend are reopened.
    backend: Option<&'a Arc<PluginBackend>>,
    /// The instance groups differ.
    pub resized: bool,
}

impl<'a> UnchangedVersions<'a> {
    /// Compares the load of `config` with the one that `old` comes from. `backend`: versions must
    /// have this one; `None`: they keep the one they have.
    pub(super) fn between(
        old: Option<&'a Model>,
        fingerprint: Option<&'a ModelFingerprint>,
        config: &ModelConfig,
        backend: Option<&'a Arc<PluginBackend>>,
    ) -> Self {
        let compared = (|| {
            let (old, now) = (old?, fingerprint?);
            let (before, old_config) =
                (old.load_info.fingerprint.as_ref()?, old.config.as_deref()?);
            let labels = label_files(old_config).chain(label_files(config));
            let labels: BTreeSet<&Path> = labels.collect();
            let read_anew = |path: &Path| path == Path::new(FILE_NAME) || labels.contains(path);
            let same = before.has_same_shared_files(now, read_anew)
                && opened_with(old_config) == opened_with(config);
            same.then_some((old, before, now))
        })();
        let groups = |old: &Model| old.config.as_ref().map(|config| config.instance_group.clone());
        let resized = old.and_then(groups).is_some_and(|groups| groups != config.instance_group);
        Self { compared, backend, resized }
    }

    /// Version `number`, in the directory `dir_name`, if it can stay open.
    pub(super) fn version(&self, number: i64, dir_name: &str) -> Option<&'a Arc<ModelVersion>> {
        let (old, before, now) = self.compared?;
        let version = old.versions.get(&number).filter(|version| version.is_sound())?;
        let open = version.served()?;
        let used = open.backend.as_ref()?;
        let same_backend = self.backend.is_none_or(|backend| used.is(backend));
        (same_backend && before.has_same_version(now, dir_name)).then_some(version)
    }
}

/// The part of a configuration that queues, sequences and single instances depend on.
fn opened_with(config: &ModelConfig) -> ModelConfig {
    let mut config = config.clone();
    config.version_policy = None;
    config.metric_tags.clear();
    config.instance_group.clear();
    config.output.iter_mut().for_each(|output| output.label_filename.clear());
    config
}

fn label_files(config: &ModelConfig) -> impl Iterator<Item = &Path> {
    config.output.iter().map(|output| Path::new(&output.label_filename))
}
