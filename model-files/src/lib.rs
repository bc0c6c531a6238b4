//! Which files a model may name: one rule for the server and its plugins.
//!
//! A name in a configuration, a parameter or a model file is a relative path without `..`. The file
//! that it leads to, with all symbolic links resolved, lies in the model's directory or in one of
//! the roots: the repositories on local disk and the directories of `--model-link-dir`. So links
//! inside the operator's own stores work, and others are refused.
#![forbid(unsafe_code)]

mod real_path; // resolves the links of paths that need not exist
#[cfg(any(test, feature = "testing"))]
pub mod testing;

use real_path::real_path;
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The setting through which the server passes the roots to backends: absolute paths, each on a
/// line.
pub const ROOTS_SETTING: &str = "model-link-dirs";

/// Entries of a directory that [`FilePlaces::judge_tree`] looks at.
const MAX_ENTRIES: usize = 100_000;

/// Whether a relative path stays below the directory that it is joined to, as far as its text says.
/// Links are for [`FilePlaces`] to resolve.
pub fn stays_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components();
    !path.contains('\0')
        && parts.all(|part| matches!(part, Component::Normal(_) | Component::CurDir))
}

/// Where the files of one model may lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePlaces {
    model_dir: PathBuf,
    /// Without links: the model's directory, then the roots.
    allowed: Vec<PathBuf>,
}

impl FilePlaces {
    /// A root that does not exist allows nothing.
    pub fn new(model_dir: &Path, roots: impl IntoIterator<Item = PathBuf>) -> Self {
        let own = real_path(model_dir).unwrap_or_else(|_| model_dir.to_owned());
        let roots = roots.into_iter().filter(|root| root.is_absolute());
        let roots = roots.filter_map(|root| root.canonicalize().ok());
        let allowed = std::iter::once(own).chain(roots).collect();
        Self { model_dir: model_dir.to_owned(), allowed }
    }

    /// With the roots of [`ROOTS_SETTING`].
    pub fn with_setting(model_dir: &Path, setting: Option<&str>) -> Self {
        Self::new(model_dir, setting.unwrap_or_default().lines().map(PathBuf::from))
    }

    pub fn model_dir(&self) -> &Path {
        &self.model_dir
    }

    /// The path of the file `name` below `base`, which is the model's directory or one in it. The
    /// file need not exist. The path is not resolved, so that what lies beside the file is found,
    /// too.
    ///
    /// # Errors
    /// The name leaves `base`, or its links lead to a place that is not allowed.
    pub fn resolve(&self, base: &Path, name: &str) -> Result<PathBuf, FileRefusal> {
        if !stays_inside(name) {
            return Err(FileRefusal::Name { name: name.to_owned(), base: base.to_owned() });
        }
        let path = base.join(name);
        self.judge(&path)?;
        Ok(path)
    }

    /// Whether a path of any spelling leads to an allowed place. Returns it without links.
    ///
    /// # Errors
    /// It does not, or cannot be resolved.
    pub fn judge(&self, path: &Path) -> Result<PathBuf, FileRefusal> {
        let real = real_path(path)
            .map_err(|error| FileRefusal::Unresolved { path: path.to_owned(), error })?;
        if self.allowed.iter().any(|dir| real.starts_with(dir)) {
            return Ok(real);
        }
        let model_dir = self.model_dir.clone();
        Err(FileRefusal::Outside { path: path.to_owned(), real, model_dir })
    }

    /// [`FilePlaces::judge`] for a file, or for a directory with everything below it.
    ///
    /// # Errors
    /// Names the first path that is not allowed.
    pub fn judge_tree(&self, path: &Path) -> Result<(), FileRefusal> {
        let unread = |path: &Path| {
            let path = path.to_owned();
            move |error| FileRefusal::Unresolved { path, error }
        };
        let (mut waiting, mut seen, mut entries) = (vec![path.to_owned()], HashSet::new(), 0);
        while let Some(path) = waiting.pop() {
            let real = self.judge(&path)?;
            if !real.is_dir() || !seen.insert(real) {
                continue;
            }
            for entry in std::fs::read_dir(&path).map_err(unread(&path))? {
                let entry = entry.map_err(unread(&path))?;
                let kind = entry.file_type().map_err(unread(&path))?;
                if kind.is_dir() || kind.is_symlink() {
                    waiting.push(entry.path());
                }
                entries += 1;
                if entries > MAX_ENTRIES {
                    let text = format!("more than {MAX_ENTRIES} entries");
                    return Err(unread(&path)(io::Error::other(text)));
                }
            }
        }
        Ok(())
    }
}

/// Why a file is not opened. The text is a sentence that begins with the name.
#[derive(Debug)]
pub enum FileRefusal {
    /// Absolute, with `..`, or with a NUL byte.
    Name {
        name: String,
        base: PathBuf,
    },
    /// Links lead out of the places.
    Outside {
        path: PathBuf,
        real: PathBuf,
        model_dir: PathBuf,
    },
    Unresolved {
        path: PathBuf,
        error: io::Error,
    },
}

impl fmt::Display for FileRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, base } => write!(
                f,
                "{name:?} leaves '{}': expected a relative path without '..' and NUL bytes",
                base.display()
            ),
            Self::Outside { path, real, model_dir } => write!(
                f,
                "'{}' leads to '{}', which lies outside the model's directory '{}', every repository and every \
                 --model-link-dir",
                path.display(),
                real.display(),
                model_dir.display()
            ),
            Self::Unresolved { path, error } => {
                write!(f, "'{}' cannot be resolved: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for FileRefusal {}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
