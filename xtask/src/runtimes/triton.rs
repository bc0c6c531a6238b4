//! `cargo xtask runtimes --triton`: Triton 2.51 and its Python backend, from PyPI into the user's
//! cache, for tests of Triton backends and for comparisons with Triton itself.
//!
//!     <cache>/trtserver/triton/<version>/              the files of the package, one copy for all checkouts, 140 MB
//!     target/triton/opt/tritonserver/                  links in the shape of Triton's container
//!         bin/tritonserver
//!         caches/local/libtritoncache_local.so
//!         backends/python/libtriton_python.so          beside it the stub for one Python, and its numpy
//!     target/triton/nvidia_pytriton.libs/              a link: programs and libraries of the package find theirs four directories up
//!
//! The stub, the process in which a model of the Python backend runs, is linked with one minor
//! version of CPython.

use super::release::{Release, link};
use crate::apt;
use crate::build;
use crate::command::{Result, output, say};
use crate::paths::{self, Paths};
use crate::python;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const RELEASE: Release = Release {
    framework: "Triton",
    version: "2.51.0",
    requirements: "triton.txt",
    platforms: &["--platform=manylinux_2_35_x86_64"],
    megabytes: 55,
    members: "name.startswith(('pytriton/tritonserver/', 'nvidia_pytriton.libs/')) and not name.endswith('/')",
    directories: true,
    libraries: &[
        ("pytriton/tritonserver/bin/tritonserver", 19_714_617),
        ("pytriton/tritonserver/backends/python/libtriton_python.so", 1_410_521),
        ("pytriton/tritonserver/caches/local/libtritoncache_local.so", 142_985),
        ("nvidia_pytriton.libs/libtritonserver-717102f0.so", 31_503_417),
    ],
};

const LIBRARY: &str = "libtriton_python.so";
const CACHE: &str = "caches/local/libtritoncache_local.so";
const UTILITIES: &str = "triton_python_backend_utils.py";

/// Prints the minor version of this Python and the directory of its numpy.
const FACTS: &str = "import numpy, os, sys; minor = sys.version_info[1]; print(minor); \
    print(os.path.dirname(os.path.dirname(numpy.__file__)))";

/// Prints the path of libpython if the loader does not find it by its name; fails if there is none.
const LIBPYTHON: &str = "import ctypes, os, sys, sysconfig\n\
    name = f'libpython3.{sys.version_info[1]}.so.1.0'\n\
    try:\n\
    \x20   ctypes.CDLL(name)\n\
    except OSError:\n\
    \x20   path = os.path.join(sysconfig.get_config_var('LIBDIR'), name)\n\
    \x20   ctypes.CDLL(path)\n\
    \x20   print(path)\n";

/// The release unless the cache has it, and the links.
pub fn fetch(paths: &Paths) -> Result<()> {
    let arch = std::env::consts::ARCH;
    if arch != "x86_64" {
        return Err(format!(
            "no package of Triton for {arch}: run the tests with `--without triton`"
        ));
    }
    let release = RELEASE.install(paths, &paths::user_cache()?.join("triton"))?;
    let python = python::environment(paths, &python::TRITON)?;
    let facts = output(Command::new(&python).args(["-c", FACTS]), "")?;
    let (minor, packages) = facts.trim().split_once('\n').unwrap_or((&facts, ""));
    find_libpython(&python, minor, &release)?;

    let server = release.join("pytriton/tritonserver");
    let program = server.join("bin/tritonserver");
    let stub = format!("python_backend_stubs/3.{minor}/triton_python_backend_stub");
    let stub = server.join(stub);
    for program in [&program, &stub] {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755))
            .map_err(|e| format!("{}: {e}", program.display()))?;
    }
    let _lock = paths::lock(&paths.target.join("runtimes.lock"))?;
    let tree = paths.target.join("triton");
    let (bin, backend) =
        (tree.join("opt/tritonserver/bin"), tree.join("opt/tritonserver/backends/python"));
    for folder in [&bin, &backend] {
        fs::create_dir_all(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let files = server.join("backends/python");
    let packages = Path::new(packages);
    link(&release.join("nvidia_pytriton.libs"), &tree.join("nvidia_pytriton.libs"))?;
    link(&program, &bin.join("tritonserver"))?;
    link(&stub, &backend.join("triton_python_backend_stub"))?;
    link(&files.join(UTILITIES), &backend.join(UTILITIES))?;
    // Triton refuses a link out of the directory when it opens a backend written in Python.
    build::put(&files.join(LIBRARY), &backend.join(LIBRARY))?;
    build::put(&server.join(CACHE), &tree.join("opt/tritonserver").join(CACHE))?;
    // The stub has the backend's directory in its module path, and not that of the environment.
    for name in ["numpy", "numpy.libs"] {
        link(&packages.join(name), &backend.join(name))?;
    }
    say(format!("runtimes: {} has Triton {}", paths.short(&tree), RELEASE.version));
    Ok(())
}

/// The stub finds libpython by name, or among the libraries of the package.
fn find_libpython(python: &Path, minor: &str, release: &Path) -> Result<()> {
    let package = format!("libpython3.{minor}");
    let find = || {
        let found = Command::new(python).args(["-c", LIBPYTHON]).output();
        let found = found.ok().filter(|found| found.status.success())?;
        String::from_utf8(found.stdout).ok()
    };
    let found = match find() {
        None if apt::install(&[&package]) => find(),
        found => found,
    };
    let found = found.ok_or_else(|| {
        format!(
            "Triton's Python backend needs the shared library of Python 3.{minor}, which {} does not have: {}, or run \
             the tests with `--without triton`",
            python.display(),
            apt::hint(&[&package])
        )
    })?;
    let Some(path) = Some(PathBuf::from(found.trim())).filter(|path| path.is_absolute()) else {
        return Ok(());
    };
    link(&path, &release.join(format!("nvidia_pytriton.libs/libpython3.{minor}.so.1.0")))
}
