//! Compiles C and C++ sources to shared libraries with the public headers alone.

use crate::install::root;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A temporary folder.
pub fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("trtserver-tests-")
        .tempdir()
        .unwrap_or_else(|e| panic!("no temporary directory: {e}"))
}

/// Compiles `source`, a path in the checkout, to `folder/libtrtserver_NAME.so`.
pub fn compile_c(source: &str, folder: &Path, name: &str) -> PathBuf {
    let library = folder.join(format!("libtrtserver_{name}.so"));
    let include = root().join("plugin-api/include");
    compile(source, &library, &[format!("-I{}", include.display())]);
    library
}

/// Compiles `source` to a shared library with these options: C, C++14 (`.cc`) or C++17 (`.cpp`).
pub fn compile(source: &str, library: &Path, options: &[String]) {
    let (variable, usual, standard) = match source.rsplit_once('.') {
        Some((_, "cc")) => ("CXX", "c++", "-std=c++14"),
        Some((_, "cpp")) => ("CXX", "c++", "-std=c++17"),
        _ => ("CC", "cc", "-std=c11"),
    };
    let compiler = env::var_os(variable).unwrap_or_else(|| usual.into());
    let mut command = Command::new(&compiler);
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]).args(options);
    command.arg("-o").arg(library).arg(root().join(source));
    let done = command.output().unwrap_or_else(|e| {
        panic!("cannot run the compiler {}: {e} ({variable}=… names one)", compiler.display())
    });
    assert!(
        done.status.success(),
        "{source} does not compile\n{command:?}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Like [`compile`], for libraries that many tests of a program use: compiled by the first, which
/// keeps the bytes.
pub fn compiled(source: &str, options: &[String]) -> Vec<u8> {
    let folder = folder();
    let library = folder.path().join("library.so");
    compile(source, &library, options);
    std::fs::read(&library).unwrap_or_else(|e| panic!("{}: {e}", library.display()))
}
