//! Fingerprint of a model's directory: what its files looked like, to tell which parts of the model
//! have changed.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Error, ErrorKind, Result};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trtserver_base::disk::is_ignored;
use trtserver_model_config::version_dirs::is_version;

/// Every path below a model's directory that counts, relative to it and sorted, with its stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelFingerprint(Vec<(PathBuf, FileStamp)>);

/// What shows that a file was changed or replaced. Directories all have the same stamp: files that
/// do not count change the times of their directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileStamp {
    modified_ns: i128,
    size: u64,
    /// Another file was moved to the path, possibly an older one.
    inode: u64,
    /// A file that could not be read may have become readable.
    mode: u32,
}

impl FileStamp {
    /// The stamp of an object in an object store; `tag` changes with the content.
    pub fn from_object(modified_ns: i128, size: u64, tag: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        tag.hash(&mut hasher);
        Self { modified_ns, size, inode: hasher.finish(), mode: 0 }
    }

    pub fn from_metadata(metadata: &Metadata) -> Self {
        match metadata.is_dir() {
            true => Self { mode: metadata.mode(), ..Self::default() },
            false => Self {
                modified_ns: i128::from(metadata.mtime()) * 1_000_000_000
                    + i128::from(metadata.mtime_nsec()),
                size: metadata.len(),
                inode: metadata.ino(),
                mode: metadata.mode(),
            },
        }
    }
}

impl ModelFingerprint {
    /// The fingerprint of files, whose paths are relative to the model's directory.
    pub fn new(files: impl Iterator<Item = (PathBuf, FileStamp)>) -> Self {
        let mut files: Vec<_> = files.collect();
        files.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Self(files)
    }

    /// # Errors
    /// The metadata of a file or the entries of a directory cannot be read.
    pub fn from_dir(dir: &Path) -> Result<Self> {
        let mut files = Vec::new();
        walk_model_dir(dir, |path, metadata, _| {
            files.push((relative_path(path, dir), FileStamp::from_metadata(metadata)))
        })?;
        Ok(Self::new(files.into_iter()))
    }

    /// Whether the files of the version directory `name` are the same in both.
    pub fn has_same_version(&self, other: &Self, name: &str) -> bool {
        self.below(name).eq(other.below(name))
    }

    /// Whether the files outside of version directories are the same in both, except those for
    /// which `except` is true.
    pub fn has_same_shared_files(&self, other: &Self, except: impl Fn(&Path) -> bool) -> bool {
        let shared = |(path, _): &&(PathBuf, FileStamp)| {
            let first = path.components().next().and_then(|c| c.as_os_str().to_str());
            !first.is_some_and(is_version) && !except(path)
        };
        self.0.iter().filter(shared).eq(other.0.iter().filter(shared))
    }

    fn below(&self, name: &str) -> impl Iterator<Item = &(PathBuf, FileStamp)> {
        self.0.iter().filter(move |(path, _)| path.starts_with(name))
    }
}

/// A cache that Python writes beside the scripts that it imports, when a model is loaded.
const PYTHON_CACHE: &str = "__pycache__";

/// Calls `visit` with each path that counts below `dir` and with `dir` itself: its metadata, those
/// of the target for a link, and whether it is a link.
///
/// # Errors
/// The metadata of a file or the entries of a directory cannot be read.
pub fn walk_model_dir(dir: &Path, mut visit: impl FnMut(&Path, &Metadata, bool)) -> Result<()> {
    let mut visited = BTreeSet::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(path) = pending.pop() {
        let own = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == ErrorKind::NotFound && path != dir => continue,
            Err(e) => return Err(named_error(&path, &e)),
        };
        let is_link = own.is_symlink();
        // A dangling link counts as a file.
        let metadata = if is_link { fs::metadata(&path).unwrap_or(own) } else { own };
        // Links may form a cycle.
        if metadata.is_dir() && visited.insert((metadata.dev(), metadata.ino())) {
            let entries = match fs::read_dir(&path) {
                Err(e) if e.kind() == ErrorKind::NotFound && path != dir => continue,
                entries => entries.map_err(|e| named_error(&path, &e))?,
            };
            for entry in entries {
                let entry = entry.map_err(|e| named_error(&path, &e))?;
                let name = entry.file_name();
                if name != PYTHON_CACHE && !name.to_str().is_some_and(is_ignored) {
                    pending.push(entry.path());
                }
            }
        }
        visit(&path, &metadata, is_link);
    }
    Ok(())
}

/// `path` as seen from `dir`, below which it is.
pub fn relative_path(path: &Path, dir: &Path) -> PathBuf {
    path.strip_prefix(dir).unwrap_or(path).to_owned()
}

fn named_error(path: &Path, e: &Error) -> Error {
    Error::new(e.kind(), format!("'{}': {e}", path.display()))
}

#[cfg(test)]
#[path = "fingerprint_tests.rs"]
mod tests;
