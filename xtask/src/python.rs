//! Python interpreters, and the environments of the tests.
//!
//! `v1` has the client of 2020, which needs old packages and OpenSSL 1.1; `v2` has today's;
//! `kserve` has the clients of KServe and MLServer; `s3` has a server with the interface of S3;
//! `triton` has what models of Triton's Python backend import; `build` has build tools;
//! `envoy` has a proxy and clients; `page` drives a browser; `api` tests HTTP endpoints by their
//! description; `docs` makes the reference of the Python packages; `deploy` checks the files of
//! `deploy/`; `ray` has Ray Serve. Each is in `target/python/` with a stamp of its requirements, so
//! that it is created only once.

use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::pip::{self, run_pip};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const NEED_PYTHON: &str = "install Python 3 (Debian and Ubuntu: sudo apt-get install python3 python3-venv), or set TRTSERVER_PYTHON=/path/to/python3";

/// One environment of the tests.
pub struct Environment {
    /// Directory in `target/python/`, and part of the name of the requirements file.
    pub name: &'static str,
    /// Newest supported Python, as a minor version of 3.
    newest: u32,
    oldest: u32,
    /// Python code that succeeds if the environment is usable.
    proof: &'static str,
    /// Its packages exist for x86-64 only.
    x86_64_only: bool,
}

impl Environment {
    pub fn supported_here(&self) -> bool {
        !self.x86_64_only || cfg!(target_arch = "x86_64")
    }
}

/// Environments of programs that keep what Python compiles (`PYTHONPYCACHEPREFIX`): a small part of
/// their modules.
const COMPILED_ON_IMPORT: [&str; 5] = [V1.name, V2.name, KSERVE.name, S3.name, DOCS.name];

pub const V1: Environment = Environment {
    name: "v1",
    oldest: 9,
    newest: 11,
    proof: "import trtis_client; trtis_client.InferContext",
    x86_64_only: true,
};

pub const V2: Environment = Environment {
    name: "v2",
    oldest: 11,
    newest: 13,
    proof: "import tritonclient.http.aio, tritonclient.grpc.aio, tritonclient.utils.shared_memory",
    x86_64_only: false,
};

/// The clients of KServe and MLServer, without the packages that only their servers need.
pub const KSERVE: Environment = Environment {
    name: "kserve",
    oldest: 11,
    newest: 13,
    proof: "import clients, kserve.inference_client",
    x86_64_only: false,
};

/// A server with the interface of S3.
pub const S3: Environment = Environment {
    name: "s3",
    oldest: 11,
    newest: 13,
    proof: "from moto.server import ThreadedMotoServer",
    x86_64_only: false,
};

/// Packages of the models of Triton's Python backend: its stub of 2024 is compiled for numpy 1, of
/// which there are no packages for newer interpreters.
pub const TRITON: Environment = Environment {
    name: "triton",
    oldest: 9,
    newest: 12,
    proof: "import numpy; assert numpy.__version__.startswith('1.')",
    x86_64_only: true,
};

/// Build tools that a machine with a compiler may lack: CMake, Ninja, pkgconf.
pub const BUILD: Environment = Environment {
    name: "build",
    oldest: 9,
    newest: 13,
    proof: "import cmake, ninja, pkgconf",
    x86_64_only: false,
};

/// The proxy of the rolling restart and of the demonstrations, and their clients.
pub const ENVOY: Environment = Environment {
    name: "envoy",
    oldest: 11,
    newest: 13,
    proof: "import envoy, grpc.aio, yaml",
    x86_64_only: false,
};

/// The driver of a browser, and axe-core.
pub const PAGE: Environment = Environment {
    name: "page",
    oldest: 10,
    newest: 13,
    proof: "import playwright.sync_api, axe_playwright_python.sync_playwright",
    x86_64_only: false,
};

/// The tester of HTTP descriptions.
pub const API: Environment = Environment {
    name: "api",
    oldest: 10,
    newest: 13,
    proof: "import schemathesis.cli",
    x86_64_only: false,
};

/// What makes the reference of the Python packages, and what these import.
pub const DOCS: Environment = Environment {
    name: "docs",
    oldest: 10,
    newest: 13,
    proof: "import numpy, pdoc",
    x86_64_only: false,
};

/// What the files of `deploy/` are checked with.
pub const DEPLOY: Environment = Environment {
    name: "deploy",
    oldest: 10,
    newest: 13,
    proof: "import hcl2, jsonschema, kubernetes_validate, yaml",
    x86_64_only: true,
};

/// Ray Serve and the clients that are sent through it.
pub const RAY: Environment = Environment {
    name: "ray",
    oldest: 11,
    newest: 13,
    proof: "import ray.serve, tritonclient.http, tritonclient.grpc",
    x86_64_only: false,
};

/// What packages are built and checked with.
pub const PACKAGE: Environment = Environment {
    name: "package",
    oldest: 9,
    newest: 13,
    proof: "import auditwheel, ziglang",
    x86_64_only: false,
};

/// Creates the environment unless it is up to date. Returns the program that runs Python in it.
pub fn environment(paths: &Paths, env: &Environment) -> Result<PathBuf> {
    let dir = paths.python(env.name);
    let scripts = paths.root.join("tests/python");
    let list = scripts.join(format!("requirements-{}.txt", env.name));
    let interpreter = dir.join(if env.name == "v1" { "run" } else { "bin/python" });
    let expected =
        fs::read_to_string(&list).map_err(|e| format!("cannot read {}: {e}", list.display()))?;
    let stamp = dir.join("made-from.txt");
    if fs::read_to_string(&stamp).is_ok_and(|made| made == expected) && interpreter.exists() {
        say(format!("python {}: up to date", env.name));
        return Ok(interpreter);
    }

    let python = pick(env.oldest, env.newest)?;
    say(format!(
        "python {}: creating {} with {} (half a minute)",
        env.name,
        paths.short(&dir),
        python.display()
    ));
    pip::create_environment(paths, &python, &dir)?;
    // The requirements list every package.
    let mut install = pip::pip(&dir.join("bin/python"), "install");
    if COMPILED_ON_IMPORT.contains(&env.name) {
        install.arg("--no-compile");
    }
    run_pip(install.args(["--quiet", "-r"]).arg(&list))?;
    if env.name == "v1" {
        old_openssl(paths, &scripts, &dir)?;
        write_launcher(&interpreter, WITH_OPENSSL)?;
    }
    run(
        Command::new(&interpreter).args(["-c", env.proof]).env("PYTHONPATH", &scripts),
        "the environment was created, but its client cannot be imported",
    )?;
    fs::write(&stamp, expected).map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
    Ok(interpreter)
}

/// Wheels to download, and the files in them to unpack.
pub struct Wheel<'a> {
    /// Requirements file with a hash for each wheel.
    pub requirements: &'a Path,
    /// Arguments of pip that select the wheel's platform and Python version.
    pub tags: &'a [&'a str],
    /// Python expression over `name`: which members are unpacked.
    pub members: &'a str,
    /// Keeps the directories of the members.
    pub directories: bool,
    /// Holds the wheels while they are unpacked; removed afterwards.
    pub scratch: &'a Path,
    /// Receives the members.
    pub into: &'a Path,
    /// Shows the progress of the download, and keeps no copy in pip's cache.
    pub large: bool,
}

/// Downloads wheels, checks them against the hashes of the requirements file, and unpacks the
/// selected members.
pub fn unpack_wheel(paths: &Paths, wheel: &Wheel) -> Result<()> {
    let python = pip::environment(paths, &pick(8, u32::MAX)?)?;
    for dir in [wheel.scratch, wheel.into] {
        fs::create_dir_all(dir).map_err(|e| format!("cannot create {}: {e}", dir.display()))?;
    }
    let mut download = pip::pip(&python, "download");
    download.arg(if wheel.large { "--no-cache-dir" } else { "--quiet" });
    download.args(["--require-hashes", "--only-binary=:all:"]).args(wheel.tags);
    // pip's temporary files go to the same file system: /tmp may be too small for them.
    download.arg("--dest").arg(wheel.scratch).env("TMPDIR", wheel.scratch);
    run_pip(download.arg("-r").arg(wheel.requirements))?;
    let place = if wheel.directories { "name" } else { "os.path.basename(name)" };
    let script = format!(
        "import glob, os, shutil, sys, zipfile\n\
         for wheel in glob.glob(os.path.join(sys.argv[1], '*.whl')):\n\
         \x20   with zipfile.ZipFile(wheel) as z:\n\
         \x20       for name in z.namelist():\n\
         \x20           if {}:\n\
         \x20               into = os.path.join(sys.argv[2], {place})\n\
         \x20               os.makedirs(os.path.dirname(into), exist_ok=True)\n\
         \x20               with z.open(name) as member, open(into, 'wb') as f:\n\
         \x20                   shutil.copyfileobj(member, f, 1 << 20)\n",
        wheel.members
    );
    run(Command::new(&python).args(["-c", &script]).arg(wheel.scratch).arg(wheel.into), "")?;
    remove_dir(wheel.scratch)
}

/// Removes a directory unless there is none.
pub fn remove_dir(directory: &Path) -> Result<()> {
    match fs::remove_dir_all(directory) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {e}", directory.display()))
        }
        _ => Ok(()),
    }
}

/// Installs OpenSSL 1.1 for the client of 2020, because distributions no longer have it. It comes
/// from the wheel of a database driver of that time, which bundles it under mangled names.
fn old_openssl(paths: &Paths, scripts: &Path, dir: &Path) -> Result<()> {
    let lib = dir.join("lib/openssl");
    unpack_wheel(
        paths,
        &Wheel {
            requirements: &scripts.join("openssl-1.1.txt"),
            tags: &[
                "--platform=manylinux_2_17_x86_64",
                "--python-version=311",
                "--implementation=cp",
                "--abi=cp311",
            ],
            members: "'.libs/libssl-' in name or '.libs/libcrypto-' in name",
            directories: false,
            scratch: &dir.join("wheel"),
            into: &lib,
            large: false,
        },
    )?;
    for plain in ["libssl", "libcrypto"] {
        let mangled = fs::read_dir(&lib)
            .map_err(|e| format!("cannot list {}: {e}", lib.display()))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .find(|name| name.starts_with(&format!("{plain}-")) && name.ends_with(".so.1.1"))
            .ok_or_else(|| format!("no {plain} in the wheel of openssl-1.1.txt"))?;
        std::os::unix::fs::symlink(mangled, lib.join(format!("{plain}.so.1.1")))
            .map_err(|e| format!("cannot link {plain}.so.1.1: {e}"))?;
    }
    Ok(())
}

const WITH_OPENSSL: &str = "#!/bin/sh\n\
    # Python with OpenSSL 1.1 in the library path, for the client of 2020.\n\
    here=$(cd \"$(dirname \"$0\")\" && pwd)\n\
    LD_LIBRARY_PATH=\"$here/lib/openssl${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"\n\
    export LD_LIBRARY_PATH\n\
    exec \"$here/bin/python\" \"$@\"\n";

/// Writes an executable script.
pub fn write_launcher(file: &Path, text: &str) -> Result<()> {
    fs::write(file, text)
        .and_then(|()| fs::set_permissions(file, fs::Permissions::from_mode(0o755)))
        .map_err(|e| format!("cannot write {}: {e}", file.display()))
}

/// The first interpreter with a minor version of 3 in this range.
fn pick(oldest: u32, newest: u32) -> Result<PathBuf> {
    let mut names: Vec<PathBuf> =
        std::env::var_os("TRTSERVER_PYTHON").map(PathBuf::from).into_iter().collect();
    names.push("python3".into());
    names.extend((8..=13).rev().map(|minor| PathBuf::from(format!("python3.{minor}"))));
    let mut seen = Vec::new();
    for name in names {
        let Some(minor) = minor_version(&name) else { continue };
        if (oldest..=newest).contains(&minor) {
            return Ok(name);
        }
        seen.push(format!("{} is 3.{minor}", name.display()));
    }
    let range = if newest == u32::MAX {
        format!("3.{oldest} or newer")
    } else {
        format!("3.{oldest} to 3.{newest}")
    };
    let seen = if seen.is_empty() { "no interpreter found".to_owned() } else { seen.join(", ") };
    Err(format!("Python {range} not found ({seen})\n  {NEED_PYTHON}"))
}

fn minor_version(python: &Path) -> Option<u32> {
    let script = "import sys; print(sys.version_info[1] if sys.version_info[0] == 3 else '')";
    let mut command = Command::new(python);
    command.args(["-c", script]).stderr(std::process::Stdio::null());
    let out = command.output().ok()?;
    String::from_utf8(out.stdout).ok()?.trim().parse().ok()
}
