//! Layers of the image: compressed archives whose bytes depend on the files alone.

use crate::command::Result;
use crate::package::files::PackageFile;
use crate::package::tar_file::{compress_gzip, write_tar};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tar::{Builder, EntryType, Header};

/// Contents of the base that are made anew or that nobody reads in a container. The licences of the
/// packages, `copyright`, stay.
const LEFT_OUT: [&str; 10] = [
    "dev",
    "proc",
    "run",
    "sys",
    "tmp",
    "var/cache",
    "var/lib/apt/lists",
    "var/log",
    "usr/share/man",
    "usr/share/locale",
];
const DOCUMENTS: &str = "usr/share/doc";
/// Components of `usr/share/doc/PACKAGE`.
const DOCUMENT_DEPTH: usize = 4;

/// A compressed layer.
pub struct Layer {
    pub compressed: Vec<u8>,
    /// Digest of the archive before its compression.
    pub diff_id: String,
    /// What the history of the image says.
    pub about: String,
}

impl Layer {
    /// # Errors
    /// The archive cannot be made.
    pub fn from_files(about: &str, files: &[PackageFile]) -> Result<Self> {
        Self::from_tar(about, write_tar(files))
    }

    /// The files of a directory, with their owners and modes.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn from_directory(about: &str, root: &Path) -> Result<Self> {
        let wrap = |e| format!("cannot read {}: {e}", root.display());
        let mut paths = Vec::new();
        list_directory(root, Path::new(""), &mut paths).map_err(wrap)?;
        Self::from_tar(about, write_directory(root, &paths))
    }

    fn from_tar(about: &str, tar: io::Result<Vec<u8>>) -> Result<Self> {
        let wrap = |e| format!("the layer '{about}' of the image: {e}");
        let tar = tar.map_err(wrap)?;
        let compressed = compress_gzip(&tar).map_err(wrap)?;
        Ok(Self { compressed, diff_id: digest(&tar), about: about.to_owned() })
    }
}

/// `sha256:` and the hash.
pub fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    let digits: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{digits}")
}

/// The paths below a directory, parents first, sorted.
fn list_directory(root: &Path, below: &Path, paths: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(root.join(below))?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(|entry| entry.file_name());
    for entry in entries {
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if !(kind.is_file() || kind.is_dir() || kind.is_symlink()) || !is_packed(&path) {
            continue;
        }
        paths.push(path.clone());
        if kind.is_dir() {
            list_directory(root, &path, paths)?;
        }
    }
    Ok(())
}

fn is_packed(path: &Path) -> bool {
    let below =
        |directory: &&str| path.parent().is_some_and(|parent| parent.starts_with(directory));
    let is_document = path.starts_with(DOCUMENTS)
        && path.components().count() > DOCUMENT_DEPTH
        && !path.ends_with("copyright");
    !LEFT_OUT.iter().any(below) && !is_document
}

fn write_directory(root: &Path, paths: &[PathBuf]) -> io::Result<Vec<u8>> {
    let mut builder = Builder::new(Vec::new());
    // Programs with several names.
    let mut links: BTreeMap<u64, &Path> = BTreeMap::new();
    for path in paths {
        let from = root.join(path);
        let metadata = from.symlink_metadata()?;
        let mut header = file_header(&metadata);
        if metadata.is_symlink() {
            header.set_entry_type(EntryType::Symlink);
            builder.append_link(&mut header, path, fs::read_link(&from)?)?;
        } else if metadata.is_dir() {
            header.set_entry_type(EntryType::Directory);
            builder.append_data(&mut header, path.join(""), io::empty())?;
        } else if let Some(first) = links.get(&metadata.ino()) {
            header.set_entry_type(EntryType::Link);
            builder.append_link(&mut header, path, first)?;
        } else {
            if metadata.nlink() > 1 {
                links.insert(metadata.ino(), path);
            }
            header.set_size(metadata.len());
            builder.append_data(&mut header, path, fs::File::open(&from)?)?;
        }
    }
    builder.into_inner()
}

fn file_header(metadata: &Metadata) -> Header {
    let mut header = Header::new_gnu();
    header.set_mode(metadata.permissions().mode() & 0o7777);
    header.set_uid(metadata.uid().into());
    header.set_gid(metadata.gid().into());
    header.set_mtime(0);
    header.set_size(0);
    header
}

#[cfg(test)]
#[path = "layer_tests.rs"]
mod tests;
