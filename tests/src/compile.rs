//! Compiles backends written in C, as their authors would: one header, nothing to link.

use crate::install::root;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A temporary folder, for backends and such.
pub fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("trtserver-tests-")
        .tempdir()
        .unwrap_or_else(|e| panic!("no temporary directory: {e}"))
}

/// Compiles `source`, a path in the checkout, to `folder/libtrtserver_NAME.so`.
pub fn compile_c(source: &str, folder: &Path, name: &str) -> PathBuf {
    let library = folder.join(format!("libtrtserver_{name}.so"));
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let mut command = Command::new(&compiler);
    command.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-I"]);
    command.arg(root().join("plugin-api/include")).arg("-o").arg(&library).arg(root().join(source));
    let done = command.output().unwrap_or_else(|e| {
        panic!("cannot run the C compiler {}: {e} (CC=… names one)", compiler.display())
    });
    assert!(
        done.status.success(),
        "{source} does not compile\n{command:?}\n{}",
        String::from_utf8_lossy(&done.stderr)
    );
    library
}
