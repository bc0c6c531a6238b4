//! `trtserver plugin list`: not built yet.

use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("list").about("Shows the backends in a directory")
}

pub fn run(_matches: &ArgMatches) -> Result<ExitCode, String> {
    Err("trtserver plugin list: not built yet".into())
}
