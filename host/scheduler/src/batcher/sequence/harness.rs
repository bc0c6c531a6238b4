//! Test harness: requests written as one token, and scripts of arrivals, expected batches and
//! expected refusals.
//!
//! `A1^` is a request of sequence 1 (`B`: 2, …; `a`: the text "1") with START, `A2$` one with END.
//! `/2` gives it shape 2, `@5` a timeout of 5 µs, `x3` three rows. The token up to the first mark
//! is its name.
//!
//! A line of a script is `time verb arguments : expected result`, times in nanoseconds:
//! `push REQUESTS`, `form INSTANCE` (next batch), `cancel NAME`, `lose INSTANCE`, `expire`,
//! `close`, `woken` (instances woken since the last time), `counts` (waiting and backlog),
//! `deadline` (the next one).

use super::super::{SequenceBatcher, SequencePush};
use crate::batcher::settings::{BatchingSettings, SequenceSettings, SequenceStrategy};
use crate::batcher::{
    BatchDecision, BatchEntry, BatchableRequest, QueueRefusal, QueueTicket, WakeTarget,
};
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use trtserver_request::{CorrelationId, RequestSequence};

/// Counts the requests that were taken from a sequence.
pub type Count = Rc<Cell<u32>>;

#[derive(Clone, Debug, Default)]
pub struct HarnessJob {
    pub name: String,
    pub sequence: RequestSequence,
    pub rows: u32,
    pub timeout_us: u64,
    pub shape: u64,
    /// The sequence's state, and its count when this request was taken.
    pub memory: Option<(Count, u32)>,
}

impl BatchableRequest for HarnessJob {
    type Memory = Count;

    fn rows(&self) -> u32 {
        self.rows
    }
    fn priority(&self) -> u64 {
        0
    }
    fn timeout_us(&self) -> u64 {
        self.timeout_us
    }
    fn sequence(&self) -> &RequestSequence {
        &self.sequence
    }
    fn compatible_with(&self, first: &Self) -> bool {
        self.shape == first.shape
    }
    fn set_memory(&mut self, memory: &Count) {
        assert!(self.memory.is_none(), "{} was taken twice", self.name);
        memory.set(memory.get() + 1);
        self.memory = Some((memory.clone(), memory.get()));
    }
}

impl HarnessJob {
    pub fn new(token: &str) -> Self {
        let marks = token.find(|mark: char| "^$/@x".contains(mark)).unwrap_or(token.len());
        let (name, marks) = token.split_at(marks);
        let number = |mark: char| {
            let rest = marks.split_once(mark)?.1;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            Some(rest[..end].parse::<u64>().unwrap())
        };
        let id = match name.as_bytes()[0] {
            letter @ b'A'..=b'Z' => CorrelationId::Number(u64::from(letter - b'A') + 1),
            letter @ b'a'..=b'z' => CorrelationId::Text((letter - b'a' + 1).to_string()),
            b'0' => CorrelationId::Number(0),
            b'"' => CorrelationId::Text(String::new()),
            _ => CorrelationId::None,
        };
        Self {
            name: name.into(),
            sequence: RequestSequence { id, start: marks.contains('^'), end: marks.contains('$') },
            rows: number('x').unwrap_or(1) as u32,
            timeout_us: number('@').unwrap_or(0),
            shape: number('/').unwrap_or(0),
            memory: None,
        }
    }
}

pub fn direct(instances: usize, slots: usize) -> SequenceSettings {
    delayed(instances, slots, 0, 0)
}

pub fn delayed(
    instances: usize,
    slots: usize,
    delay_ns: u64,
    min_ready: usize,
) -> SequenceSettings {
    let strategy = SequenceStrategy::Direct { delay_ns, min_ready };
    SequenceSettings { instances, slots, idle_ns: 1_000_000, strategy }
}

pub fn oldest(slots: usize, max_rows: u32, preferred: &[u32], delay_ns: u64) -> SequenceSettings {
    let strategy = SequenceStrategy::Oldest(BatchingSettings {
        max_rows,
        preferred: preferred.into(),
        delay_ns,
    });
    SequenceSettings { instances: 1, slots, idle_ns: 1_000_000, strategy }
}

pub struct SequenceHarness {
    pub sequences: SequenceBatcher<HarnessJob>,
    tickets: HashMap<String, QueueTicket>,
    wakes: Vec<WakeTarget>,
}

/// Runs a script. Each line must have the result that it states.
pub fn run(settings: SequenceSettings, script: &str) -> SequenceHarness {
    let mut harness = SequenceHarness {
        sequences: SequenceBatcher::new(settings),
        tickets: HashMap::new(),
        wakes: Vec::new(),
    };
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (what, expected) = line.split_once(':').unwrap_or((line, ""));
        let mut tokens = what.split_whitespace();
        let now = tokens.next().unwrap().parse().unwrap();
        let verb = tokens.next().unwrap();
        let found = harness.step(now, verb, &tokens.collect::<Vec<_>>());
        assert_eq!(found, expected.trim(), "{line}");
        harness.sequences.check();
    }
    harness
}

fn refused(out: Vec<(HarnessJob, QueueRefusal)>) -> String {
    let tokens: Vec<_> =
        out.into_iter().map(|(job, refusal)| format!("{} {refusal:?}", job.name)).collect();
    tokens.join(", ")
}

impl SequenceHarness {
    fn step(&mut self, now: u64, verb: &str, arguments: &[&str]) -> String {
        let Self { sequences, tickets, wakes } = self;
        let mut out = Vec::new();
        match verb {
            "push" => {
                let mut results = Vec::new();
                for token in arguments {
                    let job = HarnessJob::new(token);
                    let name = job.name.clone();
                    match sequences.push(job, now, wakes) {
                        Ok(SequencePush { ticket, conflict }) => {
                            tickets.insert(name.clone(), ticket);
                            results.extend(conflict.then(|| format!("{name} conflict")));
                        }
                        Err((job, refusal)) => results.push(format!("{} {refusal:?}", job.name)),
                    }
                }
                results.join(", ")
            }
            "form" => {
                sequences.expire(now, &mut out, wakes);
                assert!(out.is_empty(), "expire first, these are due: {}", refused(out));
                let mut batch = Vec::new();
                match sequences.next_batch(arguments[0].parse().unwrap(), now, &mut batch) {
                    BatchDecision::Batch(reason) => {
                        let entries = batch.iter().map(|entry| match entry {
                            BatchEntry::Request(job) => job.name.as_str(),
                            BatchEntry::Null => "-",
                        });
                        format!("{} {reason:?}", entries.collect::<Vec<_>>().join(" "))
                    }
                    BatchDecision::Wait { until: None } => "nothing".into(),
                    BatchDecision::Wait { until: Some(until) } => format!("until {until}"),
                }
            }
            "cancel" => {
                sequences.cancel(tickets[arguments[0]], now, &mut out, wakes);
                refused(out)
            }
            "expire" => {
                sequences.expire(now, &mut out, wakes);
                refused(out)
            }
            "lose" => {
                let instance = arguments[0].parse().unwrap();
                sequences.lose(instance, now, &mut out, wakes);
                refused(out)
            }
            "close" => {
                sequences.close(wakes);
                String::new()
            }
            "woken" => {
                let woken: BTreeSet<String> =
                    wakes.drain(..).map(|wake| format!("{wake:?}")).collect();
                let digits = woken
                    .iter()
                    .map(|wake| wake.trim_matches(|c: char| !c.is_ascii_digit()).to_string());
                digits.collect::<Vec<_>>().join(" ")
            }
            "counts" => format!("{} {}", sequences.waiting(), sequences.backlog()),
            "deadline" => sequences.next_deadline().map_or("none".into(), |time| time.to_string()),
            other => panic!("unknown verb {other}"),
        }
    }
}

impl SequenceBatcher<HarnessJob> {
    /// Checks the invariants that hold between calls.
    pub fn check(&self) {
        let mut slots = BTreeSet::new();
        let (mut waiting, mut backlogged) = (0, 0);
        for (key, sequence) in &self.live {
            waiting += sequence.queue.len();
            match &sequence.slot {
                Some(slot) => {
                    assert!(slots.insert((slot.instance(), slot.index())), "shared slot")
                }
                None => {
                    backlogged += sequence.queue.len();
                    assert!(self.backlog.contains(key));
                }
            }
            assert_eq!(sequence.slot.is_some(), !self.backlog.contains(key));
            assert!(
                !sequence.queue.is_empty() || (sequence.slot.is_some() && sequence.id.is_some())
            );
            for request in &sequence.queue {
                assert_eq!(self.tickets[&request.ticket], *key);
            }
            if let Some(id) = &sequence.id {
                assert_eq!(self.active[id], *key);
            }
            assert!(sequence.id.is_some() || sequence.idle_check.is_none());
            assert!(sequence.idle_check.is_none_or(|due| self.idle_checks.contains(&(due, *key))));
            assert!(
                sequence
                    .backlog_timeout
                    .is_none_or(|time| self.backlog_timeouts.contains(&(time, *key)))
            );
            assert!(sequence.backlog_timeout.is_none() || sequence.slot.is_none());
        }
        let live = self.live.values();
        assert_eq!((waiting, backlogged), (self.waiting(), self.backlog()));
        assert_eq!(self.slots.held(), slots.len());
        assert_eq!(self.active.len(), live.clone().filter(|s| s.id.is_some()).count());
        assert_eq!(self.idle_checks.len(), live.clone().filter(|s| s.idle_check.is_some()).count());
        assert_eq!(
            self.backlog_timeouts.len(),
            live.filter(|s| s.backlog_timeout.is_some()).count()
        );
        assert_eq!(self.live.len(), slots.len() + self.backlog.len());
    }

    /// No sequence, ticket or slot is left.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty() && self.tickets.is_empty() && self.slots.held() == 0
    }
}
