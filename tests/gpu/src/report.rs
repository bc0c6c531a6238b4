//! Runs checks and prints what became of each: PASS with figures, SKIP or FAIL with the reason.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

/// How a check ends that does not panic.
pub enum Outcome {
    /// With its figures.
    Pass(String),
    /// With the reason.
    Skip(String),
}

/// The reason of a failure, unless the check panics.
pub type CheckResult = Result<Outcome, String>;

thread_local! {
    /// Message of the last panic of this thread.
    static PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

#[derive(Default)]
pub struct Report {
    passed: usize,
    skipped: usize,
    failed: usize,
}

impl Report {
    /// Panics of checks become their reasons from now on.
    pub fn new() -> Self {
        std::panic::set_hook(Box::new(|info| {
            PANIC.with(|text| *text.borrow_mut() = info.to_string());
        }));
        Self::default()
    }

    pub fn run(&mut self, name: &str, check: impl FnOnce() -> CheckResult) {
        let begin = Instant::now();
        let result = catch_unwind(AssertUnwindSafe(check))
            .unwrap_or_else(|_| Err(PANIC.with(|text| text.borrow().clone())));
        let (word, count, text) = match result {
            Ok(Outcome::Pass(figures)) => ("PASS", &mut self.passed, figures),
            Ok(Outcome::Skip(reason)) => ("SKIP", &mut self.skipped, reason),
            Err(reason) => ("FAIL", &mut self.failed, reason),
        };
        *count += 1;
        println!("{word}  {name} ({:.1} s)  {}", begin.elapsed().as_secs_f64(), text.trim_end());
    }

    pub fn finish(self) -> ExitCode {
        println!("{} passed, {} skipped, {} failed", self.passed, self.skipped, self.failed);
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}
