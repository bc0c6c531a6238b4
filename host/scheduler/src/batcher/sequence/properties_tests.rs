//! Property tests of the sequence batcher: random interleavings of valid and invalid sequences,
//! with instances that ask whenever they are idle.

use super::harness::HarnessJob;
use crate::batcher::sequence::SequenceBatcher;
use crate::batcher::settings::{
    BatchingSettings, SequenceSettings, SequenceStrategy as StrategyState,
};
use crate::batcher::{BatchDecision, BatchEntry, QueueRefusal, QueueTicket, WakeTarget};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use trtserver_request::{CorrelationId, RequestSequence};

#[derive(Clone, Debug)]
enum Step {
    /// `flags`: START and END as given; otherwise START if the sequence is not active.
    Push {
        id: u64,
        flags: Option<bool>,
        end: bool,
        shape: u64,
        timeout_us: u64,
    },
    Cancel(prop::sample::Index),
    Finish(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let flags = prop_oneof![4 => Just(None), 1 => any::<bool>().prop_map(Some)];
    let push = (1..8u64, flags, prop::bool::weighted(0.25), 0..8u64, 0..4u64).prop_map(
        |(id, flags, end, shape, timeout)| Step::Push {
            id,
            flags,
            end,
            shape: shape / 7,
            timeout_us: timeout / 3,
        },
    );
    let step = prop_oneof![
        10 => push,
        1 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        5 => (0..3usize).prop_map(Step::Finish),
        3 => prop_oneof![0..60u64, 0..700u64].prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..120)
}

fn settings() -> impl Strategy<Value = SequenceSettings> {
    // The last one is longer than the shortest idle limit.
    let delay = prop_oneof![Just(0), Just(50), Just(400)];
    let forming = prop_oneof![
        (delay.clone(), 0..4usize)
            .prop_map(|(delay_ns, min_ready)| StrategyState::Direct { delay_ns, min_ready }),
        (1..5u32, prop::collection::btree_set(1..5u32, 0..3), delay).prop_map(
            |(max_rows, preferred, delay_ns)| {
                let preferred = preferred.into_iter().filter(|size| *size <= max_rows).collect();
                StrategyState::Oldest(BatchingSettings { max_rows, preferred, delay_ns })
            }
        ),
    ];
    let idle = prop_oneof![Just(300), Just(3000), Just(u64::MAX)];
    (1..4usize, 1..5usize, idle, forming).prop_map(|(instances, slots, idle_ns, strategy)| {
        SequenceSettings { instances, slots, idle_ns, strategy }
    })
}

#[derive(Clone, Copy, Default)]
struct Instance {
    busy: bool,
    woken: bool,
    until: Option<u64>,
}

/// A sequence as a client sees it.
#[derive(Default)]
struct Run {
    id: u64,
    waiting: VecDeque<QueueTicket>,
    /// Waiting requests with START.
    starts: BTreeSet<QueueTicket>,
    taken: u32,
    touched: u64,
    slot: Option<(usize, usize)>,
    /// Another sequence was seen in its slot, or it was refused.
    ended: bool,
}

struct Simulation {
    settings: SequenceSettings,
    sequences: SequenceBatcher<HarnessJob>,
    now: u64,
    instances: Vec<Instance>,
    runs: Vec<Run>,
    running: BTreeMap<u64, usize>,
    /// Ids that were cancelled while active, until the next START.
    cancelled: BTreeMap<u64, ()>,
    /// By ticket: the run. Removed when the request leaves.
    inside: HashMap<QueueTicket, usize>,
    issued: Vec<QueueTicket>,
    /// Requests have a number, since the ticket is known only after `push`.
    numbers: HashMap<String, QueueTicket>,
    owners: HashMap<(usize, usize), usize>,
}

impl Simulation {
    fn new(settings: SequenceSettings) -> Self {
        Self {
            sequences: SequenceBatcher::new(settings.clone()),
            now: 0,
            instances: vec![Instance::default(); settings.instances],
            settings,
            runs: Vec::new(),
            running: BTreeMap::new(),
            cancelled: BTreeMap::new(),
            inside: HashMap::new(),
            issued: Vec::new(),
            numbers: HashMap::new(),
            owners: HashMap::new(),
        }
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Push { id, flags, end, shape, timeout_us } => {
                let start = flags.unwrap_or(!self.running.contains_key(&id));
                self.push(id, start, end, shape, timeout_us);
            }
            Step::Cancel(index) => {
                // One of the latest, many of which are still queued.
                let latest = &self.issued[self.issued.len().saturating_sub(12)..];
                if !latest.is_empty() {
                    self.cancel(*index.get(latest));
                }
            }
            Step::Finish(instance) => self.finish(instance % self.instances.len()),
            Step::Wait(time) => self.wait(self.now + time),
        }
        self.settle();
        self.sequences.check();
        assert_eq!(self.sequences.waiting(), self.inside.len());
    }

    fn push(&mut self, id: u64, start: bool, end: bool, shape: u64, timeout_us: u64) {
        let name = format!("{}", self.issued.len());
        let sequence = RequestSequence { id: CorrelationId::Number(id), start, end };
        let job =
            HarnessJob { name: name.clone(), sequence, rows: 1, timeout_us, shape, memory: None };
        let mut wakes = Vec::new();
        let result = self.sequences.push(job, self.now, &mut wakes);
        self.woken(wakes);
        let continues = result.as_ref().is_ok_and(|pushed| !start || pushed.conflict);
        if !continues && let Some(run) = self.running.remove(&id) {
            // It was considered active: only the idle limit ends a sequence without a refusal.
            let run = &mut self.runs[run];
            assert!(run.waiting.is_empty(), "a sequence with requests ended without refusals");
            assert!(self.now - run.touched >= self.settings.idle_ns, "ended before the idle limit");
            run.ended = true;
        }
        let pushed = match result {
            Ok(pushed) => pushed,
            Err((job, refusal)) => {
                assert_eq!(job.name, name);
                assert!(!start);
                match refusal {
                    QueueRefusal::SequenceCancelled => assert!(self.cancelled.contains_key(&id)),
                    other => assert_eq!(other, QueueRefusal::NoStart),
                }
                return;
            }
        };
        let run = if continues {
            self.running[&id]
        } else {
            assert!(start && !pushed.conflict);
            self.runs.push(Run { id, ..Run::default() });
            self.running.insert(id, self.runs.len() - 1);
            self.cancelled.remove(&id);
            self.runs.len() - 1
        };
        if end {
            self.running.remove(&id);
        }
        self.runs[run].waiting.push_back(pushed.ticket);
        if start {
            self.runs[run].starts.insert(pushed.ticket);
        }
        self.runs[run].touched = self.now;
        assert!(self.inside.insert(pushed.ticket, run).is_none(), "a ticket was given twice");
        self.issued.push(pushed.ticket);
        self.numbers.insert(name, pushed.ticket);
    }

    fn cancel(&mut self, ticket: QueueTicket) {
        let (mut out, mut wakes) = (Vec::new(), Vec::new());
        self.sequences.cancel(ticket, self.now, &mut out, &mut wakes);
        self.woken(wakes);
        let Some(run) = self.inside.get(&ticket).copied() else {
            assert!(out.is_empty());
            return;
        };
        // From the START before it up to the next START, in order.
        let Run { id, waiting, starts, .. } = &self.runs[run];
        let (id, at) = (*id, waiting.iter().position(|t| *t == ticket).unwrap());
        let begin = (0..=at).rev().find(|i| starts.contains(&waiting[*i])).unwrap_or(0);
        let end = (at + 1..waiting.len()).find(|i| starts.contains(&waiting[*i]));
        let leave: Vec<QueueTicket> =
            waiting.range(begin..end.unwrap_or(waiting.len())).copied().collect();
        if end.is_none() && self.running.get(&id) == Some(&run) {
            self.running.remove(&id);
            self.cancelled.insert(id, ());
        }
        let woken: Vec<_> = out.iter().map(|(job, why)| (self.numbers[&job.name], *why)).collect();
        let refusal = |t: &QueueTicket| {
            if *t == ticket { QueueRefusal::Cancelled } else { QueueRefusal::SequenceCancelled }
        };
        assert_eq!(woken, leave.iter().map(|t| (*t, refusal(t))).collect::<Vec<_>>());
        for gone in leave {
            self.inside.remove(&gone).expect("left twice");
            self.runs[run].waiting.retain(|t| *t != gone);
        }
        if self.runs[run].waiting.is_empty() {
            self.runs[run].ended = true;
        }
    }

    fn expire(&mut self) {
        let (mut out, mut wakes) = (Vec::new(), Vec::new());
        self.sequences.expire(self.now, &mut out, &mut wakes);
        self.woken(wakes);
        let mut gone = Vec::new();
        for (job, refusal) in out {
            assert_eq!(refusal, QueueRefusal::SequenceTimedOut);
            let run = self.refused(&job);
            assert_eq!(self.runs[run].taken, 0, "timed out in a slot");
            gone.push(run);
        }
        assert!(gone.into_iter().all(|run| self.runs[run].waiting.is_empty()));
        assert!(
            self.sequences.next_deadline().is_none_or(|time| time > self.now),
            "expire left a sequence that was due"
        );
    }

    /// A request was refused, and its sequence with it.
    fn refused(&mut self, job: &HarnessJob) -> usize {
        let ticket = self.numbers[&job.name];
        let run = self.inside.remove(&ticket).expect("left twice");
        assert_eq!(self.runs[run].waiting.pop_front(), Some(ticket));
        self.runs[run].ended = true;
        let id = self.runs[run].id;
        if self.running.get(&id) == Some(&run) {
            self.running.remove(&id);
        }
        run
    }

    /// True when the instance has a batch to execute now.
    fn next_batch(&mut self, instance: usize) -> bool {
        let mut batch = Vec::new();
        match self.sequences.next_batch(instance, self.now, &mut batch) {
            BatchDecision::Wait { until } => {
                assert!(batch.is_empty());
                assert!(until.is_none_or(|time| time > self.now));
                self.instances[instance].until = until;
                false
            }
            BatchDecision::Batch(_) => {
                self.instances[instance] = Instance { busy: true, ..Instance::default() };
                self.executed(instance, batch);
                true
            }
        }
    }

    fn executed(&mut self, instance: usize, batch: Vec<BatchEntry<HarnessJob>>) {
        assert!(batch.len() <= self.settings.slots);
        assert!(batch.iter().any(|entry| matches!(entry, BatchEntry::Request(_))));
        let direct = match &self.settings.strategy {
            StrategyState::Direct { .. } => true,
            StrategyState::Oldest(batching) => {
                assert!(batch.len() <= batching.max_rows as usize);
                assert!(!batch.iter().any(|entry| matches!(entry, BatchEntry::Null)));
                false
            }
        };
        let mut members = Vec::new();
        let mut shape = None;
        for (index, entry) in batch.into_iter().enumerate() {
            let BatchEntry::Request(job) = entry else { continue };
            assert_eq!(*shape.get_or_insert(job.shape), job.shape);
            let ticket = self.numbers[&job.name];
            let run = self.inside.remove(&ticket).expect("left twice");
            assert!(!members.contains(&run), "two requests of one sequence in a batch");
            members.push(run);
            let slot = (instance, if direct { index } else { 0 });
            if direct
                && let Some(before) = self.owners.insert(slot, run)
                && before != run
            {
                self.runs[before].ended = true;
            }
            let run = &mut self.runs[run];
            assert!(!run.ended, "executed after it had lost its slot");
            assert_eq!(run.waiting.pop_front(), Some(ticket), "out of order");
            assert_eq!(*run.slot.get_or_insert(slot), slot, "moved");
            run.taken += 1;
            run.touched = self.now;
            assert_eq!(job.memory.map(|memory| memory.1), Some(run.taken), "memory");
        }
    }

    fn finish(&mut self, instance: usize) {
        self.instances[instance] = Instance { woken: true, ..Instance::default() };
    }

    fn woken(&mut self, wakes: Vec<WakeTarget>) {
        for wake in wakes {
            let WakeTarget::Instance(instance) = wake else {
                panic!("slots belong to one instance")
            };
            self.instances[instance].woken = true;
        }
    }

    /// Woken idle instances ask for a batch. The others must not find one.
    fn settle(&mut self) {
        self.expire();
        for instance in 0..self.instances.len() {
            let Instance { busy, woken, until } = self.instances[instance];
            if busy {
                continue;
            }
            self.instances[instance].woken = false;
            let found = self.next_batch(instance);
            if !woken && until.is_none_or(|time| time > self.now) {
                assert!(!found, "instance {instance} was not woken");
                let next_attempt = self.instances[instance].until;
                assert!(next_attempt.is_none_or(|time| until.is_some_and(|before| before <= time)));
            }
        }
    }

    /// Advances to `end`, stopping at each time that was asked for.
    fn wait(&mut self, end: u64) {
        loop {
            let idle = self.instances.iter().filter(|instance| !instance.busy);
            let next =
                idle.filter_map(|instance| instance.until).chain(self.sequences.next_deadline());
            let Some(next) = next.min().filter(|next| *next <= end) else { break };
            self.now = next.max(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Instances execute until there are no batches. Only delays take time.
    fn drain(&mut self) {
        self.settle();
        loop {
            let busy = (0..self.instances.len()).find(|index| self.instances[*index].busy);
            if let Some(instance) = busy {
                self.finish(instance);
            } else if let Some(until) = self.instances.iter().filter_map(|i| i.until).min() {
                self.now = until;
            } else {
                break;
            }
            self.settle();
        }
        assert_eq!((self.sequences.waiting(), self.sequences.backlog()), (0, 0));
        assert!(self.inside.is_empty());
        assert!(self.sequences.is_empty(), "a slot is still held");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, failure_persistence: None, ..ProptestConfig::default() })]

    /// After any steps: when all sequences end, all requests are executed.
    #[test]
    fn all_is_executed_when_all_end(settings in settings(), steps in steps()) {
        let mut simulation = Simulation::new(settings);
        for step in steps {
            simulation.step(step);
        }
        for id in simulation.running.keys().copied().collect::<Vec<_>>() {
            simulation.push(id, false, true, 0, 0);
        }
        simulation.drain();
    }

    /// After any steps: close executes sequences without END, too.
    #[test]
    fn all_is_executed_after_closing(settings in settings(), steps in steps()) {
        let mut simulation = Simulation::new(settings);
        for step in steps {
            simulation.step(step);
        }
        let mut wakes = Vec::new();
        simulation.sequences.close(&mut wakes);
        simulation.woken(wakes);
        simulation.drain();
    }

    /// Without cancellations, timeouts and idle sequences every accepted request is executed.
    #[test]
    fn nothing_is_refused_without_a_reason(settings in settings(), steps in steps()) {
        let mut simulation = Simulation::new(SequenceSettings { idle_ns: u64::MAX, ..settings });
        for step in steps {
            match step {
                Step::Cancel(_) => {}
                Step::Push { id, flags, end, shape, .. } => {
                    simulation.step(Step::Push { id, flags, end, shape, timeout_us: 0 });
                }
                step => simulation.step(step),
            }
        }
        for id in simulation.running.keys().copied().collect::<Vec<_>>() {
            simulation.push(id, false, true, 0, 0);
        }
        simulation.drain();
        let executed: u32 = simulation.runs.iter().map(|run| run.taken).sum();
        prop_assert_eq!(executed as usize, simulation.issued.len());
    }
}
