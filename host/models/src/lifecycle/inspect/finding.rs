//! A finding of `trtserver check`: severity, kind, file, line and column, and the text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use trtserver_model_config::{ConfigPart, ConfigWarning};
use trtserver_proto::text::TextPlaces;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum FindingSeverity {
    /// The model or version would not load.
    Error,
    /// It would load, but not as its files say.
    Warning,
}

/// Something that is wrong with a model or a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFinding {
    pub severity: FindingSeverity,
    /// For scripts: `config`, `field`, `file`, `labels`, `versions`, `ensemble`, `repository` or
    /// `open`.
    pub kind: &'static str,
    pub file: PathBuf,
    /// Line and column, from 1.
    pub position: Option<(usize, usize)>,
    pub message: String,
}

/// One model, and what is wrong with it.
#[derive(Clone, Debug, Default)]
pub struct CheckedModel {
    pub name: String,
    /// One, unless the model is in several repositories.
    pub dirs: Vec<PathBuf>,
    pub findings: Vec<CheckFinding>,
}

/// The findings of all repositories.
#[derive(Clone, Debug, Default)]
pub struct RepositoryFindings {
    /// Findings about the repositories themselves, not about a model.
    pub findings: Vec<CheckFinding>,
    pub models: BTreeMap<String, CheckedModel>,
}

impl RepositoryFindings {
    pub fn count(&self, severity: FindingSeverity) -> usize {
        let for_models = self.models.values().flat_map(|model| &model.findings);
        self.findings.iter().chain(for_models).filter(|f| f.severity == severity).count()
    }
}

impl CheckFinding {
    pub fn error(kind: &'static str, file: PathBuf, message: impl Into<String>) -> Self {
        Self {
            severity: FindingSeverity::Error,
            kind,
            file,
            position: None,
            message: message.into(),
        }
    }

    pub fn warning(kind: &'static str, file: PathBuf, message: impl Into<String>) -> Self {
        Self { severity: FindingSeverity::Warning, ..Self::error(kind, file, message) }
    }
}

/// Makes findings about a configuration file, with line and column where they are known.
pub(super) struct FindingLocator<'a> {
    path: &'a Path,
    places: Option<&'a TextPlaces>,
}

impl<'a> FindingLocator<'a> {
    pub fn new(path: &'a Path, places: Option<&'a TextPlaces>) -> Self {
        Self { path, places }
    }

    /// The model is refused with `message`, which is about `part`.
    pub fn refused(&self, message: &str, part: ConfigPart) -> CheckFinding {
        // The finding names the file itself.
        let path = format!("{}:", self.path.display());
        let message = message.strip_prefix(&path).unwrap_or(message).trim_start();
        let found = CheckFinding::error("config", self.path.to_owned(), message);
        match part {
            ConfigPart::Unknown => found,
            ConfigPart::Field(field) => {
                CheckFinding { position: self.nearest(field, message), ..found }
            }
            ConfigPart::Position(line, column) => {
                let before = format!("{line}:{column}: ");
                let message = message.strip_prefix(&before).unwrap_or(message).to_owned();
                CheckFinding { position: Some((line, column)), message, ..found }
            }
        }
    }

    pub fn warning(&self, warning: &ConfigWarning) -> CheckFinding {
        let ConfigWarning { field, message } = warning;
        let kind = if field.is_empty() { "versions" } else { "field" };
        self.warning_of_kind(kind, field, message)
    }

    pub fn warning_of_kind(&self, kind: &'static str, field: &str, message: &str) -> CheckFinding {
        let found = CheckFinding::warning(kind, self.path.to_owned(), message);
        let position = if field.is_empty() { None } else { self.nearest(field, message) };
        CheckFinding { position, ..found }
    }

    /// The finding at the place of `field` in the configuration, if it is there.
    pub fn at_field(&self, finding: CheckFinding, field: &str) -> CheckFinding {
        match self.places.and_then(|places| places.find(field)) {
            Some(place) => CheckFinding {
                file: self.path.to_owned(),
                position: Some((place.line, place.column)),
                ..finding
            },
            None => finding,
        }
    }

    fn nearest(&self, field: &str, message: &str) -> Option<(usize, usize)> {
        // What messages quote are names of fields and values.
        let quoted: Vec<&str> = message.split('\'').skip(1).step_by(2).collect();
        let place = self.places?.nearest(field, &quoted)?;
        Some((place.line, place.column))
    }
}

#[cfg(test)]
#[path = "finding_tests.rs"]
mod tests;
