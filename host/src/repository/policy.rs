//! Which versions of a model are served: what is on disk against the model's version policy. Pure.

use std::collections::BTreeMap;

use trtserver_proto::v2::ModelVersionPolicy;
use trtserver_proto::v2::model_version_policy::PolicyChoice;

use super::config::ConfigError;

/// What an entry of a model's directory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VersionEntry {
    Version(i64),
    /// Not a version and not meant to be one.
    Other,
    /// Not a version, though its name looks like one; the text is a warning for the operator.
    Skipped(String),
}

/// Directories of a model that have a meaning of their own.
const RESERVED: [&str; 3] = ["warmup", "initial_state", "configs"];

/// Reads the name of one entry: a directory counts by the digits its name begins with.
pub fn version_of_entry(name: &str, is_dir: bool) -> VersionEntry {
    let digits = &name[..name.bytes().take_while(u8::is_ascii_digit).count()];
    if !is_dir || RESERVED.contains(&name) || digits.is_empty() {
        return VersionEntry::Other;
    }
    if name.len() > 1 && name.starts_with('0') {
        let why = format!("ignoring version directory '{name}' which contains leading zeros");
        return VersionEntry::Skipped(why);
    }
    match digits.parse() {
        Ok(version) => VersionEntry::Version(version),
        Err(_) => {
            let why = format!("ignoring version directory '{name}' whose number is out of range");
            VersionEntry::Skipped(why)
        }
    }
}

/// The versions found in a model's directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Version and the name of its directory, ascending.
    pub versions: BTreeMap<i64, String>,
    pub warnings: Vec<String>,
}

/// Sorts out the entries, (name, is a directory), of a model's directory. Where two directories
/// stand for one number, the one that is spelled as the number is taken, else the first by name.
pub fn versions_of_entries<'a>(entries: impl IntoIterator<Item = (&'a str, bool)>) -> Found {
    let mut entries: Vec<_> = entries.into_iter().collect();
    // `3` sorts before every other name that begins with it.
    entries.sort_unstable();
    let mut found = Found::default();
    for (name, is_dir) in entries {
        match version_of_entry(name, is_dir) {
            VersionEntry::Other => {}
            VersionEntry::Skipped(why) => found.warnings.push(why),
            VersionEntry::Version(version) => match found.versions.get(&version) {
                None => {
                    found.versions.insert(version, name.to_owned());
                }
                Some(taken) => found.warnings.push(format!(
                    "ignoring version directory '{name}': version {version} is '{taken}'"
                )),
            },
        }
    }
    found
}

/// What a policy selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// To be served, ascending.
    pub versions: Vec<i64>,
    /// Asked for by number but not there, ascending.
    pub missing: Vec<i64>,
}

/// The versions that `policy` selects among `existing`. A policy without a choice is the default,
/// latest 1; so is "latest 0", as in TRTIS 0.12, because nobody asks for a model without versions.
pub fn wanted(policy: &ModelVersionPolicy, existing: &[i64]) -> Wanted {
    let mut versions = existing.to_vec();
    versions.sort_unstable();
    versions.dedup();
    let mut missing = Vec::new();
    match &policy.policy_choice {
        Some(PolicyChoice::All(_)) => {}
        Some(PolicyChoice::Specific(specific)) => {
            missing = specific.versions.clone();
            missing.retain(|version| !versions.contains(version));
            missing.sort_unstable();
            missing.dedup();
            versions.retain(|version| specific.versions.contains(version));
        }
        choice => {
            let asked = match choice {
                Some(PolicyChoice::Latest(latest)) => latest.num_versions.max(1),
                _ => 1,
            };
            let keep = usize::try_from(asked).unwrap_or(usize::MAX);
            versions.drain(..versions.len().saturating_sub(keep));
        }
    }
    Wanted { versions, missing }
}

impl Wanted {
    /// Refuses a selection that leaves `model` without versions.
    pub fn or_refuse(self, model: &str) -> Result<Self, ConfigError> {
        match self.versions.is_empty() {
            false => Ok(self),
            true => Err(ConfigError::invalid(format!(
                "at least one version must be available under the version policy of model '{model}'"
            ))),
        }
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
