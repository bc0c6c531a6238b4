//! `trtserver plugin new`: not built yet.

use clap::{ArgMatches, Command};
use std::process::ExitCode;

pub fn command() -> Command {
    Command::new("new").about("Makes a new backend from a template")
}

pub fn run(_matches: &ArgMatches) -> Result<ExitCode, String> {
    Err("trtserver plugin new: not built yet".into())
}
