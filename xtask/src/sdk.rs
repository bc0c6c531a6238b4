//! Files for authors of backends in an install: headers, packages for pkg-config and CMake, the
//! licence.
//!
//!     include/trtserver/                       headers in C and C++
//!     share/pkgconfig/trtserver-plugin.pc
//!     share/cmake/trtserver-plugin/            package configuration, linker version script
//!     LICENSE

use crate::build::put;
use crate::command::Result;
use crate::paths::Paths;
use std::fs;
use std::path::Path;

/// Templates of `plugin-api/package`, in which `@VERSION@` is replaced, and the folders where they
/// are installed.
const PACKAGES: &[(&str, &str)] = &[
    ("trtserver-plugin.pc", "share/pkgconfig"),
    ("trtserver-plugin-config.cmake", "share/cmake/trtserver-plugin"),
    ("trtserver-plugin-config-version.cmake", "share/cmake/trtserver-plugin"),
    ("exports.map", "share/cmake/trtserver-plugin"),
];

/// Installs the files below `dist`.
///
/// # Errors
/// A file cannot be read or written.
pub fn install(paths: &Paths, dist: &Path) -> Result<()> {
    let crates = paths.root.join("plugin-api");
    put(&paths.root.join("LICENSE"), &dist.join("LICENSE"))?;
    // Headers that were renamed must not remain.
    let include = dist.join("include");
    let _ = fs::remove_dir_all(&include);
    copy_all(&crates.join("include"), &include)?;
    let version = version(&crates.join("Cargo.toml"))?;
    put_packages(&crates.join("package"), PACKAGES, &version, dist)
}

/// Installs templates of `from`, in which `@VERSION@` is replaced.
pub fn put_packages(
    from: &Path,
    packages: &[(&str, &str)],
    version: &str,
    dist: &Path,
) -> Result<()> {
    for (name, folder) in packages {
        let from = from.join(name);
        let text = fs::read_to_string(&from).map_err(|e| format!("{}: {e}", from.display()))?;
        let to = dist.join(folder).join(name);
        let wrap = |e| format!("cannot write {}: {e}", to.display());
        fs::create_dir_all(dist.join(folder)).map_err(wrap)?;
        fs::write(&to, text.replace("@VERSION@", version)).map_err(wrap)?;
    }
    Ok(())
}

pub fn copy_all(from: &Path, to: &Path) -> Result<()> {
    let entries = fs::read_dir(from).map_err(|e| format!("{}: {e}", from.display()))?;
    for entry in entries.flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() { copy_all(&from, &to)? } else { put(&from, &to)? }
    }
    Ok(())
}

/// The version of a package, or of the workspace.
pub fn version(manifest: &Path) -> Result<String> {
    let text = fs::read_to_string(manifest).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let version = text.lines().find_map(|line| line.strip_prefix("version = "));
    let missing = || format!("{}: no version", manifest.display());
    version.map(|version| version.trim_matches('"').to_owned()).ok_or_else(missing)
}
