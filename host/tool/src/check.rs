//! `trtserver plugin check`: the conformance check. A child process runs scenarios on the backend
//! and reports each finding at once, so that a crash or a hang is a finding, too.

mod child;
mod element;
mod execute;
mod exports;
mod findings;
mod kit;
mod model;
mod process;
mod promise;
mod report;
mod scenarios;
mod search;
mod verdict;

use super::{list, subprocess};
use clap::{Arg, ArgMatches, Command, value_parser};
use findings::{FindingLine, Task};
use promise::PROMISES;
use report::Report;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub fn check_command() -> Command {
    let long = "Checks one backend against the promises of the plugin interface, and prints each as kept, broken or \
                untested or not applicable, with the reason. The backend runs in a child process; a crash or a hang is \
                a finding, and the check continues.\n\nWithout --model the check uses models of its own, which have no \
                file. A backend that needs model files is then checked in part.\n\nExit status: 0 = no promise is broken, 1 = \
                one is, or the file cannot be checked, 2 = wrong usage, 3 = none is broken, but no request could be tried.";
    let ids = PROMISES.iter().map(|p| format!("  {:<22}{}", p.id, p.text)).collect::<Vec<_>>();
    Command::new("check")
        .about("Checks that a backend keeps the promises of the interface")
        .long_about(long)
        .override_usage("trtserver plugin check [OPTIONS] FILE")
        .after_long_help(format!("Promises:\n{}", ids.join("\n")))
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .required_unless_present("task")
                .help("The backend: libtrtserver_NAME.so"),
        )
        .arg(
            Arg::new("model")
                .long("model")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Directory of a model to check with; contains its config.pbtxt"),
        )
        .arg(
            Arg::new("setting")
                .long("setting")
                .value_name("KEY=VALUE")
                .action(clap::ArgAction::Append)
                .help("A setting for the backend, like --backend-config"),
        )
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("NAME")
                .value_parser(clap::builder::PossibleValuesParser::new(
                    PROMISES.iter().map(|p| p.id),
                ))
                .hide_possible_values(true)
                .help("Checks this promise only; --help lists the names"),
        )
        .arg(
            Arg::new("time-limit")
                .long("time-limit")
                .value_name("S")
                .value_parser(value_parser!(f64))
                .default_value("10")
                .help("Seconds for one scenario, after which the backend counts as hanging"),
        )
        .arg(list::json_flag())
        // For the child process.
        .arg(Arg::new("task").long("task").hide(true))
}

pub fn run_check(matches: &ArgMatches) -> Result<ExitCode, String> {
    if let Some(task) = matches.get_one::<String>("task") {
        return child::run_scenarios(task);
    }
    let file = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let file = check_file(&file)?;
    let limit = matches.get_one::<f64>("time-limit").copied().unwrap_or(10.0);
    if !(0.1..=3600.0).contains(&limit) {
        return Err(format!("--time-limit={limit}: expected 0.1 to 3600 seconds"));
    }
    let model = matches.get_one::<PathBuf>("model").cloned();
    if let Some(dir) = &model {
        model::read_model(dir)?;
    }
    let scratch = tempfile::tempdir().map_err(|e| format!("no temporary directory: {e}"))?;
    std::fs::create_dir_all(scratch.path().join("check/1"))
        .map_err(|e| format!("no temporary directory: {e}"))?;
    let mut settings = std::collections::BTreeMap::new();
    for text in matches.get_many::<String>("setting").unwrap_or_default() {
        let Some((key, value)) = text.split_once('=') else {
            return Err(format!("--setting={text}: expected KEY=VALUE"));
        };
        settings.insert(key.to_owned(), value.to_owned());
    }
    let only = matches.get_one::<String>("only").map(String::as_str);
    let mut report = Report::default();
    let task = Task {
        file: file.clone(),
        model,
        settings,
        scratch: scratch.path().to_owned(),
        limit,
        skip: BTreeSet::new(),
        failed: BTreeSet::new(),
    };
    check(task, only, &mut report)?;
    let text =
        if matches.get_flag("json") { report.json(&file, only)? } else { report.text(&file, only) };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::from(report.exit_status(only)))
}

/// Checks the file without running anything; returns its absolute path.
fn check_file(file: &Path) -> Result<PathBuf, String> {
    let shown = file.display();
    let found = std::fs::metadata(file).map_err(|e| format!("'{shown}': {e}"))?;
    if found.is_dir() {
        return Err(format!(
            "'{shown}' is a directory: expected a library (trtserver plugin list --backend-dir '{shown}' lists them)"
        ));
    }
    trtserver_library_file::check_library(file).map_err(|fault| format!("'{shown}': {fault}"))?;
    // The loader searches for names without a directory.
    std::path::absolute(file).map_err(|e| format!("'{shown}': {e}"))
}

/// Runs children one after another, until every scenario has started.
fn check(mut task: Task, only: Option<&str>, report: &mut Report) -> Result<(), String> {
    let limit = Duration::from_secs_f64(task.limit);
    if let Some(only) = only {
        let standing = promise::find_promise(only).is_some_and(|p| p.standing);
        let needed = scenarios::with_needs(only);
        if !standing {
            let all = scenarios::SCENARIOS.iter().map(|s| s.id.to_owned());
            task.skip = all.filter(|id| !needed.contains(&id.as_str())).collect();
        }
    }
    loop {
        let task_json = serde_json::to_string(&task).map_err(|e| e.to_string())?;
        let args = ["plugin", "check", "--task", &task_json].map(Into::into);
        let (mut now, mut case, mut done) = (None, None, false);
        let ended = subprocess::run_child(&args, limit, |value| {
            let Ok(line) = serde_json::from_value::<FindingLine>(value) else { return false };
            match &line {
                FindingLine::Begin { id } => {
                    (now, case) = (Some(id.clone()), None);
                    task.skip.insert(id.clone());
                    return true;
                }
                FindingLine::At { id } => now = Some(id.clone()),
                FindingLine::Case { text } => case = Some(text.clone()),
                FindingLine::Done => done = true,
                line => report.add(line),
            }
            false
        })?;
        if done && ended.end == subprocess::ExitCause::Exit(0) {
            task.failed.clear();
            break;
        }
        // The scenario that was running has failed.
        let id = match (done, now) {
            (true, _) => "life.process".to_owned(),
            (false, Some(id)) => id,
            (false, None) => "file.entry_symbol".to_owned(),
        };
        let stop = !task.failed.insert(id.clone()) || done || id == "file.entry_symbol";
        task.skip.insert(id.clone());
        let with = case.map_or_else(String::new, |case| format!("with {case}, "));
        report.add(&FindingLine::Broken { id, why: format!("{with}it {}", ended.describe()) });
        // Scenarios that need a failed one are skipped by the next child.
        task.failed.extend(report.not_kept());
        task.skip.insert("file.entry_symbol".to_owned());
        if stop {
            break;
        }
    }
    Ok(())
}
