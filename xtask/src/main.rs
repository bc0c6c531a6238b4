//! `cargo xtask`: the chores of this repository, each with one command. This file is the list.

mod command;
mod paths;
mod python;
mod runtimes;

use clap::{Arg, ArgAction, Command};
use command::Result;
use paths::Paths;
use std::process::ExitCode;

fn main() -> ExitCode {
    let matches = cli().get_matches();
    let paths = Paths::find();
    let done: Result<()> = match matches.subcommand() {
        Some(("runtimes", _)) => runtimes::fetch(&paths),
        Some(("python", _)) => python::environment(&paths, &python::V1)
            .and_then(|_| python::environment(&paths, &python::V2))
            .map(|_| ()),
        _ => Ok(()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn cli() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let _ = flag;
    Command::new("cargo xtask")
        .about("The chores of this repository")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("runtimes").about("Put ONNX Runtime into target/dist/lib (a pinned download)"),
        )
        .subcommand(
            Command::new("python").about("Make the Python environments of the tests under target/python"),
        )
}
