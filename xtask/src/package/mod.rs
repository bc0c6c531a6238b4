//! `cargo xtask package`: what is given to people who do not compile.
//!
//!     target/package/trtserver-VERSION-py3-none-manylinux_2_28_ARCH.whl     the server for pip
//!     target/package/trtserver-VERSION-linux-ARCH.tar.zst                   the whole install
//!     target/package/trtserver_VERSION_ARCH.deb                             for Debian and Ubuntu
//!
//! Everything is packed from one install, and the same install gives the same bytes: entries are
//! sorted, and their times and owners are fixed.

mod archive;
mod build;
mod deb;
mod files;
mod man_page;
mod sbom;
mod server_wheel;
mod tar_file;

use crate::command::{Result, say};
use crate::paths::Paths;
use files::PackageFile;
use std::fs;
use std::path::{Path, PathBuf};

pub const KINDS: [&str; 3] = ["wheel", "archive", "deb"];

/// What `cargo xtask package` makes.
pub struct PackageOptions {
    /// An install to be packed as it is; without one, a release for old systems is built.
    pub from: Option<PathBuf>,
    /// Names from [`KINDS`]; all if empty.
    pub only: Vec<String>,
    /// Where the packages go, instead of `target/package`.
    pub into: Option<PathBuf>,
}

/// Writes a package into a directory and returns its file.
type PackageWriter = fn(&Paths, &PackageSource, &Path) -> Result<PathBuf>;

/// What all packages of a run have in common.
struct PackageSource {
    version: &'static str,
    /// Files of the install, without what has a package of its own.
    files: Vec<PackageFile>,
    /// The oldest glibc that the programs run with, or the one of this machine.
    platform: String,
}

/// # Errors
/// The build fails, or a file cannot be read or written.
pub fn package(paths: &Paths, options: &PackageOptions) -> Result<()> {
    let (install, platform) = match &options.from {
        // Packages of such an install are for this machine, which their platform says.
        Some(install) => (install.clone(), "linux".to_owned()),
        None => (build::build_release(paths)?, build::PLATFORM.to_owned()),
    };
    let into = options.into.clone().unwrap_or_else(|| paths.target.join("package"));
    fs::create_dir_all(&into).map_err(|e| format!("cannot create {}: {e}", into.display()))?;
    let mut files = files::read_install(&install)?;
    files.extend(man_page::read_manual(&install)?);
    let crates = sbom::linked_crates(paths)?;
    files.push(PackageFile::data("share/sbom.cdx.json", sbom::bill_of_materials(&crates)?));
    files.extend(sbom::licence_texts(&crates)?);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let source = PackageSource { version: env!("CARGO_PKG_VERSION"), files, platform };
    let wanted =
        |kind: &str| options.only.is_empty() || options.only.iter().any(|only| only == kind);
    let pack: [(&str, PackageWriter); 3] =
        [("wheel", server_wheel::write), ("archive", archive::write), ("deb", deb::write)];
    for (kind, write) in pack.iter().filter(|(kind, _)| wanted(kind)) {
        let made = write(paths, &source, &into)?;
        say(format!("package: {kind} {} ({})", paths.short(&made), size(&made)));
    }
    if options.from.is_none() && wanted("wheel") {
        build::audit(paths, &into)?;
    }
    Ok(())
}

/// Megabytes of a file or of the files below a directory.
fn size(path: &Path) -> String {
    fn bytes(path: &Path) -> u64 {
        let below = |dir: fs::ReadDir| dir.flatten().map(|entry| bytes(&entry.path())).sum();
        match fs::read_dir(path) {
            Ok(dir) => below(dir),
            Err(_) => path.metadata().map_or(0, |file| file.len()),
        }
    }
    format!("{:.1} MB", bytes(path) as f64 / 1e6)
}
