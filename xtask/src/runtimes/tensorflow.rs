//! `cargo xtask runtimes --tensorflow`: TensorFlow's C library in two releases, from PyPI into the user's cache.
//!
//!     <cache>/trtserver/tensorflow/<version>/    one copy for all checkouts, up to 850 MB a release
//!     target/dist/lib/libtensorflow_*.so.2       links to the newest release, where the plugin looks
//!     target/dist/lib/tensorflow-<version>/      links to each release, for servers with both

use crate::command::{Result, say};
use crate::paths::{self, Paths};
use crate::python::{self, Wheel};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A release of `tensorflow-cpu`, of which only the two shared libraries are used.
struct Release {
    version: &'static str,
    /// In `xtask/`, with the hash of the wheel.
    requirements: &'static str,
    platform: &'static str,
    megabytes: u32,
    /// Names and sizes in bytes.
    libraries: [(&'static str, u64); 2],
}

/// Newest first.
const RELEASES: [Release; 2] = [
    Release {
        version: "2.21.0",
        requirements: "tensorflow-2.21.0.txt",
        platform: "--platform=manylinux_2_27_x86_64",
        megabytes: 274,
        libraries: [
            ("libtensorflow_cc.so.2", 788_086_608),
            ("libtensorflow_framework.so.2", 65_222_328),
        ],
    },
    Release {
        version: "2.12.0",
        requirements: "tensorflow-2.12.0.txt",
        platform: "--platform=manylinux_2_17_x86_64",
        megabytes: 232,
        libraries: [
            ("libtensorflow_cc.so.2", 532_058_280),
            ("libtensorflow_framework.so.2", 45_495_672),
        ],
    },
];

/// Whether the plugin finds a library in `target/dist/lib`.
pub fn is_installed(paths: &Paths) -> bool {
    RELEASES[0].libraries.iter().all(|(name, _)| paths.lib().join(name).is_file())
}

/// Downloads the releases that the cache lacks, and links all of them into `target/dist/lib`.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no pinned package of TensorFlow for {arch}: copy libtensorflow_cc.so.2 and libtensorflow_framework.so.2 \
             into {}, or run the tests with `--without tensorflow`",
            paths.short(&paths.lib())
        ));
    }
    let cache = paths::user_cache()?.join("tensorflow");
    let mut directories = Vec::new();
    for release in &RELEASES {
        directories.push(install(paths, &cache, release)?);
    }
    let _lock = paths::lock(&paths.target.join("runtimes.lock"))?;
    let lib = paths.lib();
    fs::create_dir_all(&lib).map_err(|e| format!("cannot create {}: {e}", lib.display()))?;
    for (release, directory) in RELEASES.iter().zip(&directories) {
        link(directory, &lib.join(format!("tensorflow-{}", release.version)))?;
    }
    for (name, _) in RELEASES[0].libraries {
        link(&directories[0].join(name), &lib.join(name))?;
    }
    Ok(())
}

/// The directory of the release in the cache, downloaded unless it is complete there.
fn install(paths: &Paths, cache: &Path, release: &Release) -> Result<PathBuf> {
    let version = release.version;
    let directory = cache.join(version);
    if incomplete(&directory, release).is_none() {
        say(format!("runtimes: TensorFlow {version} is up to date in {}", directory.display()));
        return Ok(directory);
    }
    fs::create_dir_all(cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
    let _lock = paths::lock(&cache.join("lock"))?;
    // Another run may have installed it while this one waited for the lock.
    if incomplete(&directory, release).is_none() {
        return Ok(directory);
    }
    say(format!(
        "runtimes: downloading TensorFlow {version} ({} MB) into {}",
        release.megabytes,
        cache.display()
    ));
    // Renamed when it is complete, so that an interrupted run leaves no incomplete release behind.
    let partial = cache.join(format!("{version}.partial"));
    remove(&partial)?;
    python::unpack_wheel(&Wheel {
        requirements: &paths.root.join("xtask").join(release.requirements),
        // The wheel of any Python version: only its C library is used.
        tags: &[release.platform, "--python-version=311", "--implementation=cp", "--abi=cp311"],
        members: "name.startswith('tensorflow/libtensorflow_') and name.endswith('.so.2')",
        scratch: &partial.join("wheel"),
        into: &partial,
        large: true,
    })?;
    if let Some(problem) = incomplete(&partial, release) {
        return Err(format!("the package of TensorFlow {version} is not as expected: {problem}"));
    }
    remove(&directory)?;
    fs::rename(&partial, &directory)
        .map_err(|e| format!("cannot rename {}: {e}", partial.display()))?;
    say(format!("runtimes: installed TensorFlow {version}"));
    Ok(directory)
}

/// The first library of the release that is absent or has another size.
fn incomplete(directory: &Path, release: &Release) -> Option<String> {
    release.libraries.iter().find_map(|(name, expected)| {
        let file = directory.join(name);
        match fs::metadata(&file) {
            Ok(found) if found.len() == *expected => None,
            Ok(found) => {
                Some(format!("{} has {} bytes, expected {expected}", file.display(), found.len()))
            }
            Err(e) => Some(format!("{}: {e}", file.display())),
        }
    })
}

fn remove(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Makes `link` a symbolic link to `to`. A library that an operator copied there is kept.
fn link(to: &Path, link: &Path) -> Result<()> {
    let wrap = |e: std::io::Error| format!("cannot link {}: {e}", link.display());
    if fs::read_link(link).is_ok_and(|found| found == to) {
        return Ok(());
    }
    if link.symlink_metadata().is_ok_and(|found| !found.is_symlink()) {
        say(format!("runtimes: {} is kept: it is not a link", link.display()));
        return Ok(());
    }
    let new = link.with_extension("new");
    match fs::remove_file(&new) {
        Err(e) if e.kind() != ErrorKind::NotFound => return Err(wrap(e)),
        _ => {}
    }
    symlink(to, &new).and_then(|()| fs::rename(&new, link)).map_err(wrap)
}

#[cfg(test)]
#[path = "tensorflow_tests.rs"]
mod tests;
