//! Triton's own server, and folders of backends that both servers load.

use crate::Result;
use crate::backends::shim::compile;
use crate::options::Options;
use crate::repository::empty;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use trtserver_library_file::DynamicSection;

const SOURCES: [(&str, &str); 4] = [
    ("identity.c", include_str!("identity.c")),
    ("backend.h", include_str!("../../../tests/triton/backend.h")),
    ("values.h", include_str!("../../../tests/triton/values.h")),
    ("empty.c", include_str!("../../../tests/triton/empty.c")),
];
/// How the name of the host's library begins that backends are linked with. In a Python package it
/// ends in a hash of the file.
const HOST: &str = "libtritonserver";

/// The program.
pub fn program(options: &Options) -> PathBuf {
    options.triton.join("bin/tritonserver")
}

/// The folder of its caches.
pub fn caches(options: &Options) -> Result<PathBuf> {
    let folder = options.triton.join("caches");
    let library = folder.join("local/libtritoncache_local.so");
    if library.is_file() {
        return Ok(folder);
    }
    Err(format!("{} is missing; `cargo xtask runtimes --triton` installs it", library.display()))
}

/// A folder with the Python backend and the `identity` backend, in the shape of Triton's container.
pub fn backends(options: &Options) -> Result<TempDir> {
    let python = options.triton.join("backends/python");
    let library = python.join("libtriton_python.so");
    let dynamic = DynamicSection::read(&library).map_err(|e| {
        format!("{}: {e}; `cargo xtask runtimes --triton` installs Triton", library.display())
    })?;
    let host = dynamic.needed.into_iter().find(|name| name.starts_with(HOST));
    let host = host.ok_or_else(|| format!("{}: not linked with {HOST}", library.display()))?;
    let folder = empty()?;
    let link = folder.path().join("python");
    let target = python.canonicalize().map_err(|e| format!("{}: {e}", python.display()))?;
    symlink(target, &link).map_err(|e| format!("{}: {e}", link.display()))?;
    identity(folder.path(), &host)?;
    Ok(folder)
}

/// Compiles the backend as authors do, linked with an empty library in place of the host's.
fn identity(folder: &Path, host: &str) -> Result<()> {
    let backend = folder.join("identity");
    fs::create_dir(&backend).map_err(|e| format!("{}: {e}", backend.display()))?;
    let sources = empty()?;
    for (name, text) in SOURCES {
        let file = sources.path().join(name);
        fs::write(&file, text).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    let soname = format!("-Wl,-soname,{host}");
    let empty = sources.path().join(host);
    compile(sources.path(), &["-shared", "-fPIC", "empty.c", &soname, "-o"], &empty)?;
    let linked = empty.display().to_string();
    let arguments = ["-shared", "-fPIC", "identity.c", "-Wl,--no-as-needed", &linked, "-o"];
    compile(sources.path(), &arguments, &backend.join("libtriton_identity.so"))
}
