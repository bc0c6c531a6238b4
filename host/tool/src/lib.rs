//! Commands that need no server: `trtserver check` for model repositories, `trtserver plugin …` for
//! authors and operators of backends, `trtserver backend fetch` for backends in Python packages.

mod check;
mod fetch;
mod list;
mod new;
mod repository;
pub mod store;
mod subprocess;

pub use fetch::run_backend;
pub use repository::check_repositories as check_repository;

use clap::error::{ContextKind, ErrorKind};
use clap::{ArgMatches, Command};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Runs `trtserver plugin` with these arguments. Exit status: 0 = success, 1 = a problem was found,
/// 2 = wrong usage.
pub fn run_tool(args: impl Iterator<Item = OsString>) -> ExitCode {
    let command = Command::new("trtserver plugin")
        .about("Lists backends, checks them, and creates new ones. No server is needed.")
        .after_help(
            "trtserver plugin COMMAND --help says more.\n\nExit status: 0 = success, 1 = a problem was found, \
             2 = wrong usage.",
        )
        .subcommand_required(true)
        .subcommands([list::list_command(), check::check_command(), new::new_command()]);
    let matches = match parse_arguments(command, args) {
        Ok(matches) => matches,
        Err(code) => return code,
    };
    let result = match matches.subcommand() {
        Some(("list", matches)) => list::run_list(matches),
        Some(("check", matches)) => check::run_check(matches),
        Some(("new", matches)) => new::run_new(matches),
        _ => return ExitCode::from(2),
    };
    finish(result, 1)
}

/// Parses the arguments of `command`. Help and errors are printed; then the result is the exit
/// status.
fn parse_arguments(
    mut command: Command,
    args: impl Iterator<Item = OsString>,
) -> Result<ArgMatches, ExitCode> {
    let name = command.get_name().to_owned();
    let args = std::iter::once(OsString::from(&name)).chain(args);
    command.try_get_matches_from_mut(args).map_err(|e| {
        let _ = match (e.kind(), e.get(ContextKind::InvalidSubcommand)) {
            (ErrorKind::InvalidSubcommand, Some(unknown)) => {
                let known: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
                let known: Vec<&str> = known.into_iter().filter(|known| *known != "help").collect();
                writeln!(
                    std::io::stderr(),
                    "{name}: unknown command '{unknown}'; expected {}\n{name} --help says what they do.",
                    alternatives(&known)
                )
            }
            _ => e.print(),
        };
        ExitCode::from(if e.use_stderr() { 2 } else { 0 })
    })
}

/// `a, b or c`.
fn alternatives(names: &[&str]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} or {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Exit status of a command, which is `failed` after an error. The error is printed.
fn finish(result: Result<ExitCode, String>, failed: u8) -> ExitCode {
    result.unwrap_or_else(|text| {
        let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
        ExitCode::from(failed)
    })
}
