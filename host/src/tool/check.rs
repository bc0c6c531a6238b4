//! `trtserver plugin check`: not built yet.

use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("check").about("Checks that a backend keeps the promises of the interface")
}

pub fn run(_matches: &ArgMatches) -> Result<ExitCode, String> {
    Err("trtserver plugin check: not built yet".into())
}
