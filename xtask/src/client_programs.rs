//! The sample programs of `clients/programs` in an install: the C++ ones compiled, and the sources
//! of all to read and to run.
//!
//!     bin/image_client  bin/simple_client  …
//!     share/trtserver-client/programs/cpp/  python/

use crate::command::{Result, joined, run};
use crate::paths::Paths;
use crate::sdk;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::SystemTime;

const NEED_COMPILER: &str =
    "a C++ compiler is needed (Debian and Ubuntu: apt install g++), or set CXX=PROGRAM";
/// What the C++ programs are made of; the installed headers are written anew by each build.
const SOURCES: [&str; 4] =
    ["clients/programs/cpp", "clients/c/include", "clients/c/headers", "proto/nvidia"];

/// Installs the programs. `client_library::install` has installed headers and library.
///
/// # Errors
/// A program does not compile, or a file cannot be written.
pub fn install(paths: &Paths, dist: &Path) -> Result<()> {
    let share = dist.join("share/trtserver-client/programs");
    // Programs that were renamed must not remain.
    let _ = fs::remove_dir_all(&share);
    let programs = paths.root.join("clients/programs");
    for language in ["cpp", "python"] {
        sdk::copy_all(&programs.join(language), &share.join(language))?;
    }
    let mut newest = SystemTime::UNIX_EPOCH;
    for folder in SOURCES {
        for file in files(&paths.root.join(folder))? {
            newest = newest.max(modified(&file));
        }
    }
    let mut outdated = Vec::new();
    for source in files(&programs.join("cpp"))? {
        let program = dist.join("bin").join(source.file_stem().unwrap_or_default());
        let is_program = source.extension().is_some_and(|ending| ending == "cc");
        if is_program && (!program.exists() || modified(&program) <= newest) {
            outdated.push((source, program));
        }
    }
    compile_all(outdated, dist)
}

/// Compiles programs, one at a time on each core.
fn compile_all(programs: Vec<(PathBuf, PathBuf)>, dist: &Path) -> Result<()> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let pending = Mutex::new(programs.into_iter());
    let next = || pending.lock().unwrap_or_else(PoisonError::into_inner).next();
    let compile_some = || {
        while let Some((source, program)) = next() {
            compile(&source, &program, dist)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let compilers: Vec<_> = (0..cores).map(|_| scope.spawn(compile_some)).collect();
        compilers.into_iter().try_for_each(joined)
    })
}

fn compile(source: &Path, program: &Path, dist: &Path) -> Result<()> {
    let include = dist.join("include");
    let new = program.with_extension("new");
    let mut command = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    command.args(["-std=c++11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]);
    command.arg("-I").arg(include.join("v1.11")).arg("-I").arg(&include);
    // An install can be moved: the library is beside the programs' folder.
    command.arg("-o").arg(&new).arg(source).arg("-L").arg(dist.join("lib"));
    command.args(["-ltrtserver_client", "-Wl,-rpath,$ORIGIN/../lib"]);
    run(&mut command, NEED_COMPILER)?;
    fs::rename(&new, program).map_err(|e| format!("cannot write {}: {e}", program.display()))
}

/// All files below a folder, in order.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    found.sort();
    Ok(found)
}

fn modified(file: &Path) -> SystemTime {
    fs::metadata(file).and_then(|m| m.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}
