//! Paths: the checkout, cargo's target directory, and the installs made from it.

use crate::command::{Result, cargo, say};
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Directories of the tasks, and how they compile.
#[derive(Clone)]
pub struct Paths {
    pub root: PathBuf,
    /// Cargo's target directory.
    pub target: PathBuf,
    /// Debug builds are checked by clippy while they are compiled; see [`Paths::cargo`].
    pub lints: bool,
}

impl Paths {
    pub fn find() -> Self {
        // Cargo sets the variable; the path from compile time is for a program that is started
        // directly.
        let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
            .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = xtask.parent().map_or_else(|| xtask.clone(), Path::to_path_buf);
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map_or_else(|| root.join("target"), |dir| root.join(dir));
        Paths { root, target, lints: false }
    }

    /// A cargo command in the checkout. With [`Paths::lints`], clippy's driver compiles the crates
    /// of the workspace: it is the compiler with more lints. `cargo clippy` would compile all
    /// dependencies a second time, since it needs less of them than a build (four minutes of CPU).
    /// Plain builds keep their own files beside these.
    pub fn cargo(&self) -> Command {
        let mut command = cargo();
        command.current_dir(&self.root);
        if self.lints {
            command.args(["--config", r#"build.rustc-workspace-wrapper="clippy-driver""#]);
            // How `cargo clippy -- -D warnings` passes its arguments to the driver.
            command.env("CLIPPY_ARGS", ["-D", "warnings", ""].join("__CLIPPY_HACKERY__"));
        }
        command
    }

    /// The install made by `build`: `bin/`, `backends/`, `lib/`.
    pub fn dist(&self, debug: bool) -> PathBuf {
        self.target.join(if debug { "dist-debug" } else { "dist" })
    }

    /// The install of `cargo xtask demo`.
    pub fn demo_dist(&self) -> PathBuf {
        self.target.join("dist-demo")
    }

    /// Framework libraries; the other installs have links to what is here.
    pub fn lib(&self) -> PathBuf {
        self.dist(false).join("lib")
    }

    /// Python environment of a client generation.
    pub fn python(&self, generation: &str) -> PathBuf {
        self.target.join("python").join(generation)
    }

    /// The path relative to the checkout.
    pub fn short(&self, path: &Path) -> String {
        path.strip_prefix(&self.root).unwrap_or(path).display().to_string()
    }
}

/// Directory of tools and runtimes shared by several checkouts.
///
/// # Errors
/// Neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn user_cache() -> Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .map(|cache| cache.join("trtserver"))
        .ok_or_else(|| "no cache folder: set HOME or XDG_CACHE_HOME to an absolute path".to_owned())
}

/// Locks the file until the result is dropped or the process ends, however it ends. Two runs of a
/// download take turns.
pub fn lock(file: &Path) -> Result<File> {
    let wrap = |e: std::io::Error| format!("cannot lock {}: {e}", file.display());
    let lock = File::create(file).map_err(wrap)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            say(format!("waiting for another run, which has locked {}", file.display()));
            lock.lock().map_err(wrap)?;
        }
        Err(TryLockError::Error(e)) => return Err(wrap(e)),
    }
    Ok(lock)
}
