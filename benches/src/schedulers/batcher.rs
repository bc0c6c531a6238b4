//! Batchers alone, in this process: the cost of a request by the number of queued requests.

use super::cpu::{MAX_ADDED_US, thread_cpu};
use super::steps::step;
use crate::options::Options;
use crate::table::{Table, median, verdict};
use trtserver_request::{InferRequest, RequestSequence};
use trtserver_scheduler::batcher::dynamic::DynamicBatcher;
use trtserver_scheduler::batcher::sequence::SequenceBatcher;
use trtserver_scheduler::batcher::settings::{
    BatchingSettings, DynamicSettings, QueuePolicy, SequenceSettings, SequenceStrategy,
};
use trtserver_scheduler::batcher::{BatchDecision, BatchEntry, BatchableRequest, WakeTarget};

pub const COLUMNS: &[&str] = &[
    "batcher",
    "ns/req of 10",
    "of 1000",
    "of 100000",
    "req/s of 10",
    "of 1000",
    "of 100000",
    "growth",
    "target",
    "",
];
const WAITING: [usize; 3] = [10, 1_000, 100_000];
/// Larger growth than cache misses explain.
const MAX_GROWTH: f64 = 3.0;
const MS: u64 = 1_000_000;
/// Between two arrivals.
const GAP: u64 = 1_000;

/// As large as a real request, since batchers move requests.
struct Light {
    priority: u64,
    timeout_us: u64,
    sequence: RequestSequence,
    _rest: [u64; (size_of::<InferRequest>() - size_of::<RequestSequence>()) / 8 - 2],
}

impl BatchableRequest for Light {
    type Memory = ();

    fn rows(&self) -> u32 {
        1
    }
    fn priority(&self) -> u64 {
        self.priority
    }
    fn timeout_us(&self) -> u64 {
        self.timeout_us
    }
    fn sequence(&self) -> &RequestSequence {
        &self.sequence
    }
    fn compatible_with(&self, _: &Self) -> bool {
        true
    }
}

fn light(number: u64) -> Light {
    let sequence = step(number);
    Light { priority: number % 3 + 1, timeout_us: 0, sequence, _rest: [0; _] }
}

/// What both batchers have in common.
trait AnyBatcher {
    fn push(&mut self, item: Light, now: u64, wakes: &mut Vec<WakeTarget>);
    fn next_batch(
        &mut self,
        now: u64,
        wakes: &mut Vec<WakeTarget>,
        batch: &mut Vec<BatchEntry<Light>>,
    ) -> BatchDecision;
    fn waiting(&self) -> usize;
}

impl AnyBatcher for DynamicBatcher<Light> {
    fn push(&mut self, item: Light, now: u64, wakes: &mut Vec<WakeTarget>) {
        let _ = DynamicBatcher::push(self, item, now, wakes);
    }

    fn next_batch(
        &mut self,
        now: u64,
        _: &mut Vec<WakeTarget>,
        batch: &mut Vec<BatchEntry<Light>>,
    ) -> BatchDecision {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.expire(now, &mut Vec::new());
        }
        DynamicBatcher::next_batch(self, now, batch)
    }

    fn waiting(&self) -> usize {
        DynamicBatcher::waiting(self)
    }
}

impl AnyBatcher for SequenceBatcher<Light> {
    fn push(&mut self, item: Light, now: u64, wakes: &mut Vec<WakeTarget>) {
        let _ = SequenceBatcher::push(self, item, now, wakes);
    }

    fn next_batch(
        &mut self,
        now: u64,
        wakes: &mut Vec<WakeTarget>,
        batch: &mut Vec<BatchEntry<Light>>,
    ) -> BatchDecision {
        if self.next_deadline().is_some_and(|at| at <= now) {
            self.expire(now, &mut Vec::new(), wakes);
        }
        SequenceBatcher::next_batch(self, 0, now, batch)
    }

    fn waiting(&self) -> usize {
        SequenceBatcher::waiting(self)
    }
}

/// A batcher under a steady load.
struct Steady {
    batcher: Box<dyn AnyBatcher>,
    now: u64,
    next: u64,
    wakes: Vec<WakeTarget>,
    batch: Vec<BatchEntry<Light>>,
}

impl Steady {
    fn fill(&mut self, waiting: usize) {
        while self.batcher.waiting() < waiting {
            self.now += GAP;
            self.batcher.push(light(self.next), self.now, &mut self.wakes);
            self.wakes.clear();
            self.next += 1;
        }
    }

    /// Takes batches until `requests` requests have been executed. As many arrive as leave.
    fn run(&mut self, requests: u64, waiting: usize) -> Result<(), String> {
        let until = self.next + requests;
        while self.next < until {
            match self.batcher.next_batch(self.now, &mut self.wakes, &mut self.batch) {
                BatchDecision::Batch(_) => self.batch.clear(),
                BatchDecision::Wait { until: Some(until) } => self.now = self.now.max(until),
                BatchDecision::Wait { until: None } => {
                    return Err("the batcher returns no batch".into());
                }
            }
            self.fill(waiting);
        }
        Ok(())
    }
}

fn shared(name: &str) -> DynamicSettings {
    let batching = BatchingSettings { max_rows: 16, preferred: vec![16], delay_ns: MS };
    let batching = (name != "default").then_some(batching);
    let mut settings = DynamicSettings { batching, ..Default::default() };
    match name {
        "dynamic 3-levels" => (settings.levels, settings.default_level) = (3, 2),
        "dynamic timeouts" => {
            settings.default_policy =
                QueuePolicy { timeout_us: 60_000_000, ..QueuePolicy::default() };
        }
        _ => {}
    }
    settings
}

fn sequences(strategy: SequenceStrategy) -> SequenceSettings {
    SequenceSettings { instances: 1, slots: 16, idle_ns: 1_000 * MS, strategy }
}

fn batcher(name: &str) -> Box<dyn AnyBatcher> {
    match name {
        "direct 16-slots" => {
            let direct = SequenceStrategy::Direct { delay_ns: 0, min_ready: 0 };
            Box::new(SequenceBatcher::new(sequences(direct)))
        }
        "oldest 16-slots" => {
            let batching = BatchingSettings { max_rows: 16, preferred: vec![16], delay_ns: MS };
            Box::new(SequenceBatcher::new(sequences(SequenceStrategy::Oldest(batching))))
        }
        dynamic => Box::new(DynamicBatcher::new(shared(dynamic))),
    }
}

const BATCHERS: [&str; 6] = [
    "default",
    "dynamic",
    "dynamic 3-levels",
    "dynamic timeouts",
    "direct 16-slots",
    "oldest 16-slots",
];

/// Nanoseconds of CPU time for one request.
fn cost(name: &str, waiting: usize, requests: u64) -> Result<f64, String> {
    let batcher = batcher(name);
    let mut steady = Steady { batcher, now: 1, next: 0, wakes: Vec::new(), batch: Vec::new() };
    steady.fill(waiting);
    // All queued requests have been replaced once before the measurement.
    steady.run(waiting as u64 + 1_000, waiting)?;
    let (first, begin) = (steady.next, thread_cpu());
    steady.run(requests, waiting)?;
    let used = thread_cpu().saturating_sub(begin);
    Ok(used.as_nanos() as f64 / (steady.next - first) as f64)
}

pub fn measure(options: &Options, table: &mut Table) {
    // A million for a pass of one second.
    let requests = (options.pass.as_secs_f64() * 1e6) as u64;
    for batcher in BATCHERS {
        let name = format!("scheduler batcher {batcher}");
        if !options.wants(&name) {
            continue;
        }
        let cost = |waiting| {
            let passes = (0..options.passes).map(|_| cost(batcher, waiting, requests));
            passes.collect::<Result<Vec<f64>, _>>().map(|all| median(&all))
        };
        match WAITING.map(cost) {
            [Ok(ten), Ok(thousand), Ok(many)] => {
                let growth = thousand.max(many) / ten;
                let met = growth <= MAX_GROWTH && many <= MAX_ADDED_US * 1e3;
                let ns = [ten, thousand, many].map(|ns| format!("{ns:.0}"));
                let rates = [ten, thousand, many].map(|ns| format!("{:.0}", 1e9 / ns));
                let mut cells = vec![name];
                cells.extend(ns.into_iter().chain(rates));
                cells.push(format!("{growth:.1}"));
                cells.push(format!("<={MAX_GROWTH:.0}x"));
                cells.push(verdict(met).to_owned());
                table.row(cells);
            }
            [Err(problem), ..] | [_, Err(problem), _] | [.., Err(problem)] => {
                table.failure(&name, &problem);
            }
        }
    }
}
