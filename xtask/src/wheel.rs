//! The Python wheel `trtserver-client`: the packages of `clients/python` and the C library that
//! they call.
//!
//!     python/trtserver_client-<version>-py3-none-linux_<architecture>.whl
//!
//! A wheel is a zip archive with METADATA, WHEEL and RECORD. Nothing is compiled against Python, so
//! one wheel serves every CPython from 3.9 on. The same files give the same bytes: members are
//! sorted and have no times.

use crate::command::{Result, run, say};
use crate::paths::Paths;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

const NAME: &str = "trtserver_client";
/// The packages of the wheel, below `clients/python`.
const PACKAGES: [&str; 2] = ["tensorrtserver", "trtserver_client"];
/// Files of the packages; others, such as bytecode, are left out.
const ENDINGS: [&str; 3] = ["py", "pyi", "typed"];

/// Writes the wheel with this C library, stripped, into `python/` of the install, and removes
/// others there.
///
/// # Errors
/// A file cannot be read or written.
pub fn install(paths: &Paths, dist: &Path, library: &Path) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    let folder = dist.join("python");
    let wrap = |e| format!("cannot write to {}: {e}", folder.display());
    // A wheel of another version must not remain beside this one.
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(wrap)?;
    let tag = format!("py3-none-linux_{}", std::env::consts::ARCH);
    let wheel = folder.join(format!("{NAME}-{version}-{tag}.whl"));
    // More than half of a debug build is debug information.
    let stripped = folder.join("stripped.so");
    let hint = "`strip` is part of binutils, which C compilers need as well";
    run(Command::new("strip").arg("--strip-all").arg("-o").arg(&stripped).arg(library), hint)?;
    let members = members(paths, version, &tag, &stripped)?;
    fs::remove_file(&stripped).map_err(wrap)?;
    write_zip(&wheel, &members).map_err(|e| format!("cannot write {}: {e}", wheel.display()))?;
    say(format!("build: wheel {}", paths.short(&wheel)));
    Ok(())
}

/// A file of the archive.
struct Member {
    name: String,
    data: Vec<u8>,
}

fn members(paths: &Paths, version: &str, tag: &str, library: &Path) -> Result<Vec<Member>> {
    let read = |path: &Path| fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let source = paths.root.join("clients/python");
    let mut members = Vec::new();
    for package in PACKAGES {
        for file in package_files(&source.join(package))? {
            let name = file.strip_prefix(&source).unwrap_or(&file).display().to_string();
            members.push(Member { name, data: read(&file)? });
        }
    }
    let mut add = |name: String, data: Vec<u8>| members.push(Member { name, data });
    add(format!("{NAME}/libtrtserver_client.so"), read(library)?);
    let info = format!("{NAME}-{version}.dist-info");
    let metadata = String::from_utf8(read(&source.join("METADATA"))?)
        .map_err(|e| format!("clients/python/METADATA: {e}"))?;
    add(format!("{info}/METADATA"), metadata.replace("@VERSION@", version).into_bytes());
    add(format!("{info}/LICENSE"), read(&paths.root.join("LICENSE"))?);
    let wheel =
        format!("Wheel-Version: 1.0\nGenerator: trtserver\nRoot-Is-Purelib: false\nTag: {tag}\n");
    add(format!("{info}/WHEEL"), wheel.into_bytes());
    members.sort_by(|a, b| a.name.cmp(&b.name));
    // RECORD lists every file, itself without a hash, and is last by convention.
    let name = format!("{info}/RECORD");
    members.push(Member { data: record(&members, &name), name });
    Ok(members)
}

fn record(members: &[Member], own_name: &str) -> Vec<u8> {
    let mut text = String::new();
    for Member { name, data } in members {
        let hash = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(data));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name},sha256={hash},{}", data.len());
    }
    let _ = writeln!(text, "{own_name},,");
    text.into_bytes()
}

/// The Python files of a package and of the packages in it.
fn package_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|e| ENDINGS.iter().any(|ending| e == *ending)) {
                files.push(path);
            }
        }
    }
    Ok(files)
}

/// Stored, not compressed: the wheel is installed from the disk where it is made.
fn write_zip(wheel: &Path, members: &[Member]) -> std::io::Result<()> {
    let mut zip = ZipWriter::new(File::create(wheel)?);
    let plain = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::default());
    for Member { name, data } in members {
        let library = name.ends_with(".so");
        zip.start_file(name, plain.unix_permissions(if library { 0o755 } else { 0o644 }))?;
        zip.write_all(data)?;
    }
    zip.finish()?;
    Ok(())
}

#[cfg(test)]
#[path = "wheel_tests.rs"]
mod tests;
