//! `trtserver plugin …`: what authors and operators of backends do without a server.

mod apart; // code of others runs in a child
mod check; // a conformance kit
mod list; // what a backend directory holds
mod new; // a working template

use clap::Command;
use clap::error::{ContextKind, ErrorKind};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs `trtserver plugin` with the words that follow it. Exit status: 0 = done and good, 1 = something is
/// wrong with what was looked at, 2 = wrong use.
pub fn run(words: impl Iterator<Item = OsString>) -> ExitCode {
    let command = Command::new("trtserver plugin")
        .about("Looks at backends, checks them, and starts new ones. None of it needs a server.")
        .after_help(
            "trtserver plugin COMMAND --help says more.\n\nExit status: 0 = done and good, 1 = something is wrong \
             with what was looked at, 2 = wrong use.",
        )
        .subcommand_required(true)
        .subcommands([list::command(), check::command(), new::command()]);
    let words = std::iter::once(OsString::from("trtserver plugin")).chain(words);
    let matches = match command.try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(e) => {
            let asked = matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
            let _ = match (e.kind(), e.get(ContextKind::InvalidSubcommand)) {
                (ErrorKind::InvalidSubcommand, Some(word)) => writeln!(
                    std::io::stderr(),
                    "trtserver plugin: there is no command '{word}'; there are list, check and new\n\
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
