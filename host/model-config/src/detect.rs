//! Detects platform, backend and model file from the files of a model's versions: AutoFill of
//! TRTIS.

use std::path::PathBuf;

use trtserver_proto::v2::ModelConfig;

use super::ConfigError;
use super::platforms::{self, PlatformDirectory};
use crate::version_policy::select_versions;

/// Files and directories of a version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionListing {
    pub number: i64,
    pub dir: PathBuf,
    /// Names, sorted, and whether each is a directory.
    pub entries: Vec<(String, bool)>,
}

/// A platform of an installed backend. The platform is empty for a backend that declares none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlatformCandidate {
    pub backend: String,
    pub platform: String,
    /// Empty if there is none.
    pub default_file: String,
}

/// Asks backends about files (`trts.model_probe`).
pub trait FileProbe {
    /// The entry of `version` that is a model of `candidate`; `None` if the backend leaves it to
    /// the default file.
    ///
    /// # Errors
    /// Why no entry is such a model.
    fn probe(
        &self,
        config: &ModelConfig,
        candidate: &PlatformCandidate,
        version: &VersionListing,
    ) -> Result<Option<String>, String>;
}

impl VersionListing {
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.iter().any(|(entry, _)| entry == name)
    }

    /// `'/models/m/1' (which contains 'a/', 'b')`
    fn describe(&self) -> String {
        const SHOWN: usize = 8;
        let name = |(name, is_dir): &(String, bool)| match is_dir {
            true => format!("'{name}/'"),
            false => format!("'{name}'"),
        };
        let names: Vec<_> = self.entries.iter().take(SHOWN).map(name).collect();
        let more = match self.entries.len().saturating_sub(SHOWN) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        let names = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
        format!("'{}' (which contains {names}{more})", self.dir.display())
    }
}

/// What [`detect`] found, and why other candidates were passed over.
#[derive(Debug, Default)]
pub(super) struct DetectionResult {
    pub found: Option<(PlatformCandidate, String)>,
    /// A sentence about each version for which a backend gave reasons.
    pub reasons: Vec<String>,
}

/// All candidates of the installed backends, in the order in which they are tried.
pub(super) fn list_candidates(platforms: &dyn PlatformDirectory) -> Vec<PlatformCandidate> {
    let backends = platforms.installed_backends().into_iter();
    let mut all: Vec<_> =
        backends.flat_map(|backend| list_backend_candidates(&backend, platforms)).collect();
    all.sort_by_key(|candidate| platforms::platform_rank(&candidate.platform, &candidate.backend));
    all
}

/// The candidates of one backend: its platforms; if it declares none, the backend itself.
pub(super) fn list_backend_candidates(
    backend: &str,
    platforms: &dyn PlatformDirectory,
) -> Vec<PlatformCandidate> {
    let candidate = |platform: String, default_file: Option<String>| PlatformCandidate {
        backend: backend.to_owned(),
        platform,
        default_file: default_file.unwrap_or_default(),
    };
    let mut served = platforms.list_platforms(backend);
    served.sort_by_key(|platform| platforms::platform_rank(platform, backend));
    if served.is_empty() {
        return vec![candidate(String::new(), platforms.default_file(backend))];
    }
    served
        .into_iter()
        .map(|platform| {
            let file = platforms.default_file(&platform);
            candidate(platform, file)
        })
        .collect()
}

/// The candidate whose default file is `file`, else the only one whose default file has the same
/// extension.
pub(super) fn by_filename<'a>(
    file: &str,
    candidates: &'a [PlatformCandidate],
) -> Option<&'a PlatformCandidate> {
    if file.is_empty() {
        return None;
    }
    if let Some(exact) = candidates.iter().find(|candidate| candidate.default_file == file) {
        return Some(exact);
    }
    let (_, extension) = file.rsplit_once('.')?;
    let same = |default: &str| default.rsplit_once('.').is_some_and(|(_, e)| e == extension);
    let mut same = candidates.iter().filter(|candidate| same(&candidate.default_file));
    match (same.next(), same.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The versions that the version policy selects.
pub(super) fn select_candidates<'a>(
    config: &ModelConfig,
    versions: &'a [VersionListing],
) -> Vec<&'a VersionListing> {
    let numbers: Vec<i64> = versions.iter().map(|version| version.number).collect();
    let policy = config.version_policy.clone().unwrap_or_default();
    let selected = select_versions(&policy, &numbers).versions;
    versions.iter().filter(|version| selected.contains(&version.number)).collect()
}

/// Finds the model in each of `versions`: the first candidate that matches. A version without a
/// match is passed over; its load fails later.
///
/// # Errors
/// The versions hold models of different platforms or names.
pub(super) fn detect_platform(
    config: &ModelConfig,
    versions: &[&VersionListing],
    candidates: &[PlatformCandidate],
    probe: Option<&dyn FileProbe>,
) -> Result<DetectionResult, ConfigError> {
    let mut detected = DetectionResult::default();
    let mut first = None;
    for version in versions {
        let mut reasons = Vec::new();
        let mut matches = candidates.iter().filter_map(|candidate| {
            match probe_versions(config, candidate, version, probe) {
                Ok(file) => Some((candidate, file)),
                Err(why) => {
                    let reason =
                        |why| format!("no model of platform '{}': {why}", candidate.platform);
                    reasons.extend(why.map(reason));
                    None
                }
            }
        });
        let Some(found) = matches.next() else {
            if !reasons.is_empty() {
                detected.reasons.push(format!(
                    "{} holds {}",
                    version.describe(),
                    reasons.join("; ")
                ));
            }
            continue;
        };
        match &first {
            None => first = Some((version.number, found)),
            Some((_, same)) if *same == found => {}
            Some((number, (candidate, file))) => {
                return Err(ConfigError::invalid(format!(
                    "unable to autofill for '{}' due to multiple versions: version {number} holds '{file}' of platform \
                     '{}', version {} holds '{}' of platform '{}'",
                    config.name, candidate.platform, version.number, found.1, found.0.platform
                )));
            }
        }
    }
    detected.found = first.map(|(_, (candidate, file))| (candidate.clone(), file));
    Ok(detected)
}

/// The model of `candidate` in `version`. The error says why it is absent, if there is more to say
/// than that the default file is absent.
fn probe_versions(
    config: &ModelConfig,
    candidate: &PlatformCandidate,
    version: &VersionListing,
    probe: Option<&dyn FileProbe>,
) -> Result<String, Option<String>> {
    let found = match probe.filter(|_| !candidate.platform.is_empty()) {
        Some(probe) => probe.probe(config, candidate, version).map_err(Some)?,
        None => None,
    };
    let named = &config.default_model_filename;
    match found {
        Some(file) if named.is_empty() || *named == file => Ok(file),
        Some(file) => {
            Err(Some(format!("'{file}' is one, but the configuration names the file '{named}'")))
        }
        // A configuration that names another file leaves nothing to be detected.
        None if named.is_empty() && version.has(&candidate.default_file) => {
            Ok(candidate.default_file.clone())
        }
        None => Err(None),
    }
}
