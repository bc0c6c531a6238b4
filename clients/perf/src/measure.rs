//! The measurement: windows at each load until the result is stable, several targets in turn.

use crate::engine::{Engine, Failures};
use crate::output;
use crate::progress::ProgressReport;
use crate::search::Search;
use crate::settings::{Program, Range, Settings};
use crate::target::MeasuredTarget;
use crate::window::{NoWindow, STABLE, TrialDecision, Trials, Window};
use std::time::{Duration, Instant};

/// A window is the centre of a time that is a fifth longer.
const WIDER: f64 = 1.2;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadPoint {
    Concurrency(usize),
    Rate(f64),
    /// The mean rate of the given intervals.
    Intervals(f64),
}

/// The result of a target at one load.
#[derive(Clone, Debug)]
pub struct Point {
    pub load: LoadPoint,
    /// What is reported.
    pub window: Window,
    /// The windows that it was made from, in rounds.
    pub rounds: Vec<Vec<Window>>,
    pub stable: bool,
    /// Within the latency limit, and stable.
    pub met: bool,
}

/// All results of a target.
pub struct TargetResults {
    pub target: MeasuredTarget,
    pub points: Vec<Point>,
}

/// Measures all targets at all loads. What was measured is returned also if the measurement broke
/// off.
pub fn measure_targets(
    settings: &Settings,
    targets: Vec<MeasuredTarget>,
    progress: &mut ProgressReport,
) -> (Vec<TargetResults>, Result<(), NoWindow>) {
    let mut all: Vec<TargetResults> =
        targets.into_iter().map(|target| TargetResults { target, points: Vec::new() }).collect();
    let mut search = match settings.range {
        Range::Concurrency { start, end, step } => {
            let (start, end, step) = (start as f64, end as f64, step as f64);
            search_loads(settings.binary_search, start, end, step, true)
        }
        Range::Rate { start, end, step, .. } => {
            search_loads(settings.binary_search, start, end, step, false)
        }
        Range::Intervals(_) => Search::linear(1.0, 1.0, 1.0),
    };
    let mut load = Some(search.first());
    while let Some(value) = load {
        match measure_at(settings, &mut all, value, progress) {
            Ok(met) => load = search.next(met),
            Err(problem) => {
                progress.clear();
                return (all, Err(problem));
            }
        }
    }
    progress.clear();
    (all, Ok(()))
}

fn search_loads(binary: bool, start: f64, end: f64, step: f64, whole: bool) -> Search {
    match binary {
        true => Search::binary(start, end, step, whole),
        false => Search::linear(start, end, step),
    }
}

/// All targets at one load. Returns whether one met the limit.
fn measure_at(
    settings: &Settings,
    all: &mut [TargetResults],
    value: f64,
    progress: &mut ProgressReport,
) -> Result<bool, NoWindow> {
    let load = match &settings.range {
        Range::Concurrency { .. } => LoadPoint::Concurrency(value as usize),
        Range::Rate { .. } => LoadPoint::Rate(value),
        Range::Intervals(gaps) => {
            let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
            LoadPoint::Intervals(1e6 / mean)
        }
    };
    let rounds = if all.len() > 1 { settings.rounds } else { 1 };
    let mut found: Vec<Vec<Trial>> = all.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // A B, then B A: a drift of the machine hits both alike.
        let mut order: Vec<usize> = (0..all.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let target = &all[index].target;
            progress.point(load, &target.server, &target.model.name);
            if all.len() == 1 {
                progress.print(&output::load_text(load));
            }
            let trial = run_trial(settings, target, value, progress)?;
            found[index].push(trial);
        }
    }
    let mut any = false;
    for (measured, trials) in all.iter_mut().zip(found) {
        let windows: Vec<Window> =
            trials.iter().flat_map(|trial| trial.windows.iter().cloned()).collect();
        // perf_client reports the last window; several windows have more digits of the high
        // percentiles.
        let window = match settings.program {
            Program::PerfClient if rounds == 1 => windows.last().cloned().unwrap_or_default(),
            _ => Window::joined(&windows, settings.batch),
        };
        let limit_ms = settings.latency_limit_ms;
        let within = limit_ms == 0 || window.judged(settings.percentile) / 1_000_000 < limit_ms;
        let stable = trials.iter().all(|trial| trial.stable);
        let point = Point {
            load,
            window,
            rounds: trials.into_iter().map(|trial| trial.windows).collect(),
            stable,
            met: within && stable,
        };
        print(settings, measured, &point, within, progress, rounds > 1);
        any |= point.met;
        measured.points.push(point);
    }
    Ok(any)
}

fn print(
    settings: &Settings,
    measured: &TargetResults,
    point: &Point,
    within: bool,
    progress: &mut ProgressReport,
    several: bool,
) {
    let target = &measured.target;
    if several {
        progress.print(&format!("Server: {}, model: {}\n", target.server, target.model.name));
        progress.print(&output::load_text(point.load));
    }
    progress.print(&output::report_text(&point.window, settings, target.model.is_stateful()));
    if !within {
        let limit = settings.latency_limit_ms;
        progress.warn(&format!("Measured latency went over the set limit of {limit} msec. "));
    } else if !point.stable {
        progress.warn(&match point.load {
            LoadPoint::Concurrency(n) => format!(
                "Failed to obtain stable measurement within {} measurement windows for concurrency {n}. \
                 Please try to increase the --measurement-interval.",
                settings.max_trials
            ),
            _ => "Failed to obtain stable measurement.".to_owned(),
        });
    }
}

/// The windows of one target at one load.
struct Trial {
    windows: Vec<Window>,
    stable: bool,
}

fn run_trial(
    settings: &Settings,
    target: &MeasuredTarget,
    value: f64,
    progress: &mut ProgressReport,
) -> Result<Trial, NoWindow> {
    let mut engine = target.load(&settings.range, value)?;
    let (mut trials, mut windows) = (Trials::default(), Vec::new());
    // Failures of requests outside of the windows.
    let mut outside = Failures::default();
    let stable = loop {
        let window =
            measure_window(settings, target, &mut engine, progress, (trials.count(), &mut outside));
        let number = trials.count() + 1;
        match window {
            Ok(window) => {
                let latency = window.judged(settings.percentile);
                trials.add(window.infer_per_sec, latency);
                if settings.verbose {
                    progress.print(&output::pass_text(number, &window, settings.percentile));
                }
                if settings.program == Program::PerfClient
                    && let Some(failure) = window.first_failure
                {
                    return Err(NoWindow::Broken(failure));
                }
                windows.push(window);
            }
            Err(problem) => {
                trials.add_failed();
                if settings.verbose {
                    progress.print(&output::failed_pass(number, &problem.text()));
                }
                let last = trials.count() >= settings.max_trials;
                if last || problem != NoWindow::NoRequests {
                    return Err(problem);
                }
            }
        }
        match trials.next(settings.stability, settings.latency_limit_ms, settings.max_trials) {
            TrialDecision::Continue => {}
            TrialDecision::Stable => break true,
            TrialDecision::OverLimit | TrialDecision::Exhausted => break false,
        }
    };
    engine.stop()?.fold_failures(&mut outside);
    if windows.is_empty() {
        return Err(NoWindow::NoRequests);
    }
    let first = windows.len().saturating_sub(STABLE);
    // The windows before the last ones are not reported, their failures are.
    let mut kept = windows.split_off(first);
    for window in windows {
        outside.add(window.failures, window.first_failure);
    }
    if let Some(window) = kept.first_mut() {
        window.failures += outside.count;
        window.first_failure = window.first_failure.take().or(outside.first);
    }
    Ok(Trial { windows: kept, stable })
}

fn measure_window(
    settings: &Settings,
    target: &MeasuredTarget,
    engine: &mut Engine,
    progress: &mut ProgressReport,
    (done, early): (usize, &mut Failures),
) -> Result<Window, NoWindow> {
    let before = target.statistics()?;
    // What completed before the server's counters were read does not count.
    engine.take()?.fold_failures(early);
    let length = settings.window.mul_f64(WIDER);
    if settings.profile {
        target.profile(true)?;
    }
    let end = Instant::now() + length;
    while let Some(left) = end.checked_duration_since(Instant::now())
        && !progress.is_interrupted()
    {
        progress.window(done, settings, left);
        std::thread::sleep(left.min(Duration::from_millis(200)));
    }
    if settings.profile {
        target.profile(false)?;
    }
    if progress.is_interrupted() {
        progress.warn("Waiting for in-flight inferences to complete.");
        return Err(NoWindow::Broken("Received exit signal.".to_owned()));
    }
    let after = target.statistics()?;
    let taken = engine.take()?;
    let length = u64::try_from(settings.window.as_nanos()).unwrap_or(u64::MAX);
    Window::new(taken, length, settings.batch, after.since(&before))
}
