//! `cargo xtask`: the chores of this repository, each with one command. This file is the list.

mod bench;
mod build;
mod command;
mod demo;
mod deny;
mod gate;
mod paths;
mod perf_analyzer;
mod python;
mod runtimes;
mod soak;
mod test;
mod tidy;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use command::Result;
use paths::Paths;
use std::process::ExitCode;

fn main() -> ExitCode {
    // `cargo xtask demo -- --once` and `cargo xtask demo --once` are the same wish.
    let matches = cli().get_matches_from(std::env::args_os().filter(|argument| argument != "--"));
    match work(&Paths::find(), &matches) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: error: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn work(paths: &Paths, matches: &ArgMatches) -> Result<()> {
    match matches.subcommand() {
        Some(("demo", with)) => demo::demo(
            paths,
            &demo::Options {
                once: with.get_flag("once"),
                debug: with.get_flag("debug"),
                http_port: with.get_one("http-port").copied(),
                grpc_port: with.get_one("grpc-port").copied(),
                metrics_port: with.get_one("metrics-port").copied(),
            },
        ),
        Some(("test", with)) => {
            let only: Vec<String> = with.get_many("only").unwrap_or_default().cloned().collect();
            test::test(paths, &only)
        }
        Some(("bench", with)) => {
            let arguments: Vec<String> =
                with.get_many("arguments").unwrap_or_default().cloned().collect();
            bench::bench(paths, with.get_flag("no-build"), &arguments)
        }
        Some(("gate", with)) => {
            let arguments: Vec<String> =
                with.get_many("arguments").unwrap_or_default().cloned().collect();
            gate::gate(paths, &arguments).map(|_| ())
        }
        Some(("soak", with)) => {
            let arguments: Vec<String> =
                with.get_many("arguments").unwrap_or_default().cloned().collect();
            soak::soak(paths, &arguments)
        }
        Some(("build", with)) => build::build(paths, with.get_flag("debug")).map(|_| ()),
        Some(("runtimes", _)) => runtimes::fetch(paths),
        Some(("python", _)) => python::environment(paths, &python::V1)
            .and_then(|_| python::environment(paths, &python::V2))
            .map(|_| ()),
        // clap has refused everything else.
        _ => Ok(()),
    }
}

fn cli() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    let port = |name: &'static str, usual: &str| {
        Arg::new(name)
            .long(name)
            .value_name("PORT")
            .value_parser(value_parser!(u16))
            .help(format!("Instead of {usual}, or of any free one if that is taken"))
    };
    Command::new("cargo xtask")
        .bin_name("cargo xtask")
        .about("The chores of this repository, each with one command")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("demo")
                .about("Build, serve examples/models, and show a few pictures to the server")
                .arg(flag("once", "End after the answers; fail if one is wrong or missing"))
                .arg(flag("debug", "Use the debug build: slower, but sooner there"))
                .arg(port("http-port", "8000"))
                .arg(port("grpc-port", "8001"))
                .arg(port("metrics-port", "8002")),
        )
        .subcommand(
            Command::new("test").about("Everything a change has to pass: what CI runs").arg(
                Arg::new("only")
                    .long("only")
                    .value_name("STEP")
                    .action(ArgAction::Append)
                    .value_parser(PossibleValuesParser::new(test::step_names()))
                    .help("Run this step alone (repeatable)"),
            ),
        )
        .subcommand(
            Command::new("bench")
                .about("Build the release server and measure what a request costs it")
                .arg(flag("no-build", "Measure what was built last"))
                .arg(
                    Arg::new("arguments")
                        .value_name("ARGUMENT")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("For trtserver-bench, such as --quick, or --help for all of them"),
                ),
        )
        .subcommand(
            Command::new("gate")
                .about("Count what a request costs the server, and compare it with the ceilings")
                .arg(
                    Arg::new("arguments")
                        .value_name("ARGUMENT")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("For trtserver-gate: --ceilings prints the table of ceilings anew"),
                ),
        )
        .subcommand(
            Command::new("soak")
                .about(
                    "A million requests to eight models, with every batcher and many cancellations",
                )
                .arg(
                    Arg::new("arguments")
                        .value_name("ARGUMENT")
                        .num_args(0..)
                        .trailing_var_arg(true)
                        .allow_hyphen_values(true)
                        .help("For the soak: --requests N"),
                ),
        )
        .subcommand(
            Command::new("build")
                .about("Build the server, its plugins and the client into target/dist")
                .arg(flag("debug", "Into target/dist-debug, unoptimised, with the tests' plugins")),
        )
        .subcommand(
            Command::new("runtimes")
                .about("Put ONNX Runtime into target/dist/lib (a pinned download)"),
        )
        .subcommand(
            Command::new("python")
                .about("Make the Python environments of the real clients under target/python"),
        )
}
