//! The client library for C and C++ in an install.
//!
//!     lib/libtrtserver_client.so
//!     include/trtserver_client.h
//!     include/trtserver_client/                C++ classes on it, and generated protobuf messages
//!     include/v1.11/  include/v0.12/           headers at the paths of TRTIS 1.11 and 0.12
//!     lib/pkgconfig/  lib/cmake/trtserver-client/

use crate::build::put;
use crate::command::{Result, run};
use crate::paths::Paths;
use crate::sdk;
use std::path::Path;
use std::process::Command;

/// What is built.
pub const PACKAGE: &str = "trtserver-client-c";
const LIBRARY: &str = "libtrtserver_client.so";
/// What each install has of its own in `lib`.
pub const OWN: [&str; 3] = [LIBRARY, "pkgconfig", "cmake"];

/// Templates of `clients/c/package`, and the folders where they are installed.
const PACKAGES: &[(&str, &str)] = &[
    ("trtserver-client.pc", "lib/pkgconfig"),
    ("trtserver-client-v1.11.pc", "lib/pkgconfig"),
    ("trtserver-client-v0.12.pc", "lib/pkgconfig"),
    ("trtserver-client-config.cmake", "lib/cmake/trtserver-client"),
    ("trtserver-client-config-version.cmake", "lib/cmake/trtserver-client"),
];

/// Installs the files below `dist` from cargo's output in `built`. `sdk::install` has emptied
/// `include`.
///
/// # Errors
/// A file cannot be read or written.
pub fn install(paths: &Paths, built: &Path, dist: &Path) -> Result<()> {
    let client = paths.root.join("clients/c");
    put(&built.join(LIBRARY), &dist.join("lib").join(LIBRARY))?;
    let include = dist.join("include");
    sdk::copy_all(&client.join("include"), &include)?;
    let mut generate = Command::new(built.join("trtserver-client-headers"));
    run(generate.arg(&include), "the C++ headers of the client could not be generated")?;
    let version = sdk::version(&paths.root.join("Cargo.toml"))?;
    sdk::put_packages(&client.join("package"), PACKAGES, &version, dist)
}
