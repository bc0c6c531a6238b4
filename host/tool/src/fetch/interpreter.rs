//! The user's Python: what it is, its shared library, and its pip.

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prints what [`Interpreter`] is made of as JSON. The interpreter's own shared library comes before
/// one that the loader finds: modules that its pip installs are found by the former.
const FACTS: &str = r#"
import ctypes, json, os, platform, sys, sysconfig
def shared_library():
    get = sysconfig.get_config_var
    name = "libpython%d.%d.so.1.0" % sys.version_info[:2]
    for folder in (get("LIBDIR"), os.path.join(get("LIBDIR") or "", get("MULTIARCH") or "")):
        if folder and os.path.isfile(os.path.join(folder, name)):
            return os.path.join(folder, name)
    try:
        ctypes.CDLL(name)
        return name
    except OSError:
        return ""
libc = platform.libc_ver()
print(json.dumps({
    "implementation": sys.implementation.name,
    "version": list(sys.version_info[:2]),
    "machine": platform.machine(),
    "glibc": libc[1] if libc[0] == "glibc" else "",
    "libpython": shared_library(),
    "base": getattr(sys, "_base_executable", "") or sys.executable,
}))
"#;

#[derive(Debug, Deserialize)]
pub struct Interpreter {
    #[serde(skip)]
    pub program: PathBuf,
    pub implementation: String,
    version: [u32; 2],
    pub machine: String,
    /// Empty with another C library.
    pub glibc: String,
    /// The path of its shared library, the name alone if the loader finds it, or empty.
    libpython: String,
    /// The interpreter that a virtual environment was made from.
    base: PathBuf,
}

/// Prints the version of a package, or nothing.
const VERSION: &str = "
import importlib.metadata, sys
try:
    print(importlib.metadata.version(sys.argv[1]))
except importlib.metadata.PackageNotFoundError:
    pass
";

impl Interpreter {
    /// # Errors
    /// The program does not run, or is not a Python.
    pub fn ask(program: &Path) -> Result<Self, String> {
        let shown = program.display();
        let mut command = Command::new(program);
        // Isolated: neither the current directory nor variables change what is imported.
        command.args(["-I", "-c", FACTS]).stdin(Stdio::null());
        let done = command.output().map_err(|e| {
            format!("unable to run '{shown}': {e}; --python=PROGRAM names a Python with pip")
        })?;
        let facts = serde_json::from_slice(&done.stdout).ok().filter(|_| done.status.success());
        let facts: Self = facts.ok_or_else(|| {
            let said = String::from_utf8_lossy(&done.stderr);
            let said = said.lines().last().unwrap_or_default();
            format!("'{shown}' is not a Python that runs ({}): {said}", done.status)
        })?;
        Ok(Self { program: program.to_owned(), ..facts })
    }

    /// Such as `3.11`.
    pub fn minor_version(&self) -> String {
        let [major, minor] = self.version;
        format!("{major}.{minor}")
    }

    /// The path of the shared library; `None` if the loader finds it by its name.
    ///
    /// # Errors
    /// There is none.
    pub fn shared_library(&self) -> Result<Option<&Path>, String> {
        let minor = self.minor_version();
        match Path::new(&self.libpython) {
            path if path.is_absolute() => Ok(Some(path)),
            path if !path.as_os_str().is_empty() => Ok(None),
            _ => Err(format!(
                "'{}' has no shared library libpython{minor}.so.1.0, which the backend is linked with: \
                 `apt-get install libpython{minor}`, or a Python that was built with --enable-shared by \
                 --python=PROGRAM",
                self.program.display()
            )),
        }
    }

    /// The version of a package that programs with the shared library find, which is not that of a
    /// virtual environment.
    pub fn installed_version(&self, package: &str) -> Option<String> {
        let mut command = Command::new(&self.base);
        let done =
            command.args(["-I", "-c", VERSION, package]).stdin(Stdio::null()).output().ok()?;
        let version = String::from_utf8_lossy(&done.stdout).trim().to_owned();
        (!version.is_empty()).then_some(version)
    }

    /// # Errors
    /// The interpreter has no pip.
    pub fn check_pip(&self) -> Result<(), String> {
        let mut command = self.pip();
        let done = command.arg("--version").stdin(Stdio::null()).output();
        if done.is_ok_and(|done| done.status.success()) {
            return Ok(());
        }
        Err(format!(
            "'{}' has no pip, which downloads the packages: `apt-get install python3-pip`, or a virtual environment's \
             python by --python=PROGRAM",
            self.program.display()
        ))
    }

    /// `python -m pip`, with the user's settings.
    pub fn pip(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["-m", "pip", "--disable-pip-version-check", "--no-input"]);
        command
    }
}
