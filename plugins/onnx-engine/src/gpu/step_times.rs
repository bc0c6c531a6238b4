//! How long the steps of a batch take on the instance's thread, for the verbose log.

use std::time::{Duration, Instant};
use trtserver_plugin_api::author::Scope;

/// Batches of one log line.
const BATCHES: u32 = 256;

/// Means over the last batches.
pub struct StepTimes {
    model: String,
    scope: Scope,
    batches: u32,
    last: Instant,
    inputs: Duration,
    run: Duration,
    outputs: Duration,
}

impl StepTimes {
    pub fn new(model: &str, scope: &Scope) -> Self {
        let (none, last) = (Duration::ZERO, Instant::now());
        let (model, scope) = (model.to_owned(), scope.clone());
        Self { model, scope, batches: 0, last, inputs: none, run: none, outputs: none }
    }

    /// A batch begins.
    pub fn begin(&mut self) {
        self.last = Instant::now();
    }

    /// Copies of inputs are queued.
    pub fn inputs_written(&mut self) {
        let time = self.next_step();
        self.inputs += time;
    }

    /// The run has ended.
    pub fn run_ended(&mut self) {
        let time = self.next_step();
        self.run += time;
    }

    /// Copies of outputs are queued.
    pub fn outputs_passed(&mut self) {
        let time = self.next_step();
        self.outputs += time;
        self.batches += 1;
        if self.batches < BATCHES {
            return;
        }
        let mean =
            |sum: &mut Duration| std::mem::take(sum).as_secs_f64() * 1e6 / f64::from(BATCHES);
        let [inputs, run, outputs] = [&mut self.inputs, &mut self.run, &mut self.outputs].map(mean);
        self.batches = 0;
        self.scope.verbose(format_args!(
            "model '{}': means of {BATCHES} batches: inputs {inputs:.1} us, run {run:.1} us, outputs {outputs:.1} us",
            self.model
        ));
    }

    fn next_step(&mut self) -> Duration {
        let now = Instant::now();
        now - std::mem::replace(&mut self.last, now)
    }
}
