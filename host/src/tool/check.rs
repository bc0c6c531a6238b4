//! `trtserver plugin check`: the conformance kit. A child works with the backend and reports; what it does not live
//! to report is a finding, too.

mod child; // the process that runs the scenarios
mod kit; // what scenarios work with
mod model; // models to check with
mod process; // what a backend must leave as it was
mod promise; // the list
mod report; // findings for people and for programs
mod scenarios;

use super::{apart, list};
use child::{Line, Task};
use clap::{Arg, ArgMatches, Command, value_parser};
use promise::PROMISES;
use report::Report;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

pub fn command() -> Command {
    let long = "Runs the conformance kit against one backend and prints each promise of the interface as kept, broken \
                or not applicable, with the reason. The backend runs in a process of its own; if it crashes or hangs \
                there, that is a finding, and the kit goes on.\n\nWithout --model the kit tries models of its own that \
                need no file. A backend that needs model files is checked as far as that goes.\n\nExit status: 0 = no \
                promise is broken, 1 = one is, or the file cannot be checked, 2 = wrong use.";
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
                .help("A model's directory, with its config.pbtxt, to check with"),
        )
        .arg(
            Arg::new("setting")
                .long("setting")
                .value_name("KEY=VALUE")
                .action(clap::ArgAction::Append)
                .help("A setting for the backend, as --backend-config would give it"),
        )
        .arg(
            Arg::new("only")
                .long("only")
                .value_name("NAME")
                .value_parser(clap::builder::PossibleValuesParser::new(
                    PROMISES.iter().map(|p| p.id),
                ))
                .hide_possible_values(true)
                .help("Checks this promise alone; --help lists the names"),
        )
        .arg(
            Arg::new("time-limit")
                .long("time-limit")
                .value_name("S")
                .value_parser(value_parser!(f64))
                .default_value("10")
                .help("Seconds for one promise, after which the backend counts as hanging"),
        )
        .arg(list::json_flag())
        // The tool calls itself so.
        .arg(Arg::new("task").long("task").hide(true))
}

pub fn run(matches: &ArgMatches) -> Result<ExitCode, String> {
    if let Some(task) = matches.get_one::<String>("task") {
        return child::run(task);
    }
    let file = matches.get_one::<PathBuf>("file").cloned().unwrap_or_default();
    let file = looked_at(&file)?;
    let limit = matches.get_one::<f64>("time-limit").copied().unwrap_or(10.0);
    if !(0.1..=3600.0).contains(&limit) {
        return Err(format!("--time-limit={limit}: expected 0.1 to 3600 seconds"));
    }
    let model = matches.get_one::<PathBuf>("model").cloned();
    if let Some(dir) = &model {
        model::read(dir)?;
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
    Ok(ExitCode::from(u8::from(report.broken(only) > 0)))
}

/// What can be said without running anything.
fn looked_at(file: &Path) -> Result<PathBuf, String> {
    let shown = file.display();
    let found = std::fs::metadata(file).map_err(|e| format!("'{shown}': {e}"))?;
    if found.is_dir() {
        return Err(format!(
            "'{shown}' is a directory: name the library in it (trtserver plugin list --backend-dir '{shown}' shows them)"
        ));
    }
    trtserver_library_file::check(file).map_err(|fault| format!("'{shown}': {fault}"))?;
    // With a directory the loader takes the file and does not search for it.
    std::path::absolute(file).map_err(|e| format!("'{shown}': {e}"))
}

/// Children one after another, until every scenario was begun.
fn check(mut task: Task, only: Option<&str>, report: &mut Report) -> Result<(), String> {
    let limit = Duration::from_secs_f64(task.limit);
    if let Some(only) = only {
        let standing = promise::find(only).is_some_and(|p| p.standing);
        let needed = scenarios::with_needs(only);
        if !standing {
            let all = scenarios::SCENARIOS.iter().map(|s| s.id.to_owned());
            task.skip = all.filter(|id| !needed.contains(&id.as_str())).collect();
        }
    }
    loop {
        let words = serde_json::to_string(&task).map_err(|e| e.to_string())?;
        let words = ["plugin", "check", "--task", &words].map(Into::into);
        let (mut now, mut done) = (None, false);
        let ended = apart::run(&words, limit, |value| {
            let Ok(line) = serde_json::from_value::<Line>(value) else { return false };
            match &line {
                Line::Begin { id } => {
                    now = Some(id.clone());
                    task.skip.insert(id.clone());
                    return true;
                }
                Line::At { id } => now = Some(id.clone()),
                Line::Done => done = true,
                line => report.add(line),
            }
            false
        })?;
        if done && ended.end == apart::End::Exit(0) {
            task.failed.clear();
            break;
        }
        // What it was busy with is what it failed at.
        let id = match (done, now) {
            (true, _) => "life.process".to_owned(),
            (false, Some(id)) => id,
            (false, None) => "file.entry_symbol".to_owned(),
        };
        let again = !task.failed.insert(id.clone()) || done || id == "file.entry_symbol";
        task.skip.insert(id.clone());
        report.add(&Line::Broken { id, why: format!("it {}", ended.words()) });
        // What others need and came to no good end is known to the next child.
        task.failed.extend(report.not_good());
        task.skip.insert("file.entry_symbol".to_owned());
        if again {
            break;
        }
    }
    Ok(())
}
