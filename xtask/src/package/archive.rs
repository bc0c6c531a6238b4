//! The archive of the whole install: unpack it anywhere and start `bin/trtserver`.

use super::PackageSource;
use super::files::PackageFile;
use super::tar_file::write_tar;
use crate::apt;
use crate::command::{Result, run};
use crate::paths::Paths;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Its only directory.
pub fn root_name() -> String {
    format!("trtserver-{}-linux-{}", env!("CARGO_PKG_VERSION"), std::env::consts::ARCH)
}

/// Its file in a directory.
pub fn archive_path(directory: &Path) -> PathBuf {
    directory.join(format!("{}.tar.zst", root_name()))
}

/// # Errors
/// The file cannot be written.
pub fn write(_: &Paths, source: &PackageSource, into: &Path) -> Result<PathBuf> {
    let (root, path) = (root_name(), archive_path(into));
    let files: Vec<PackageFile> = source.files.iter().map(|file| file.below(&root)).collect();
    let wrap = |e| format!("cannot write {}: {e}", path.display());
    let tar = write_tar(&files).map_err(wrap)?;
    let plain = path.with_extension("");
    fs::write(&plain, tar).map_err(wrap)?;
    let compressed = compress(&plain, &path);
    fs::remove_file(&plain).map_err(wrap)?;
    compressed.map(|()| path)
}

/// One thread: with several the bytes depend on the machine.
fn compress(from: &Path, to: &Path) -> Result<()> {
    if apt::capture_output("zstd", &["--version"]).is_none() {
        apt::install(&["zstd"]);
    }
    let mut zstd = Command::new("zstd");
    zstd.args(["-19", "--single-thread", "--quiet", "--force"]).arg(from).arg("-o").arg(to);
    run(&mut zstd, &apt::hint(&["zstd"]))
}
