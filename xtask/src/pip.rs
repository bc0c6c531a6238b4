//! Runs pip. Debian's Python has none outside virtual environments, so each call is made in one.

use crate::command::{Result, cannot_start, failed, output, run, say};
use crate::paths::{self, Paths};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Prints `nothing` or the modules that a virtual environment with pip needs and this Python lacks,
/// and its minor version.
const MISSING: &str = "import importlib.util, sys\n\
    lacks = [name for name in ('venv', 'ensurepip') if not importlib.util.find_spec(name)]\n\
    print(' and '.join(lacks) or 'nothing', sys.version_info[1], sep=',')\n";

/// Creates a virtual environment with pip in `dir`: a copy of what [`environment`] has, where that is
/// of the same Python. To install pip takes three seconds.
///
/// # Errors
/// As for [`install_environment`].
pub fn create_environment(paths: &Paths, python: &Path, dir: &Path) -> Result<()> {
    environment(paths, python)?;
    remove_environment(dir)?;
    run(Command::new(python).args(["-m", "venv", "--without-pip"]).arg(dir), "")?;
    let script = "import sys; print(f'python3.{sys.version_info[1]}')";
    let lib = output(Command::new(dir.join("bin/python")).args(["-c", script]), "")?;
    let packages = format!("lib/{}/site-packages", lib.trim());
    let from = paths.python("pip").join(&packages);
    match from.exists() {
        true => run(Command::new("cp").arg("-a").arg(from.join(".")).arg(dir.join(packages)), ""),
        false => install_environment(python, dir),
    }
}

fn remove_environment(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|e| format!("cannot remove {}: {e}", dir.display()))?;
    }
    Ok(())
}

/// Creates a virtual environment in `dir`, and installs pip there.
///
/// # Errors
/// `python` lacks a module; the error names the Debian package.
pub fn install_environment(python: &Path, dir: &Path) -> Result<()> {
    let found = output(Command::new(python).args(["-c", MISSING]), "")?;
    if let Some(problem) = missing_modules(&python.display().to_string(), found.trim()) {
        return Err(problem);
    }
    remove_environment(dir)?;
    run(Command::new(python).args(["-m", "venv"]).arg(dir), "")
}

/// The error for the output of `MISSING`.
fn missing_modules(python: &str, found: &str) -> Option<String> {
    let (modules, minor) = found.split_once(',')?;
    // Debian's own Python has its packages under two names.
    let package = if python.ends_with("python3") { "python3" } else { &format!("python3.{minor}") };
    (modules != "nothing").then(|| {
        format!(
            "{python} (Python 3.{minor}) cannot create virtual environments with pip: it lacks {modules}\n  \
             Debian and Ubuntu: sudo apt-get install {package}-venv"
        )
    })
}

/// Python with pip and no other package, for downloads. `python` is what it is made with.
pub fn environment(paths: &Paths, python: &Path) -> Result<PathBuf> {
    let dir = paths.python("pip");
    let program = dir.join("bin/python");
    fs::create_dir_all(paths.target.join("python"))
        .map_err(|e| format!("{}: {e}", dir.display()))?;
    let _lock = paths::lock(&paths.target.join("python/pip.lock"))?;
    // The last file that is written: an interrupted run leaves no environment that looks complete.
    let stamp = dir.join("complete");
    if !stamp.exists() || !program.exists() {
        say(format!("python pip: creating {}", paths.short(&dir)));
        install_environment(python, &dir)?;
        fs::write(&stamp, "").map_err(|e| format!("cannot write {}: {e}", stamp.display()))?;
    }
    Ok(program)
}

/// pip of the environment of `python`, with this command.
pub fn pip(python: &Path, command: &str) -> Command {
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", command, "--no-input", "--disable-pip-version-check", "--no-deps"]);
    pip
}

/// Runs `pip`. An error says which of the known causes pip has printed.
pub fn run_pip(pip: &mut Command) -> Result<()> {
    let child = pip.stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|e| cannot_start(pip, &e, ""))?;
    let mut printed = String::new();
    if let Some(output) = child.stderr.take() {
        let mut to = std::io::stderr().lock();
        for line in BufReader::new(output).lines() {
            let line = line.map_err(|e| format!("cannot read the output of pip: {e}"))?;
            let _ = writeln!(to, "{line}");
            printed += &line;
            printed.push('\n');
        }
    }
    let status = child.wait().map_err(|e| format!("cannot wait for pip: {e}"))?;
    if status.success() {
        return Ok(());
    }
    Err(failed(pip, &status.to_string(), explain_failure(&printed)))
}

/// What to do, from what pip has printed.
fn explain_failure(printed: &str) -> &'static str {
    let has = |texts: &[&str]| texts.iter().any(|text| printed.contains(text));
    if has(&["No module named pip"]) {
        "the virtual environment has no pip: remove its folder and run the command again"
    } else if has(&["THESE PACKAGES DO NOT MATCH THE HASHES"]) {
        "the package index has other files under these names than the requirements file was written for"
    } else if has(&["No space left on device"]) {
        "the disk is full"
    } else if has(&[
        "Retrying (",
        "connection broken",
        "Could not fetch URL",
        "ConnectionError",
        "Read timed out",
    ]) {
        "the package index is not reachable: check the network, and pip's settings of index, proxy and certificates \
         (`python3 -m venv` and pip work)"
    } else if has(&["No matching distribution found"]) {
        "the package index was reached, and has no file of a pinned package for this platform and Python version"
    } else {
        "the output of pip above says why"
    }
}

#[cfg(test)]
#[path = "pip_tests.rs"]
mod tests;
