//! A load thread: keeps slots busy (closed loop) or sends requests when they are due (open loop).

use super::arrivals::{Arrivals, Random};
use super::clock::{EngineClock, short_duration};
use super::grpc::Grpc;
use super::http::Http;
use super::sequences::{SequenceChooser, SequenceSlot, SequenceStep};
use super::{EnginePlan, Record, ThreadStatus};
use crate::settings::Protocol;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest wait: how soon a thread notices that it must stop.
const TICK: Duration = Duration::from_millis(20);
/// Pause of a slot whose request failed, so that a refused connection is not a busy loop.
const RETRY: u64 = 10_000_000;
/// A request that is sent later than this is reported as delayed.
const DELAYED: u64 = 1_000_000;

/// What a thread contributes to the load.
pub enum ThreadLoad {
    Slots(usize),
    Arrivals(Arrivals),
}

/// A request to be sent.
#[derive(Clone, Copy, Debug)]
pub struct RequestJob {
    /// Latency counts from here.
    pub start: u64,
    /// When it was handed to the transport.
    pub begun: u64,
    /// Data stream and step.
    pub data: (usize, usize),
    pub sequence: Option<SequenceStep>,
    pub slot: usize,
}

/// A request that succeeded or failed.
#[derive(Debug)]
pub struct FinishedRequest {
    pub job: RequestJob,
    /// When its last byte was written.
    pub sent: u64,
    /// When the first byte of the response was read.
    pub first: u64,
    /// When the response was complete; of a decoupled model, the first response.
    pub end: u64,
    pub responses: u32,
    pub failure: Option<String>,
}

/// Connections of one thread.
pub trait Transport {
    /// Whether a request would be sent at once.
    fn can_start(&self) -> bool;
    fn start(&mut self, job: RequestJob, done: &mut Vec<FinishedRequest>);
    /// Sends, waits for events, receives.
    fn wait(
        &mut self,
        timeout: Duration,
        precise: bool,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String>;
    /// Ends the connections after the last response.
    fn finish(&mut self);
}

/// Runs until told to stop.
pub fn run_thread(
    plan: &EnginePlan,
    part: ThreadLoad,
    place: (usize, usize),
    clock: EngineClock,
    shared: &ThreadStatus,
) -> Result<(), String> {
    let streams = plan.prepared.streams.iter().map(Vec::len).collect();
    let chooser = SequenceChooser::new(streams, plan.sequences.clone(), place);
    let sequences = plan.sequences.as_ref().map(|s| (s.concurrent / place.1).max(1));
    let limit =
        if matches!(part, ThreadLoad::Slots(_)) { usize::MAX } else { plan.max_connections };
    match plan.protocol {
        Protocol::Http => {
            let transport = Http::new(plan, clock, limit)?;
            Thread { transport, chooser, clock, shared, sequences, done: Vec::new() }.run(part)
        }
        Protocol::Grpc => {
            let transport = Grpc::new(plan, clock, limit)?;
            Thread { transport, chooser, clock, shared, sequences, done: Vec::new() }.run(part)
        }
    }
}

struct Thread<'s, T> {
    transport: T,
    chooser: SequenceChooser,
    clock: EngineClock,
    shared: &'s ThreadStatus,
    /// Concurrent sequences of an open loop, if the model is stateful.
    sequences: Option<usize>,
    done: Vec<FinishedRequest>,
}

impl<T: Transport> Thread<'_, T> {
    fn run(mut self, part: ThreadLoad) -> Result<(), String> {
        let outcome = match (part, self.sequences) {
            (ThreadLoad::Slots(slots), _) => self.closed(slots),
            (ThreadLoad::Arrivals(arrivals), None) => self.open(arrivals),
            (ThreadLoad::Arrivals(arrivals), Some(count)) => self.open_sequences(arrivals, count),
        };
        self.transport.finish();
        outcome
    }

    fn stopping(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed)
    }

    /// Adds what is done to the shared records. Returns the slots that are free, and whether their
    /// requests failed.
    fn record(&mut self, free: &mut Vec<(usize, bool)>) {
        free.clear();
        if self.done.is_empty() {
            return;
        }
        let mut taken = self.shared.lock();
        for done in self.done.drain(..) {
            let job = done.job;
            free.push((job.slot, done.failure.is_some()));
            if let Some(failure) = done.failure {
                taken.failures += 1;
                taken.first_failure.get_or_insert(failure);
                continue;
            }
            taken.records.push(Record {
                start: job.start,
                begun: job.begun,
                end: done.end,
                send: short_duration(job.begun, done.sent),
                receive: short_duration(done.first, done.end),
                ends_sequence: job.sequence.is_some_and(|step| step.end),
                delayed: job.begun.saturating_sub(job.start) > DELAYED,
                responses: done.responses,
            });
        }
    }

    /// Sends the next request outside of sequences.
    fn begin(&mut self, slot: usize, start: Option<u64>) {
        let begun = self.clock.now();
        let data = self.chooser.request();
        let job = RequestJob { start: start.unwrap_or(begun), begun, data, sequence: None, slot };
        self.transport.start(job, &mut self.done);
    }

    /// Sends the next request of a slot's sequence.
    fn begin_step(
        &mut self,
        slot: usize,
        sequence: &mut SequenceSlot,
        start: Option<u64>,
        last: bool,
    ) {
        let (step, data) = self.chooser.step(sequence, last);
        let begun = self.clock.now();
        let sequence = Some(step);
        let job = RequestJob { start: start.unwrap_or(begun), begun, data, sequence, slot };
        self.transport.start(job, &mut self.done);
    }

    fn closed(&mut self, slots: usize) -> Result<(), String> {
        let mut sequences: Vec<SequenceSlot> = match self.sequences {
            Some(_) => (0..slots).map(|_| SequenceSlot::new()).collect(),
            None => Vec::new(),
        };
        let mut free: Vec<(usize, bool)> = (0..slots).map(|slot| (slot, false)).collect();
        // Slots whose request failed, and when they continue.
        let mut paused: VecDeque<(u64, usize)> = VecDeque::new();
        let mut in_flight = 0_usize;
        loop {
            let stopping = self.stopping();
            let now = if paused.is_empty() { 0 } else { self.clock.now() };
            while let Some((at, slot)) = paused.front().copied()
                && (at <= now || stopping)
            {
                paused.pop_front();
                free.push((slot, false));
            }
            for (slot, failed) in free.drain(..) {
                let open = sequences.get(slot).is_some_and(SequenceSlot::is_open);
                if failed {
                    // The server may have lost the sequence: the next request begins another.
                    if let Some(sequence) = sequences.get_mut(slot) {
                        *sequence = SequenceSlot::new();
                    }
                    paused.push_back((self.clock.now() + RETRY, slot));
                } else if !stopping || open {
                    in_flight += 1;
                    match sequences.get_mut(slot) {
                        Some(sequence) => {
                            let mut taken = std::mem::replace(sequence, SequenceSlot::new());
                            self.begin_step(slot, &mut taken, None, stopping);
                            sequences[slot] = taken;
                        }
                        None => self.begin(slot, None),
                    }
                }
            }
            if stopping && in_flight == 0 {
                return Ok(());
            }
            let tick = if paused.is_empty() { TICK } else { Duration::from_nanos(RETRY / 4) };
            // A request may have failed at once.
            let timeout = if self.done.is_empty() { tick } else { Duration::ZERO };
            self.transport.wait(timeout, false, &mut self.done)?;
            in_flight -= self.done.len();
            self.record(&mut free);
        }
    }

    /// How long until the next request is due.
    fn until(&self, next: Option<u64>) -> Duration {
        let now = self.clock.now();
        next.map_or(TICK, |next| Duration::from_nanos(next.saturating_sub(now)).min(TICK))
    }

    fn open(&mut self, mut arrivals: Arrivals) -> Result<(), String> {
        let mut next = arrivals.next();
        // Requests that are due and have no connection.
        let mut waiting: VecDeque<u64> = VecDeque::new();
        let (mut in_flight, mut free) = (0_usize, Vec::new());
        loop {
            if self.stopping() {
                next = None;
                waiting.clear();
            }
            let now = self.clock.now();
            while let Some(at) = next
                && at <= now
            {
                waiting.push_back(at);
                next = arrivals.next();
            }
            while self.transport.can_start()
                && let Some(at) = waiting.pop_front()
            {
                in_flight += 1;
                self.begin(0, Some(at));
            }
            if in_flight == 0 && self.stopping() {
                return Ok(());
            }
            let timeout = if self.done.is_empty() { self.until(next) } else { Duration::ZERO };
            self.transport.wait(timeout, true, &mut self.done)?;
            in_flight -= self.done.len();
            self.record(&mut free);
        }
    }

    /// Each request belongs to a random one of `count` sequences. It waits for the request before
    /// it of the same sequence.
    fn open_sequences(&mut self, mut arrivals: Arrivals, count: usize) -> Result<(), String> {
        struct Sequence {
            slot: SequenceSlot,
            busy: bool,
            waiting: VecDeque<u64>,
        }
        let new = || Sequence { slot: SequenceSlot::new(), busy: false, waiting: VecDeque::new() };
        let mut sequences: Vec<Sequence> = (0..count).map(|_| new()).collect();
        let mut random = Random(count as u64);
        let mut next = arrivals.next();
        let (mut in_flight, mut free) = (0_usize, Vec::new());
        loop {
            let stopping = self.stopping();
            let now = self.clock.now();
            while let Some(at) = next
                && at <= now
                && !stopping
            {
                sequences[random.below(count as u64) as usize].waiting.push_back(at);
                next = arrivals.next();
            }
            for (slot, sequence) in sequences.iter_mut().enumerate() {
                if sequence.busy || !self.transport.can_start() {
                    continue;
                }
                let due = match stopping {
                    true => sequence.slot.is_open().then_some(now),
                    false => sequence.waiting.pop_front(),
                };
                if let Some(at) = due {
                    sequence.busy = true;
                    in_flight += 1;
                    self.begin_step(slot, &mut sequence.slot, Some(at), stopping);
                }
            }
            if in_flight == 0 && stopping {
                return Ok(());
            }
            let next = next.filter(|_| !stopping);
            let timeout = if self.done.is_empty() { self.until(next) } else { Duration::ZERO };
            self.transport.wait(timeout, true, &mut self.done)?;
            in_flight -= self.done.len();
            self.record(&mut free);
            for (slot, failed) in free.drain(..) {
                sequences[slot].busy = false;
                if failed {
                    sequences[slot].slot = SequenceSlot::new();
                }
            }
        }
    }
}
