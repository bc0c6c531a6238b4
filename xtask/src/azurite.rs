//! Azurite, Microsoft's server with the interface of Azure Blob Storage, from npm: for the tests of object stores.

use crate::command::{Result, run, say};
use crate::paths::Paths;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const NEED_NPM: &str = "install Node.js with npm (Debian and Ubuntu: apt install nodejs npm), and check that a package registry is reachable";

/// Installs the versions of `tests/azurite/package-lock.json` unless they are there. Returns the script for Node.js.
pub fn install(paths: &Paths) -> Result<PathBuf> {
    let from = paths.root.join("tests/azurite");
    let dir = paths.target.join("azurite");
    let script = dir.join("node_modules/azurite/dist/src/blob/main.js");
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let lock = fs::read(from.join("package-lock.json")).map_err(failed)?;
    let stamp = dir.join("made-from.json");
    if fs::read(&stamp).is_ok_and(|made| made == lock) && script.exists() {
        say("azurite: up to date");
        return Ok(script);
    }
    say(format!("azurite: installing in {} (half a minute)", paths.short(&dir)));
    fs::create_dir_all(&dir).map_err(failed)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(from.join(file), dir.join(file)).map_err(failed)?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts"]).current_dir(&dir);
    run(&mut npm, NEED_NPM)?;
    fs::write(&stamp, lock).map_err(failed)?;
    Ok(script)
}
