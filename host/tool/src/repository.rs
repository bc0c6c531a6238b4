//! `trtserver check`: validates model repositories offline, by the code that a server loads them
//! with.

mod report;

use super::list::json_flag;
use super::{finish, parse_arguments};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;
use trtserver_base::timer::DeadlineTimer;
use trtserver_config::cli;
use trtserver_config::cli::catalogue;
use trtserver_models::lifecycle::FindingSeverity;

/// Flags of the server that decide how models load.
const FLAGS: &[&str] = &[
    "strict-model-config",
    "disable-auto-complete-config",
    "model-config-name",
    "model-namespacing",
    "model-name",
    "backend-dir",
    "backend-config",
    "max-instances",
    "max-instances-per-model",
    "max-load-memory",
    "min-supported-compute-capability",
    "model-cache-dir",
    "model-cache-size",
    "store-timeout-secs",
];

fn command() -> Command {
    let long = "Checks every model of model repositories as a server would load it, without starting one: configuration \
                files, settings without effect, missing files, labels, version directories, ensembles and their steps. \
                Configurations are checked for this machine and its installed backends.\n\nExit status: 0 = nothing was \
                found, 1 = a model or version would not load, 2 = wrong usage, 3 = there are warnings only.";
    Command::new("trtserver check")
        .about("Checks a model repository without a server")
        .long_about(long)
        .next_line_help(true)
        .infer_long_args(true)
        .arg(
            Arg::new("repository")
                .value_name("DIR or URL")
                .value_parser(value_parser!(OsString))
                .num_args(1..)
                .required(true)
                .help("Model repositories, as --model-repository of the server"),
        )
        .arg(json_flag())
        .arg(
            Arg::new("open")
                .long("open")
                .action(ArgAction::SetTrue)
                .help("Also opens and warms up each version that would be served, in this process"),
        )
        .args(FLAGS.iter().filter_map(|name| catalogue::find_flag(name)).map(cli::build_arg))
}

/// Runs `trtserver check` with these arguments. Exit status: 0 = nothing was found, 1 = errors, 2 =
/// wrong usage, 3 = warnings only.
pub fn check_repositories(args: impl Iterator<Item = OsString>) -> ExitCode {
    match parse_arguments(command(), args) {
        Ok(matches) => finish(run_check(&matches), 2),
        Err(code) => code,
    }
}

fn run_check(matches: &ArgMatches) -> Result<ExitCode, String> {
    let env = |name: &str| std::env::var(name).ok();
    let start =
        trtserver_config::from_args(server_arguments(matches), &env, "").map_err(|e| e.stderr)?;
    let settings = start.settings;
    trtserver_server::configure_devices(&settings);
    let loader = trtserver_server::create_loader(
        &settings,
        DeadlineTimer::leak(),
        &std::sync::Arc::default(),
    )
    .map_err(|e| e.message)?;
    let repositories =
        trtserver_server::open_repositories(&settings, &loader.backends).map_err(|e| e.message)?;
    let found = loader.check_all(&repositories, matches.get_flag("open"));
    let found = found.map_err(|e| e.message)?;
    let text = if matches.get_flag("json") {
        report::findings_json(&found)?
    } else {
        report::findings_text(&found)
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    let code = match (found.count(FindingSeverity::Error), found.count(FindingSeverity::Warning)) {
        (0, 0) => 0,
        (0, _) => 3,
        _ => 1,
    };
    Ok(ExitCode::from(code))
}

/// The command line of a server with these repositories and flags.
fn server_arguments(matches: &ArgMatches) -> Vec<OsString> {
    let mut arguments = vec![OsString::from("trtserver")];
    let mut add = |name: &str, value: &OsString| {
        let mut argument = OsString::from(format!("--{name}="));
        argument.push(value);
        arguments.push(argument);
    };
    for dir in matches.get_many("repository").unwrap_or_default() {
        // The spelling that requires complete configurations unless a flag says otherwise.
        add("model-store", dir);
    }
    for name in FLAGS {
        for value in matches.get_many(name).unwrap_or_default() {
            add(name, value);
        }
    }
    arguments
}
