//! `cargo xtask package`: what is given to people who do not compile.
//!
//!     target/package/trtserver-VERSION-py3-none-manylinux_2_28_ARCH.whl     the server for pip
//!     target/package/trtserver-VERSION-linux-ARCH.tar.zst                   the whole install
//!     target/package/trtserver_VERSION_ARCH.deb                             for Debian and Ubuntu
//!     target/package/image/                                                 an OCI image layout
//!
//! Everything is packed from one install, and the same install gives the same bytes: entries are
//! sorted, and their times and owners are fixed. The same sources give the same install, wherever they
//! are compiled (`two_builds`).

mod archive;
mod build;
mod deb;
mod debian_root;
mod files;
mod image;
mod man_page;
mod sbom;
mod server_wheel;
mod tar_file;
mod trial;
mod two_builds;

use crate::command::{Result, say};
use crate::paths::Paths;
use files::PackageFile;
use std::fs;
use std::path::{Path, PathBuf};

pub const KINDS: [&str; 4] = ["wheel", "archive", "deb", "image"];
pub use build::source_commit;
pub use image::FRAMEWORKS;
pub use trial::SUITE_NAMES;
pub use two_builds::{compare_builds, package_names};

/// What `cargo xtask package` makes.
pub struct PackageOptions {
    /// An install to be packed as it is; without one, a release for old systems is built.
    pub from: Option<PathBuf>,
    /// Names from [`KINDS`]; all if empty.
    pub only: Vec<String>,
    /// Where the packages go, instead of `target/package`.
    pub into: Option<PathBuf>,
    /// Names from [`FRAMEWORKS`] for which there is an image with the library.
    pub frameworks: Vec<String>,
    /// The lowest layer of the image, instead of a Debian made by debootstrap.
    pub base: Option<PathBuf>,
    /// Names from [`SUITE_NAMES`]: systems in which the packages are tried.
    pub try_in: Vec<String>,
}

impl PackageOptions {
    fn wants(&self, kind: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == kind)
    }
}

/// Writes a package into a directory and returns its file.
type PackageWriter = fn(&Paths, &PackageSource, &Path) -> Result<PathBuf>;

/// What all packages of a run have in common.
struct PackageSource {
    version: &'static str,
    /// The commit of the checkout, if there is one.
    commit: Option<String>,
    /// Files of the install, without what has a package of its own.
    files: Vec<PackageFile>,
    /// The oldest glibc that the programs run with, or the one of this machine.
    platform: String,
    frameworks: Vec<String>,
    base: Option<PathBuf>,
}

/// # Errors
/// The build fails, a file cannot be read or written, or a package does not work where it is tried.
pub fn package(paths: &Paths, options: &PackageOptions) -> Result<()> {
    if options.wants("image") && options.base.is_none() {
        image::check_base(paths)?;
    }
    let source = read_source(paths, options)?;
    let into = options.into.clone().unwrap_or_else(|| paths.target.join("package"));
    fs::create_dir_all(&into).map_err(|e| format!("cannot create {}: {e}", into.display()))?;
    let pack: [(&str, PackageWriter); 4] = [
        ("wheel", server_wheel::write),
        ("archive", archive::write),
        ("deb", deb::write),
        ("image", image::write),
    ];
    for (kind, write) in pack.iter().filter(|(kind, _)| options.wants(kind)) {
        let made = write(paths, &source, &into)?;
        say(format!("package: {kind} {} ({})", paths.short(&made), size(&made)));
    }
    if options.from.is_none() && options.wants("wheel") {
        build::audit(paths, &into)?;
    }
    if options.try_in.is_empty() { Ok(()) } else { try_packages(paths, options, &source, &into) }
}

fn read_source(paths: &Paths, options: &PackageOptions) -> Result<PackageSource> {
    let (install, platform) = match &options.from {
        // Packages of such an install are for this machine, which their platform says.
        Some(install) => (install.clone(), "linux".to_owned()),
        None => (build::build_release(paths)?, build::PLATFORM.to_owned()),
    };
    let mut files = files::read_install(&install)?;
    files.extend(man_page::read_manual(&install)?);
    let crates = sbom::linked_crates(paths)?;
    files.push(PackageFile::data("share/sbom.cdx.json", sbom::bill_of_materials(&crates)?));
    files.extend(sbom::licence_texts(&crates)?);
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(PackageSource {
        version: env!("CARGO_PKG_VERSION"),
        commit: build::source_commit(paths),
        files,
        platform,
        frameworks: options.frameworks.clone(),
        base: options.base.clone(),
    })
}

/// Installs what was packed in each of the systems.
fn try_packages(
    paths: &Paths,
    options: &PackageOptions,
    source: &PackageSource,
    packages: &Path,
) -> Result<()> {
    debian_root::require_root()?;
    let trial = trial::Trial {
        paths,
        packages,
        platform: &source.platform,
        kinds: KINDS.into_iter().filter(|kind| options.wants(kind)).collect(),
        tensorflow: options.frameworks.iter().any(|name| name == "tensorflow"),
    };
    let mut late = Vec::new();
    for suite in &options.try_in {
        late.extend(trial.run_in(suite)?);
    }
    if options.wants("image") {
        trial.run_image()?;
    }
    if late.is_empty() { Ok(()) } else { Err(late.join("\n")) }
}

/// As Debian and OCI name it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
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
