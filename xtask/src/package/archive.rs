//! The archive of the whole install: unpack it anywhere and start `bin/trtserver`.

use super::PackageSource;
use super::files::PackageFile;
use super::tar_file::write_tar;
use crate::command::Result;
use crate::paths::Paths;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::fs;
use std::path::{Path, PathBuf};

/// # Errors
/// The file cannot be written.
pub fn write(_: &Paths, source: &PackageSource, into: &Path) -> Result<PathBuf> {
    let root = format!("trtserver-{}-linux-{}", source.version, std::env::consts::ARCH);
    let path = into.join(format!("{root}.tar.zst"));
    let files: Vec<PackageFile> = source.files.iter().map(|file| file.below(&root)).collect();
    let wrap = |e| format!("cannot write {}: {e}", path.display());
    let tar = write_tar(&files).map_err(wrap)?;
    let compressed = compress_to_vec(tar.as_slice(), CompressionLevel::Fastest);
    fs::write(&path, compressed).map_err(wrap)?;
    Ok(path)
}
