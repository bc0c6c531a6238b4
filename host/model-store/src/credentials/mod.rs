//! Credentials for object stores: which sources there are, in which order, and what was found in
//! each.
//!
//! No text made here contains a secret.

mod azure;
mod file;
mod gcs;
mod profile;
mod s3;

pub use azure::find_azure_credentials;
pub use gcs::find_gcs_credentials;
pub use s3::{endpoint_in_environment, find_s3_credentials, with_ca_bundle};

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The environment in which credentials are searched.
#[derive(Clone, Debug, Default)]
pub struct CredentialEnvironment(BTreeMap<String, String>);

/// A source of credentials, and what was found there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CredentialSource {
    pub source: String,
    pub found: SourceOutcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceOutcome {
    /// These credentials are used; with what may be shown of them.
    Used(String),
    /// The source has none, for this reason.
    Nothing(String),
}

/// The sources that were looked at. Ends with the one that is used.
#[derive(Clone, Debug, Default)]
pub struct CredentialSources(pub Vec<CredentialSource>);

impl CredentialEnvironment {
    /// The environment of this process.
    pub fn from_process() -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self(std::env::vars_os().filter_map(text).collect())
    }

    /// A variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| matches!(value, "1" | "true" | "TRUE" | "True"))
    }

    /// The variables whose names start with `prefix`, with lower-case names.
    fn settings(&self, prefix: &'static str) -> impl Iterator<Item = (String, &str)> {
        let of_prefix = self.0.iter().filter(move |(name, _)| name.starts_with(prefix));
        of_prefix.map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
    }

    /// A path below the home directory.
    fn home(&self, path: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.get("HOME")?).join(path))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for CredentialEnvironment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(variables.into_iter().map(|(n, v)| (n.to_owned(), v.to_owned())).collect())
    }
}

impl CredentialSources {
    fn nothing(&mut self, source: impl Into<String>, why: impl Into<String>) {
        self.0.push(CredentialSource {
            source: source.into(),
            found: SourceOutcome::Nothing(why.into()),
        });
    }

    fn used(&mut self, source: impl Into<String>, what: impl Into<String>) {
        self.0.push(CredentialSource {
            source: source.into(),
            found: SourceOutcome::Used(what.into()),
        });
    }

    /// Looks for all of these variables; `None`, with a note, if one is not set.
    fn variables<'a, const N: usize>(
        &mut self,
        env: &'a CredentialEnvironment,
        names: [&str; N],
    ) -> Option<[&'a str; N]> {
        let values = names.map(|name| env.get(name));
        let missing: Vec<&str> = names
            .iter()
            .zip(values)
            .filter(|(_, value)| value.is_none())
            .map(|(n, _)| *n)
            .collect();
        if !missing.is_empty() {
            let which =
                if missing.len() == N { String::new() } else { missing.join(" and ") + " " };
            self.nothing(names.join(" and "), format!("{which}not set"));
            return None;
        }
        Some(values.map(Option::unwrap_or_default))
    }

    /// The source that is used.
    pub fn chosen(&self) -> Option<&CredentialSource> {
        self.0.iter().find(|tried| matches!(tried.found, SourceOutcome::Used(_)))
    }
}

impl fmt::Display for CredentialSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            SourceOutcome::Used(what) if what.is_empty() => write!(f, "{}: used", self.source),
            SourceOutcome::Used(what) => write!(f, "{}: used ({what})", self.source),
            SourceOutcome::Nothing(why) => write!(f, "{}: {why}", self.source),
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
