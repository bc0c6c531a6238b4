//! Commands that need no server: `trtserver check` for model repositories, `trtserver plugin …` for authors and operators of
//! backends.

mod check; // the conformance check
mod list; // contents of backend directories
mod new; // a new backend from a template
mod repository; // `trtserver check`: offline validation of a model repository
pub mod store; // `trtserver store`
mod subprocess; // child processes for code under test

pub use repository::check as check_repository;

use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs `trtserver plugin` with these arguments. Exit status: 0 = success, 1 = a problem was found, 2 = wrong usage.
pub fn run(args: impl Iterator<Item = OsString>) -> ExitCode {
    let command = Command::new("trtserver plugin")
        .about("Lists backends, checks them, and creates new ones. No server is needed.")
        .after_help(
            "trtserver plugin COMMAND --help says more.\n\nExit status: 0 = success, 1 = a problem was found, \
             2 = wrong usage.",
        )
        .subcommand_required(true)
        .subcommands([list::command(), check::command(), new::command()]);
    let args = std::iter::once(OsString::from("trtserver plugin")).chain(args);
    let matches = match command.try_get_matches_from(args) {
        Ok(matches) => matches,
        Err(e) => {
            let asked = matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = match (e.kind(), e.get(ContextKind::InvalidSubcommand)) {
                (ErrorKind::InvalidSubcommand, Some(name)) => writeln!(
                    std::io::stderr(),
                    "trtserver plugin: unknown command '{name}'; expected list, check or new\n\
                     trtserver plugin --help says what they do."
                ),
                _ => e.print(),
            };
            return ExitCode::from(if asked { 0 } else { 2 });
        }
    };
    let result = match matches.subcommand() {
        Some(("list", matches)) => list::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("new", matches)) => new::run(matches),
        _ => return ExitCode::from(2),
    };
    match result {
        Ok(code) => code,
        Err(text) => {
            let _ = writeln!(std::io::stderr(), "{text}");
            ExitCode::from(1)
        }
    }
}
