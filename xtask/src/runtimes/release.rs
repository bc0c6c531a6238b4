//! A release of a framework's libraries: wheels from a package index, unpacked once into the user's
//! cache for all checkouts.

use crate::command::{Result, say};
use crate::paths::{self, Paths};
use crate::python::{self, Wheel};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Wheels of one version, of which only these shared libraries are used.
#[derive(Clone, Copy)]
pub struct Release {
    /// For messages.
    pub framework: &'static str,
    pub version: &'static str,
    /// In `xtask/`, with the hashes of the wheels.
    pub requirements: &'static str,
    /// Arguments of pip that select the platforms of the wheels.
    pub platforms: &'static [&'static str],
    pub megabytes: u32,
    /// Python expression over `name`: which members of the wheels are libraries.
    pub members: &'static str,
    /// Keeps the directories of the members.
    pub directories: bool,
    /// Names and sizes in bytes.
    pub libraries: &'static [(&'static str, u64)],
}

impl Release {
    /// The directory of the release below `cache`, downloaded unless it is complete there.
    pub fn install(&self, paths: &Paths, cache: &Path) -> Result<PathBuf> {
        let Release { framework, version, .. } = self;
        let directory = cache.join(version);
        if self.incomplete(&directory).is_none() {
            say(format!(
                "runtimes: {framework} {version} is up to date in {}",
                directory.display()
            ));
            return Ok(directory);
        }
        fs::create_dir_all(cache).map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
        let _lock = paths::lock(&cache.join("lock"))?;
        // Another run may have installed it while this one waited for the lock.
        if self.incomplete(&directory).is_none() {
            return Ok(directory);
        }
        say(format!(
            "runtimes: downloading {framework} {version} ({} MB) into {}",
            self.megabytes,
            cache.display()
        ));
        // Renamed when it is complete, so that an interrupted run leaves no incomplete release
        // behind.
        let partial = cache.join(format!("{version}.partial"));
        python::remove_dir(&partial)?;
        // The wheel of any Python version: only its C library is used.
        let tags =
            [self.platforms, &["--python-version=311", "--implementation=cp", "--abi=cp311"]];
        python::unpack_wheel(
            paths,
            &Wheel {
                requirements: &paths.root.join("xtask").join(self.requirements),
                tags: &tags.concat(),
                members: self.members,
                directories: self.directories,
                scratch: &partial.join("wheel"),
                into: &partial,
                large: true,
            },
        )?;
        if let Some(problem) = self.incomplete(&partial) {
            return Err(format!(
                "the package of {framework} {version} is not as expected: {problem}"
            ));
        }
        python::remove_dir(&directory)?;
        fs::rename(&partial, &directory)
            .map_err(|e| format!("cannot rename {}: {e}", partial.display()))?;
        say(format!("runtimes: installed {framework} {version}"));
        Ok(directory)
    }

    /// The first library of the release that is absent or has another size.
    fn incomplete(&self, directory: &Path) -> Option<String> {
        self.libraries.iter().find_map(|(name, expected)| {
            let file = directory.join(name);
            match fs::metadata(&file) {
                Ok(found) if found.len() == *expected => None,
                Ok(found) => {
                    let (file, found) = (file.display(), found.len());
                    Some(format!("{file} has {found} bytes, expected {expected}"))
                }
                Err(e) => Some(format!("{}: {e}", file.display())),
            }
        })
    }
}

/// Links names in `target/dist/lib` to what the cache has.
pub fn link_all(paths: &Paths, links: &[(PathBuf, PathBuf)]) -> Result<()> {
    let _lock = paths::lock(&paths.target.join("runtimes.lock"))?;
    let lib = paths.lib();
    fs::create_dir_all(&lib).map_err(|e| format!("cannot create {}: {e}", lib.display()))?;
    links.iter().try_for_each(|(to, name)| link(to, &lib.join(name)))
}

/// Makes `link` a symbolic link to `to`. A library that an operator copied there is kept.
pub fn link(to: &Path, link: &Path) -> Result<()> {
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
#[path = "release_tests.rs"]
mod tests;
