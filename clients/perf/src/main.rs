//! `trtserver-perf`: load generator and benchmark for v1 and v2 servers; as `perf_client` it stands
//! in for the original of v1.
//!
//! The measurement (`measure`) asks each target's server for its counters, lets the engine send
//! prepared requests, and judges the windows. The engine (`engine`) is the only part that must be
//! fast.

mod compare;
mod control;
mod csv;
mod data;
mod encode;
mod engine;
mod flags;
mod json;
mod measure;
mod model;
mod number;
mod output;
mod progress;
mod report;
mod search;
mod settings;
mod statistics;
mod target;
mod window;

use measure::TargetResults;
use progress::{ProgressReport, to_stderr, to_stdout};
use settings::{Action, Comparison, Program, Settings};
use std::fs;
use std::path::Path;
use std::process::ExitCode;
use target::MeasuredTarget;
use window::NoWindow;

/// Exit codes, documented in docs/clients.md.
const CANNOT_MEASURE: u8 = 1;
const REQUESTS_FAILED: u8 = 2;
const REQUIREMENT_MISSED: u8 = 3;
const WORSE: u8 = 4;

/// Why the program does not end with 0.
struct ProgramFailure {
    code: u8,
    text: String,
}

impl From<String> for ProgramFailure {
    fn from(text: String) -> Self {
        ProgramFailure { code: CANNOT_MEASURE, text }
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args_os();
    let name = args.next().unwrap_or_default();
    let stem = Path::new(&name).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let program = match stem.as_str() {
        "perf_client" => Program::PerfClient,
        _ => Program::TrtserverPerf,
    };
    let outcome = match flags::parse_flags(program, std::iter::once(name).chain(args)) {
        Ok(Action::Measure(settings)) => run_measurement(&settings),
        Ok(Action::Compare(comparison)) => run_comparison(&comparison),
        Err(flags::Stop::Shown(text)) => {
            to_stdout(&text);
            Ok(())
        }
        Err(flags::Stop::Wrong(text)) => {
            let help = match program {
                Program::PerfClient => flags::build_command(program).render_help().to_string(),
                // A hundred lines of help would move the error out of sight.
                Program::TrtserverPerf => "For more information, try '--help'.".to_owned(),
            };
            to_stderr(&format!("error: {text}\n{help}\n"));
            return ExitCode::from(CANNOT_MEASURE);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(ProgramFailure { code, text }) => {
            to_stderr(&format!("error: {text}\n"));
            ExitCode::from(if program == Program::PerfClient { CANNOT_MEASURE } else { code })
        }
    }
}

fn run_measurement(settings: &Settings) -> Result<(), ProgramFailure> {
    let targets = open_targets(settings)?;
    let stateful = targets.iter().any(|target| target.model.is_stateful());
    let decoupled = targets.iter().any(|target| target.model.decoupled);
    let mut progress = ProgressReport::new(settings, targets.len());
    progress.catch_interrupts().map_err(|e| format!("no signal handler: {e}"))?;
    progress.print(&output::settings_text(settings, stateful, decoupled));
    let (all, outcome) = measure::measure_targets(settings, targets, &mut progress);
    for measured in all.iter().filter(|measured| !measured.points.is_empty()) {
        if all.len() > 1 {
            let target = &measured.target;
            progress.print(&format!("Server: {}, model: {}\n", target.server, target.model.name));
        }
        progress.print(&output::summary_text(&measured.points, settings));
    }
    let comparison = beside(&all, settings);
    progress.print(&comparison);
    write_file(&all, settings, &comparison)?;
    outcome.map_err(|problem| {
        let code = match problem {
            NoWindow::AllFailed(_) => REQUESTS_FAILED,
            NoWindow::NoRequests | NoWindow::Broken(_) => CANNOT_MEASURE,
        };
        ProgramFailure { code, text: problem.text() }
    })?;
    judge_results(&all, settings)
}

/// Each model on each server.
fn open_targets(settings: &Settings) -> Result<Vec<MeasuredTarget>, String> {
    let mut targets = Vec::new();
    for model in &settings.models {
        for server in &settings.servers {
            targets.push(MeasuredTarget::new(settings, server, model)?);
        }
    }
    if targets.len() > 1 && settings.binary_search {
        return Err("--binary-search takes one server and one model".to_owned());
    }
    Ok(targets)
}

/// Targets of one run against the first.
fn beside(all: &[TargetResults], settings: &Settings) -> String {
    let Some((first, others)) = all.split_first() else { return String::new() };
    let mut out = String::new();
    let tolerance = settings.tolerance;
    for other in others {
        let (old, new) = (&first.target, &other.target);
        out += &format!(
            "\n{} on {} against {} on {}:\n",
            new.model.name, new.server, old.model.name, old.server
        );
        for (before, after) in first.points.iter().zip(&other.points) {
            let (before, after) =
                (json::point_json(before, settings), json::point_json(after, settings));
            out += &format!("{}\n", compare::load_text(&after["load"]));
            for (_, text) in compare::compare_points(&before, &after, tolerance) {
                out += &format!("  {text}\n");
            }
        }
    }
    out
}

fn write_file(all: &[TargetResults], settings: &Settings, comparison: &str) -> Result<(), String> {
    let save = |file: &Path, text: &str| {
        fs::write(file, text).map_err(|e| format!("cannot write {}: {e}", file.display()))
    };
    if let Some(file) = &settings.csv {
        for (index, measured) in all.iter().enumerate() {
            // The first target has the name that was given.
            let file = match index {
                0 => file.clone(),
                _ => {
                    let name = file.file_name().unwrap_or_default().to_string_lossy();
                    file.with_file_name(format!("{}.{name}", index + 1))
                }
            };
            save(&file, &csv::csv_table(&measured.points, settings))?;
            for (file, text) in csv::composing_tables(&measured.points, settings, &file) {
                save(&file, &text)?;
            }
        }
    }
    if settings.json.is_none() && settings.report.is_none() {
        return Ok(());
    }
    let results = json::results_json(all, settings);
    if let Some(file) = &settings.json {
        save(file, &format!("{results:#}\n"))?;
    }
    if let Some(file) = &settings.report {
        save(file, &report::html_page(&results, comparison))?;
    }
    Ok(())
}

/// Failed requests and missed requirements.
fn judge_results(all: &[TargetResults], settings: &Settings) -> Result<(), ProgramFailure> {
    let points = || all.iter().flat_map(|measured| &measured.points);
    let failures: u64 = points().map(|point| point.window.failures).sum();
    if failures > 0 {
        let first = points().find_map(|point| point.window.first_failure.clone());
        let first = first.unwrap_or_default();
        let text = format!("{failures} requests failed; the first: {first}");
        return Err(ProgramFailure { code: REQUESTS_FAILED, text });
    }
    for requirement in &settings.requirements {
        for point in points() {
            if let Some(text) = requirement.missed(point) {
                let load = output::load_text(point.load);
                let text = format!("{text} ({})", load.trim().to_lowercase());
                return Err(ProgramFailure { code: REQUIREMENT_MISSED, text });
            }
        }
    }
    Ok(())
}

fn run_comparison(comparison: &Comparison) -> Result<(), ProgramFailure> {
    let read = |file: &Path| {
        let wrap = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
        let text = fs::read(file).map_err(|e| wrap(&e))?;
        serde_json::from_slice(&text).map_err(|e| wrap(&e))
    };
    let (before, after) = (read(&comparison.before)?, read(&comparison.after)?);
    let (text, worse) = compare::compare_results(&before, &after, comparison.tolerance)?;
    to_stdout(&text);
    to_stdout(&format!(
        "Test: Welch's t-test on the windows' figures, p < 0.01, and a difference above {} %.\n",
        number::format_number(comparison.tolerance * 100.0)
    ));
    match worse {
        true => Err(ProgramFailure { code: WORSE, text: "the second result is worse".to_owned() }),
        false => Ok(()),
    }
}
