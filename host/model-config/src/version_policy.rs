//! Version policy: which of a model's versions are served. Pure.

use crate::ConfigError;
use trtserver_proto::v2::ModelVersionPolicy;
use trtserver_proto::v2::model_version_policy::PolicyChoice;

/// The versions that a policy selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SelectedVersions {
    /// To be served, ascending.
    pub versions: Vec<i64>,
    /// Named by the policy but without a directory, ascending.
    pub missing: Vec<i64>,
}

/// The versions that `policy` selects among `existing`. A policy without a choice is the default,
/// latest 1. `latest {}` asks for no version, as in Triton and in TRTIS from 1.0 on.
pub fn select_versions(policy: &ModelVersionPolicy, existing: &[i64]) -> SelectedVersions {
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
            let count = match choice {
                Some(PolicyChoice::Latest(latest)) => latest.num_versions,
                _ => 1,
            };
            let keep = usize::try_from(count).unwrap_or(usize::MAX);
            versions.drain(..versions.len().saturating_sub(keep));
        }
    }
    SelectedVersions { versions, missing }
}

impl SelectedVersions {
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
#[path = "version_policy_tests.rs"]
mod tests;
