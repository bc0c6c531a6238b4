//! `cargo xtask test --only deny`: licences, banned crates and sources, as deny.toml has them.
//!
//! Advisories are not checked: their database is a git repository that has to be downloaded.

use crate::command::{Result, cargo, run, say};
use crate::paths::{self, Paths};
use std::path::PathBuf;
use std::process::Command;

/// Pinned: another release may read deny.toml differently.
const VERSION: &str = "0.20.2";

/// # Errors
/// A finding, or cargo-deny can be neither found nor installed.
pub fn deny(paths: &Paths) -> Result<()> {
    let program = installed()?;
    let mut command = Command::new(program);
    command.current_dir(&paths.root).args(["check", "licenses", "bans", "sources"]);
    run(&mut command, "deny.toml says what is allowed and why")
}

/// cargo-deny from the user's cache, built there once. A folder of its own keeps it away from the user's programs.
fn installed() -> Result<PathBuf> {
    let folder = paths::user_cache()?.join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        say(format!(
            "deny: building cargo-deny {VERSION} once (some minutes), into {}",
            folder.display()
        ));
        let mut command = cargo();
        // The workspace's toolchain and flags, but not its folder: a target directory is shared by nothing else.
        command.args(["install", "--quiet", "--locked", "--version", VERSION, "--root"]);
        command.arg(&folder).arg("cargo-deny").env_remove("CARGO_TARGET_DIR");
        run(&mut command, "cargo-deny comes from the crate registry; is it reachable?")?;
    }
    Ok(program)
}
