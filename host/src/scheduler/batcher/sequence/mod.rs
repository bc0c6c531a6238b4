//! Sequences: which request belongs to which, who holds a slot, who waits for one, and who has to go.

mod direct; // direct strategy: one batch position per slot
mod live; // live sequences and their queued requests
mod oldest; // oldest strategy: one request of each sequence, oldest first
mod refused_ids; // ids whose later requests are refused
pub mod slots; // sequence slots as values that exist once

use super::settings::{SequenceSettings, Strategy};
use super::{BatchDecision, BatchEntry, Batchable, QueueTicket, Refusal, Wake};
use crate::request::CorrelationId;
use direct::DirectStrategy;
use live::{LiveSequence, LiveSequences, QueuedRequest, SequenceKey};
use oldest::OldestStrategy;
use refused_ids::RefusedIds;
use slots::{FreeSlots, Slot};
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// A request that was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pushed {
    pub ticket: QueueTicket,
    /// START of a sequence that had not ended: it goes on where it is. Worth a warning.
    pub conflict: bool,
}

/// The queue of a model whose requests belong to sequences.
///
/// A sequence exists from its START until its END was taken, and then holds a slot of one instance, or waits in the
/// backlog with all that it has sent. Its id is known only until END arrives.
pub struct SequenceBatcher<T: Batchable> {
    instances: usize,
    idle_ns: u64,
    open: bool,
    live: LiveSequences<T>,
    known: HashMap<CorrelationId, SequenceKey>,
    /// Every waiting request.
    tickets: HashMap<QueueTicket, SequenceKey>,
    slots: FreeSlots,
    forming: StrategyState,
    /// Sequences without a slot; keys grow, so the first is the oldest.
    backlog: BTreeSet<SequenceKey>,
    /// Their requests.
    backlogged: usize,
    /// When a sequence of the backlog gives up.
    deadlines: BTreeSet<(u64, SequenceKey)>,
    /// One entry for each known sequence: when to see whether it has fallen silent. Requests do not move it; it is
    /// put off when it is found too early.
    idle: BTreeSet<(u64, SequenceKey)>,
    cancelled: RefusedIds,
    /// The same for those whose state was lost.
    lost: RefusedIds,
    next: u64,
    picks: Vec<Option<SequenceKey>>,
    /// By instance, the sequences of the batch that it executes.
    executing: Vec<Vec<SequenceKey>>,
}

enum StrategyState {
    Direct(DirectStrategy),
    Oldest(OldestStrategy),
}

impl<T: Batchable> SequenceBatcher<T> {
    pub fn new(settings: SequenceSettings) -> Self {
        let SequenceSettings { instances, slots, idle_ns, strategy } = settings;
        // A sequence that may not be silent at all could never go on.
        let idle_ns = idle_ns.max(1);
        Self {
            instances,
            idle_ns,
            open: true,
            live: LiveSequences::new(),
            known: HashMap::new(),
            tickets: HashMap::new(),
            slots: FreeSlots::new(instances, slots),
            forming: match strategy {
                Strategy::Direct { delay_ns, min_ready } => StrategyState::Direct(
                    DirectStrategy::new(instances, slots, delay_ns, min_ready),
                ),
                Strategy::Oldest(batching) => {
                    StrategyState::Oldest(OldestStrategy::new(instances, slots, batching))
                }
            },
            backlog: BTreeSet::new(),
            backlogged: 0,
            deadlines: BTreeSet::new(),
            idle: BTreeSet::new(),
            cancelled: RefusedIds::new(idle_ns),
            lost: RefusedIds::new(idle_ns),
            next: 0,
            picks: Vec::new(),
            executing: vec![Vec::new(); instances],
        }
    }

    /// Not to be called after [`Self::close`]. A sequence that was silent for too long goes on as long as nobody has
    /// called [`Self::expire`].
    pub fn push(
        &mut self,
        item: T,
        now: u64,
        wakes: &mut Vec<Wake>,
    ) -> Result<Pushed, (T, Refusal)> {
        let known = match self.admit(&item, now) {
            Ok(known) => known,
            Err(refusal) => return Err((item, refusal)),
        };
        let (start, end) = (item.sequence().start, item.sequence().end);
        self.next += 1;
        let ticket = QueueTicket(self.next);
        // One counter for both: a sequence begins with a request.
        let key = known.unwrap_or(SequenceKey(self.next));
        self.tickets.insert(ticket, key);
        let sequence = match self.live.entry(key) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let slot = self.slots.take();
                if slot.is_none() {
                    self.backlog.insert(key);
                }
                let sequence = entry.insert(LiveSequence::new(slot));
                if !end {
                    let id = item.sequence().id.clone();
                    self.known.insert(id.clone(), key);
                    sequence.id = Some(id);
                    sequence.due = now.checked_add(self.idle_ns);
                    self.idle.extend(sequence.due.map(|due| (due, key)));
                }
                sequence
            }
        };
        if end {
            if let Some(id) = sequence.id.take() {
                self.known.remove(&id);
            }
            if let Some(due) = sequence.due.take() {
                self.idle.remove(&(due, key));
            }
        }
        let first = sequence.queue.is_empty();
        sequence.touched = now;
        let waiting = QueuedRequest { ticket, arrived: now, item };
        let deadline = waiting.deadline();
        sequence.queue.push_back(waiting);
        if let Some(slot) = &sequence.slot {
            // Behind another request there is nothing new to form.
            if first {
                self.forming.ready(slot, key, now);
                wakes.push(Wake::Instance(slot.instance()));
            }
        } else {
            self.backlogged += 1;
            if let Some(deadline) = deadline
                && sequence.deadline.is_none_or(|earlier| deadline < earlier)
            {
                if let Some(later) = sequence.deadline.replace(deadline) {
                    self.deadlines.remove(&(later, key));
                }
                self.deadlines.insert((deadline, key));
            }
        }
        Ok(Pushed { ticket, conflict: start && known.is_some() })
    }

    /// The checks of an arrival, in the order that clients observe: the running sequence to which it belongs, or
    /// `None` for a new one.
    fn admit(&mut self, item: &T, now: u64) -> Result<Option<SequenceKey>, Refusal> {
        let sequence = item.sequence();
        if item.rows() != 1 {
            return Err(Refusal::NotOneRow);
        }
        match &sequence.id {
            CorrelationId::None | CorrelationId::Number(0) => return Err(Refusal::NoCorrelationId),
            CorrelationId::Text(text) if text.is_empty() => return Err(Refusal::NoCorrelationId),
            _ => {}
        }
        let known = self.known.get(&sequence.id).copied();
        if sequence.start {
            self.cancelled.forget(&sequence.id);
            self.lost.forget(&sequence.id);
        } else if known.is_none() {
            return Err(if self.cancelled.refuses(&sequence.id, now) {
                Refusal::SequenceCancelled
            } else if self.lost.refuses(&sequence.id, now) {
                Refusal::SequenceLost
            } else {
                Refusal::NoStart
            });
        }
        Ok(known)
    }

    /// Instance `instance` executes nothing at this moment and asks for a batch, which is appended. Expire first.
    pub fn next_batch(
        &mut self,
        instance: usize,
        now: u64,
        batch: &mut Vec<BatchEntry<T>>,
    ) -> BatchDecision {
        self.executed(instance, now);
        let mut picks = std::mem::take(&mut self.picks);
        let formed = self.forming.pick(instance, now, self.open, &self.live, &mut picks);
        for pick in picks.drain(..) {
            let taken = pick.and_then(|key| self.take(key, now));
            debug_assert_eq!(pick.is_some(), taken.is_some());
            if let (Some(key), Some(executing)) = (pick, self.executing.get_mut(instance)) {
                executing.push(key);
            }
            batch.push(taken.map_or(BatchEntry::Null, BatchEntry::Request));
        }
        self.picks = picks;
        formed
    }

    /// The batch before is over: whoever was in it has not been silent meanwhile.
    fn executed(&mut self, instance: usize, now: u64) {
        let Some(executing) = self.executing.get_mut(instance) else { return };
        for key in executing.drain(..) {
            if let Some(sequence) = self.live.get_mut(&key) {
                (sequence.executing, sequence.touched) = (false, now);
            }
        }
    }

    /// Takes the front request. With the last one goes the slot, whose next owner then belongs to the next batch:
    /// this one has been chosen already.
    fn take(&mut self, key: SequenceKey, now: u64) -> Option<T> {
        let sequence = self.live.get_mut(&key)?;
        let QueuedRequest { ticket, mut item, .. } = sequence.queue.pop_front()?;
        self.tickets.remove(&ticket);
        (sequence.executing, sequence.begun, sequence.touched) = (true, true, now);
        item.set_memory(&sequence.memory);
        if !sequence.queue.is_empty() {
            if let Some(slot) = &sequence.slot {
                self.forming.ready(slot, key, now);
            }
        } else if sequence.id.is_none() || !self.open {
            self.drop_idle(key, now);
        }
        Some(item)
    }

    /// Takes back a waiting request, and with it the rest of its sequence: from its START up to the next one, which
    /// may be somebody else's. Nothing happens when it was taken or refused before.
    pub fn cancel(
        &mut self,
        ticket: QueueTicket,
        now: u64,
        out: &mut Vec<(T, Refusal)>,
        wakes: &mut Vec<Wake>,
    ) {
        let Some(key) = self.tickets.get(&ticket).copied() else { return };
        let Some(sequence) = self.live.get_mut(&key) else { return };
        let Some((begin, end)) = sequence.run_of(ticket) else { return };
        let (whole, last) = (end - begin == sequence.queue.len(), end == sequence.queue.len());
        if last && let Some(id) = sequence.id.take() {
            // As after END: what is queued runs out, and then the sequence is gone.
            self.known.remove(&id);
            self.cancelled.remember(id, now);
            if let Some(due) = sequence.due.take() {
                self.idle.remove(&(due, key));
            }
        }
        let gone = if whole {
            let Some(mut gone) = self.forget(key) else { return };
            if let Some(slot) = gone.slot.take() {
                wakes.extend(self.hand_on(slot, now));
            }
            gone.queue
        } else {
            self.drop_run(key, begin, end, wakes)
        };
        out.extend(gone.into_iter().map(|waiting| match waiting.ticket == ticket {
            true => (waiting.item, Refusal::Cancelled),
            false => (waiting.item, Refusal::SequenceCancelled),
        }));
    }

    /// What an instance remembered is gone: the sequences that it has begun end here, each up to its next START.
    pub fn lose(
        &mut self,
        instance: usize,
        now: u64,
        out: &mut Vec<(T, Refusal)>,
        wakes: &mut Vec<Wake>,
    ) {
        let here = |s: &LiveSequence<T>| s.slot.as_ref().is_some_and(|s| s.instance() == instance);
        let begun = self.live.iter().filter(|(_, sequence)| sequence.begun && here(sequence));
        let mut begun: Vec<SequenceKey> = begun.map(|(key, _)| *key).collect();
        begun.sort_unstable();
        for key in begun {
            let Some(sequence) = self.live.get_mut(&key) else { continue };
            sequence.begun = false;
            let next = sequence.queue.iter().position(|waiting| waiting.item.sequence().start);
            let gone = match next {
                Some(next) => self.drop_run(key, 0, next, wakes),
                None => {
                    if let Some(id) = sequence.id.clone() {
                        self.lost.remember(id, now);
                    }
                    let Some(mut gone) = self.forget(key) else { continue };
                    if let Some(slot) = gone.slot.take() {
                        wakes.extend(self.hand_on(slot, now));
                    }
                    gone.queue
                }
            };
            out.extend(gone.into_iter().map(|waiting| (waiting.item, Refusal::SequenceLost)));
        }
    }

    /// Takes a part of a sequence's queue out; something is left of it.
    fn drop_run(
        &mut self,
        key: SequenceKey,
        begin: usize,
        end: usize,
        wakes: &mut Vec<Wake>,
    ) -> VecDeque<QueuedRequest<T>> {
        let Some(sequence) = self.live.get_mut(&key) else { return VecDeque::new() };
        let gone: VecDeque<_> = sequence.queue.drain(begin..end).collect();
        for waiting in &gone {
            self.tickets.remove(&waiting.ticket);
        }
        match &sequence.slot {
            // Another request is at the front: its shapes may suit the others.
            Some(slot) => wakes.push(Wake::Instance(slot.instance())),
            None => {
                self.backlogged -= gone.len();
                if let Some(deadline) = sequence.deadline.take() {
                    self.deadlines.remove(&(deadline, key));
                }
                sequence.deadline = sequence.queue.iter().filter_map(QueuedRequest::deadline).min();
                self.deadlines.extend(sequence.deadline.map(|deadline| (deadline, key)));
            }
        }
        gone
    }

    /// Lets go of the sequences whose time is up.
    pub fn expire(&mut self, now: u64, out: &mut Vec<(T, Refusal)>, wakes: &mut Vec<Wake>) {
        // TimeoutHeap before slots that become free: what is late does not get one.
        while let Some(key) = pop_due(&mut self.deadlines, now) {
            if let Some(gone) = self.forget(key) {
                let late = gone.queue.into_iter();
                out.extend(late.map(|waiting| (waiting.item, Refusal::SequenceTimedOut)));
            }
        }
        while let Some(key) = pop_due(&mut self.idle, now) {
            let Some(sequence) = self.live.get_mut(&key) else { continue };
            // Who waits for the server is not silent.
            let busy = !sequence.queue.is_empty() || sequence.executing;
            let touched = if busy { now } else { sequence.touched };
            sequence.due = touched.checked_add(self.idle_ns);
            match sequence.due {
                Some(due) if due <= now => {
                    wakes.extend(self.drop_idle(key, now));
                }
                due => self.idle.extend(due.map(|due| (due, key))),
            }
        }
        self.cancelled.expire(now);
        self.lost.expire(now);
    }

    /// When [`Self::expire`] has something to do next. May be early, never late.
    pub fn next_deadline(&self) -> Option<u64> {
        let deadline = self.deadlines.first().map(|entry| entry.0);
        let idle = self.idle.first().map(|entry| entry.0);
        [deadline, idle, self.cancelled.next_deadline(), self.lost.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Requests that were not taken yet.
    pub fn waiting(&self) -> usize {
        self.tickets.len()
    }

    /// Of those, the ones whose sequence has no slot.
    pub fn backlog(&self) -> usize {
        self.backlogged
    }

    /// Sequences whose END has not arrived.
    pub fn known(&self) -> usize {
        self.known.len()
    }

    pub fn knows(&self, id: &CorrelationId) -> bool {
        self.known.contains_key(id)
    }

    /// Nothing arrives any more: nobody waits for company, and a sequence keeps its slot only for what it has sent.
    pub fn close(&mut self, wakes: &mut Vec<Wake>) {
        self.open = false;
        self.cancelled = RefusedIds::new(self.idle_ns);
        self.lost = RefusedIds::new(self.idle_ns);
        let silent = self.live.iter().filter(|(_, sequence)| sequence.queue.is_empty());
        let mut silent: Vec<SequenceKey> = silent.map(|(key, _)| *key).collect();
        silent.sort_unstable();
        for key in silent {
            self.drop_idle(key, 0);
        }
        wakes.extend((0..self.instances).map(Wake::Instance));
    }

    /// Forgets a sequence that has nothing queued.
    fn drop_idle(&mut self, key: SequenceKey, now: u64) -> Option<Wake> {
        let slot = self.forget(key)?.slot?;
        self.hand_on(slot, now)
    }

    /// Removes a sequence from everything but its slot, which is the caller's to hand on.
    fn forget(&mut self, key: SequenceKey) -> Option<LiveSequence<T>> {
        let sequence = self.live.remove(&key)?;
        if let Some(id) = &sequence.id {
            self.known.remove(id);
        }
        if let Some(due) = sequence.due {
            self.idle.remove(&(due, key));
        }
        if let Some(deadline) = sequence.deadline {
            self.deadlines.remove(&(deadline, key));
        }
        for waiting in &sequence.queue {
            self.tickets.remove(&waiting.ticket);
        }
        if sequence.slot.is_none() {
            self.backlog.remove(&key);
            self.backlogged -= sequence.queue.len();
        }
        Some(sequence)
    }

    /// Gives a slot to the oldest sequence of the backlog, or back. Returns whom to tell.
    fn hand_on(&mut self, slot: Slot, now: u64) -> Option<Wake> {
        self.forming.gone(&slot);
        let next = self.backlog.pop_first().and_then(|key| Some((key, self.live.get_mut(&key)?)));
        let Some((key, sequence)) = next else {
            self.slots.release(slot);
            return None;
        };
        self.backlogged -= sequence.queue.len();
        if let Some(deadline) = sequence.deadline.take() {
            self.deadlines.remove(&(deadline, key));
        }
        self.forming.ready(&slot, key, now);
        let wake = Wake::Instance(slot.instance());
        sequence.slot = Some(slot);
        Some(wake)
    }
}

fn pop_due(times: &mut BTreeSet<(u64, SequenceKey)>, now: u64) -> Option<SequenceKey> {
    if times.first()?.0 > now {
        return None;
    }
    times.pop_first().map(|(_, key)| key)
}

impl StrategyState {
    fn ready(&mut self, slot: &Slot, key: SequenceKey, now: u64) {
        match self {
            Self::Direct(direct) => direct.ready(slot, key),
            Self::Oldest(oldest) => oldest.ready(slot, key, now),
        }
    }

    fn gone(&mut self, slot: &Slot) {
        match self {
            Self::Direct(direct) => direct.gone(slot),
            Self::Oldest(oldest) => oldest.gone(slot),
        }
    }

    fn pick<T: Batchable>(
        &mut self,
        instance: usize,
        now: u64,
        waits: bool,
        live: &LiveSequences<T>,
        picks: &mut Vec<Option<SequenceKey>>,
    ) -> BatchDecision {
        match self {
            Self::Direct(direct) => direct.pick(instance, now, waits, live, picks),
            Self::Oldest(oldest) => oldest.pick(instance, now, waits, live, picks),
        }
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
