//! The files of an install, as packages contain them.

use crate::client_library;
use crate::command::Result;
use crate::strip::read_stripped;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A file or symbolic link of a package.
#[derive(Clone)]
pub struct PackageFile {
    /// Relative to the root of the install, with slashes.
    pub path: String,
    pub content: FileContent,
}

#[derive(Clone)]
pub enum FileContent {
    Data {
        bytes: Vec<u8>,
        executable: bool,
    },
    /// The target, relative to the link's directory.
    Link(String),
    /// A directory of this user and group. Those of files need no entry: they are root's.
    Directory {
        owner: u64,
    },
}

impl PackageFile {
    pub fn data(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let content = FileContent::Data { bytes: bytes.into(), executable: false };
        Self { path: path.into(), content }
    }

    pub fn program(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        let content = FileContent::Data { bytes: bytes.into(), executable: true };
        Self { path: path.into(), content }
    }

    pub fn link(path: impl Into<String>, target: impl Into<String>) -> Self {
        Self { path: path.into(), content: FileContent::Link(target.into()) }
    }

    pub fn directory(path: impl Into<String>, owner: u64) -> Self {
        Self { path: path.into(), content: FileContent::Directory { owner } }
    }

    /// The same file below another directory.
    pub fn below(&self, directory: &str) -> Self {
        Self { path: format!("{directory}/{}", self.path), content: self.content.clone() }
    }
}

/// Programs of an install that are for users.
pub const PROGRAMS: [&str; 4] =
    ["trtserver", "trtserver-perf", "trtserver-classify", "perf_client"];
/// Backends that only tests use.
const TEST_BACKENDS: [&str; 1] = ["probe"];

/// Reads an install as `cargo xtask build` makes it, without libraries of frameworks, sample
/// programs and test backends. Programs and libraries are stripped.
///
/// # Errors
/// A file cannot be read, or `strip` fails.
pub fn read_install(install: &Path) -> Result<Vec<PackageFile>> {
    let mut files = Vec::new();
    for directory in ["bin", "backends", "plugins", "lib", "include", "share", "python"] {
        read_directory(install, Path::new(directory), &mut files)?;
    }
    files.push(read_file(install, Path::new("LICENSE"))?);
    if !files.iter().any(|file| file.path == "bin/trtserver") {
        let install = install.display();
        return Err(format!(
            "{install} is not an install: no bin/trtserver; see `cargo xtask build`"
        ));
    }
    Ok(files)
}

/// Whether packages contain this entry of the install.
fn is_packed(path: &Path) -> bool {
    let mut parts = path.iter().filter_map(|part| part.to_str());
    match (parts.next(), parts.next()) {
        (Some("bin"), Some(program)) => PROGRAMS.contains(&program),
        (Some("backends"), Some(backend)) => !TEST_BACKENDS.contains(&backend),
        (Some("lib"), Some(name)) => client_library::OWN.contains(&name),
        _ => true,
    }
}

fn read_directory(install: &Path, relative: &Path, files: &mut Vec<PackageFile>) -> Result<()> {
    let directory = install.join(relative);
    let Ok(entries) = fs::read_dir(&directory) else { return Ok(()) };
    for entry in entries {
        let entry = entry.map_err(|e| format!("cannot read {}: {e}", directory.display()))?;
        let path = relative.join(entry.file_name());
        if !is_packed(&path) {
            continue;
        }
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match is_directory {
            true => read_directory(install, &path, files)?,
            false => files.push(read_file(install, &path)?),
        }
    }
    Ok(())
}

fn read_file(install: &Path, relative: &Path) -> Result<PackageFile> {
    let path = install.join(relative);
    let wrap = |e| format!("cannot read {}: {e}", path.display());
    let name = relative.display().to_string();
    let metadata = path.symlink_metadata().map_err(wrap)?;
    if metadata.is_symlink() {
        let target = fs::read_link(&path).map_err(wrap)?;
        return Ok(PackageFile::link(name, target.display().to_string()));
    }
    let mut bytes = fs::read(&path).map_err(wrap)?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    if bytes.starts_with(b"\x7fELF") {
        bytes = read_stripped(&path)?;
    }
    Ok(PackageFile { path: name, content: FileContent::Data { bytes, executable } })
}
