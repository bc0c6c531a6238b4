//! What is printed while measuring: results on stdout, and on stderr one line with the time left
//! that is overwritten.

use crate::measure::LoadPoint;
use crate::number::format_number;
use crate::settings::{Range, Settings};
use crate::window::STABLE;
use signal_hook::consts::SIGINT;
use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

pub struct ProgressReport {
    shown: bool,
    enabled: bool,
    place: String,
    /// Measurements of a target at a load, in all and begun.
    all: Option<usize>,
    begun: usize,
    interrupted: Arc<AtomicBool>,
}

impl ProgressReport {
    pub fn new(settings: &Settings, targets: usize) -> Self {
        let rounds = if targets > 1 { settings.rounds } else { 1 };
        let loads = if settings.binary_search { None } else { loads(&settings.range) };
        ProgressReport {
            shown: false,
            enabled: settings.progress.unwrap_or_else(|| std::io::stderr().is_terminal()),
            place: String::new(),
            all: loads.map(|loads| loads * targets * rounds),
            begun: 0,
            interrupted: Arc::default(),
        }
    }

    /// From now on the first SIGINT ends the measurement, so that results are still reported; the
    /// second ends the program.
    ///
    /// # Errors
    /// The handler cannot be installed.
    pub fn catch_interrupts(&self) -> std::io::Result<()> {
        let flag = || Arc::clone(&self.interrupted);
        // In this order: the first signal finds the flag not set.
        signal_hook::flag::register_conditional_default(SIGINT, flag())?;
        signal_hook::flag::register(SIGINT, flag())?;
        Ok(())
    }

    pub fn is_interrupted(&self) -> bool {
        self.interrupted.load(Ordering::Relaxed)
    }

    /// A target at a load begins.
    pub fn point(&mut self, load: LoadPoint, server: &str, model: &str) {
        self.begun += 1;
        let load = match load {
            LoadPoint::Concurrency(n) => format!("concurrency {n}"),
            LoadPoint::Rate(rate) => format!("{} requests/s", format_number(rate)),
            LoadPoint::Intervals(_) => "given intervals".to_owned(),
        };
        self.place = format!("{model} on {server}, {load}");
    }

    /// Within a window, after `done` windows of this load.
    pub fn window(&mut self, done: usize, settings: &Settings, left: Duration) {
        if !self.enabled {
            return;
        }
        let text = line(&self.place, done, settings, left, self.all.map(|all| all - self.begun));
        to_stderr(&format!("\r{text}\x1b[K"));
        self.shown = true;
    }

    /// Removes the line.
    pub fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            to_stderr("\r\x1b[K");
        }
    }

    pub fn print(&mut self, text: &str) {
        self.clear();
        to_stdout(text);
    }

    pub fn warn(&mut self, text: &str) {
        self.clear();
        to_stderr(&format!("{text}\n"));
    }
}

/// A reader that went away is not a reason to stop: files are still written, and the exit code
/// tells the outcome. The macros of the standard library would panic.
pub fn to_stdout(text: &str) {
    let mut out = std::io::stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

/// See [`to_stdout`].
pub fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The number of loads of a range, if it is known.
fn loads(range: &Range) -> Option<usize> {
    let count = |start: f64, end: f64, step: f64| match end {
        0.0 => None,
        end => Some(((end - start) / step).floor().max(0.0) as usize + 1),
    };
    match range {
        Range::Concurrency { start, end, step } => count(*start as f64, *end as f64, *step as f64),
        Range::Rate { start, end, step, .. } => count(*start, *end, *step),
        Range::Intervals(_) => Some(1),
    }
}

/// At least three windows are needed at each load; it may take more.
fn line(
    place: &str,
    done: usize,
    settings: &Settings,
    left: Duration,
    more: Option<usize>,
) -> String {
    let windows = STABLE.saturating_sub(done + 1) + STABLE * more.unwrap_or(0);
    let seconds = (left + settings.window.mul_f64(1.2 * windows as f64)).as_secs_f64().ceil();
    let least = if more.is_none() || done >= STABLE { "at least " } else { "" };
    format!(
        "{place}: window {} of {STABLE} to {}, {least}{seconds:.0} s left",
        done + 1,
        settings.max_trials
    )
}
