//! Property tests of the dynamic batcher: against a simple reference, and with simulated instances.

use super::tests::{Req, ids, req};
use super::*;
use crate::batcher::settings::BatchingSettings;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// The reference: the same rules without state between calls and without indexes.
struct Reference {
    settings: DynamicSettings,
    waiting: Vec<QueuedRequest>,
    closed: bool,
    moved: usize,
}

struct QueuedRequest {
    req: Req,
    ticket: QueueTicket,
    level: u64,
    at: u64,
    timeout: Option<u64>,
    /// 0, or its position among delayed requests, in order of their timeouts.
    delayed: usize,
}

impl Reference {
    fn sort(&mut self) {
        self.waiting.sort_by_key(|w| (w.level, w.delayed)); // stable: then by arrival
    }

    fn level(&self, req: &Req) -> u64 {
        match (self.settings.levels, req.priority) {
            (0, _) => 0,
            (_, 0) => self.settings.default_level,
            (levels, priority) if priority > levels => self.settings.default_level,
            (_, priority) => priority,
        }
    }

    fn policy(&self, level: u64) -> QueuePolicy {
        let policy = self.settings.policies.get(&level).filter(|_| self.settings.levels != 0);
        *policy.unwrap_or(&self.settings.default_policy)
    }

    fn is_full(&self, req: &Req) -> bool {
        let level = self.level(req);
        let max_size = self.policy(level).max_size as usize;
        max_size != 0 && self.waiting.iter().filter(|w| w.level == level).count() >= max_size
    }

    fn push(&mut self, req: Req, ticket: QueueTicket, at: u64) {
        let level = self.level(&req);
        let policy = self.policy(level);
        let mut timeout_us = policy.timeout_us;
        if policy.allow_override && req.timeout_us != 0 && req.timeout_us < timeout_us {
            timeout_us = req.timeout_us;
        }
        let timeout = (timeout_us != 0).then(|| at + timeout_us * 1000);
        self.waiting.push(QueuedRequest { req, ticket, level, at, timeout, delayed: 0 });
        self.sort();
    }

    fn next_deadline(&self) -> Option<u64> {
        self.waiting.iter().filter_map(|w| w.timeout).min()
    }

    fn expire(&mut self, now: u64) -> Vec<u32> {
        let mut out = Vec::new();
        while let Some(when) = self.next_deadline().filter(|&when| when <= now) {
            // Of two timeouts at the same time the older request comes first: ids count arrivals.
            let ends = |w: &&QueuedRequest| w.timeout == Some(when);
            let id = self.waiting.iter().filter(ends).map(|w| w.req.id).min().unwrap();
            let index = self.waiting.iter().position(|w| w.req.id == id).unwrap();
            if self.policy(self.waiting[index].level).action == TimeoutAction::Reject {
                out.push(self.waiting.remove(index).req.id);
            } else {
                self.moved += 1;
                self.waiting[index].timeout = None;
                self.waiting[index].delayed = self.moved;
                self.sort();
            }
        }
        out
    }

    /// The size of the next batch and the reason, or the time of the next attempt.
    fn verdict(&self, now: u64) -> Result<(usize, CloseReason), Option<u64>> {
        let waiting = &self.waiting;
        let Some(first) = waiting.first() else { return Err(None) };
        let Some(batching) = &self.settings.batching else { return Ok((1, CloseReason::Alone)) };
        let max = batching.max_rows;
        let preferred = match &*batching.preferred {
            [] => vec![max],
            sizes => sizes.to_vec(),
        };
        let largest = *preferred.iter().max().unwrap();
        let delay = if self.closed { 0 } else { batching.delay_ns };

        let (mut sum, mut count, mut best, mut stop) = (0, 0, None, None);
        for w in waiting {
            if count > 0 {
                if sum + w.req.rows > largest && best.is_none() {
                    best = Some((count, CloseReason::Full));
                }
                if sum + w.req.rows > max {
                    stop = Some(CloseReason::Full);
                    break;
                }
                if w.req.shape != first.req.shape {
                    stop = Some(CloseReason::Shape);
                    break;
                }
            }
            sum += w.req.rows;
            count += 1;
            if preferred.contains(&sum) {
                best = Some((
                    count,
                    if sum < max { CloseReason::Preferred } else { CloseReason::Full },
                ));
            }
        }
        let oldest = waiting[..count].iter().map(|w| w.at).min().unwrap();
        let full = (sum >= max).then_some(CloseReason::Full);
        let (count, closed) = if delay > 0 && now - oldest >= delay {
            (count, stop.or(full).unwrap_or(CloseReason::Delay))
        } else if let Some(best) = best {
            best
        } else if stop.is_some() || sum >= largest || delay == 0 {
            (count, stop.unwrap_or(CloseReason::Delay))
        } else {
            return Err(Some(oldest + delay));
        };
        let alone = count == 1 && first.req.rows >= largest;
        let closed = if alone { CloseReason::Alone } else { closed };
        let (go, stay) = waiting.split_at(count);
        let overtaken = go.iter().any(|go| {
            stay.iter().any(|stay| stay.delayed == 0 && stay.level > go.level && stay.at < go.at)
        });
        match closed {
            CloseReason::Full | CloseReason::Preferred | CloseReason::Delay if overtaken => {
                Ok((count, CloseReason::Priority))
            }
            closed => Ok((count, closed)),
        }
    }
}

fn settings() -> impl Strategy<Value = DynamicSettings> {
    let policy = (0u32..3, prop_oneof![Just(0u64), 1u64..8], any::<bool>(), any::<bool>())
        .prop_map(|(size, timeout_us, delay, allow_override)| QueuePolicy {
            max_size: size * 6,
            timeout_us,
            action: if delay { TimeoutAction::Delay } else { TimeoutAction::Reject },
            allow_override,
        });
    let batching = (1u32..12, vec(1u32..12, 0..3), prop_oneof![Just(0u64), 1u64..6000]).prop_map(
        |(max_rows, mut preferred, delay_ns)| {
            preferred.retain(|&size| size <= max_rows);
            preferred.sort_unstable();
            BatchingSettings { max_rows, preferred, delay_ns }
        },
    );
    (
        proptest::option::weighted(0.9, batching),
        prop_oneof![Just(0u64), 1u64..4, Just(u64::MAX)],
        1u64..4,
        proptest::option::of(policy.clone()),
        proptest::collection::btree_map(1u64..4, policy, 0..3),
        // Turns of one client are the order of arrival.
        any::<bool>(),
    )
        .prop_map(|(batching, levels, default_level, default_policy, policies, fair)| {
            DynamicSettings {
                batching,
                levels,
                default_level: default_level.min(levels.max(1)),
                default_policy: default_policy.unwrap_or_default(),
                policies,
                fair,
            }
        })
}

/// Requests without ids.
fn requests() -> impl Strategy<Value = Req> {
    (prop_oneof![4 => 1u32..4, 1 => 1u32..14], 0u8..8, 0u64..5, 0u64..9).prop_map(
        |(rows, shape, priority, timeout_us)| Req {
            rows,
            shape: shape / 7,
            priority,
            timeout_us,
            ..req(0)
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Push(Req),
    Pass(u64),
    Form,
    Expire,
    Cancel(prop::sample::Index),
    Close,
}

fn steps() -> impl Strategy<Value = Step> {
    prop_oneof![
        60 => requests().prop_map(Step::Push),
        20 => (0u64..3000).prop_map(Step::Pass),
        20 => Just(Step::Form),
        10 => Just(Step::Expire),
        15 => any::<prop::sample::Index>().prop_map(Step::Cancel),
        1 => Just(Step::Close),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Any sequence of steps has the same results in both.
    #[test]
    fn batcher_agrees_with_the_reference(settings in settings(), steps in vec(steps(), 1..150)) {
        let mut batcher = DynamicBatcher::new(settings.clone());
        let mut reference = Reference { settings, waiting: vec![], closed: false, moved: 0 };
        let mut now = 0;
        let mut tickets: Vec<QueueTicket> = Vec::new();
        for (id, step) in (0u32..).zip(steps) {
            match step {
                Step::Push(req) => {
                    let req = Req { id, ..req };
                    let (alone, deadline) = (reference.waiting.is_empty(), reference.next_deadline());
                    let (mut wakes, stale) = (Vec::new(), batcher.next_deadline());
                    let pushed = batcher.push(req.clone(), now, &mut wakes);
                    prop_assert_eq!(pushed.is_err(), reference.is_full(&req));
                    let Ok(ticket) = pushed else { continue };
                    prop_assert!(!tickets.contains(&ticket));
                    tickets.push(ticket);
                    reference.push(req, ticket, now);
                    if stale == deadline {
                        let sooner = reference.next_deadline().is_some_and(|new| deadline.is_none_or(|old| new < old));
                        let wake = alone || sooner || reference.verdict(now).is_ok();
                        prop_assert_eq!(wakes, if wake { vec![WakeTarget::Any] } else { vec![] });
                    }
                }
                Step::Pass(time) => now += time,
                Step::Form => {
                    let mut batch = Vec::new();
                    let formed = batcher.next_batch(now, &mut batch);
                    let expected = reference.verdict(now);
                    let count = expected.map_or(0, |(count, _)| count);
                    let taken: Vec<u32> = reference.waiting.drain(..count).map(|w| w.req.id).collect();
                    prop_assert_eq!(ids(&batch), taken);
                    prop_assert_eq!(formed, match expected {
                        Ok((_, closed)) => BatchDecision::Batch(closed),
                        Err(until) => BatchDecision::Wait { until },
                    });
                }
                Step::Expire => {
                    let mut out = Vec::new();
                    batcher.expire(now, &mut out);
                    let out: Vec<u32> = out.into_iter().map(|(req, _)| req.id).collect();
                    prop_assert_eq!(out, reference.expire(now));
                    prop_assert!(batcher.next_deadline().is_none_or(|when| when > now));
                }
                Step::Cancel(index) if !tickets.is_empty() => {
                    let ticket = *index.get(&tickets);
                    let place = reference.waiting.iter().position(|w| w.ticket == ticket);
                    let expected = place.map(|place| reference.waiting.remove(place).req);
                    prop_assert_eq!(batcher.cancel(ticket), expected);
                }
                Step::Cancel(_) => {}
                Step::Close => {
                    batcher.close();
                    reference.closed = true;
                }
            }
            prop_assert_eq!(batcher.waiting(), reference.waiting.len());
            if let Some(deadline) = reference.next_deadline() {
                prop_assert!(batcher.next_deadline().is_some_and(|early| early <= deadline));
            }
        }
    }

    /// Instances ask for a batch when woken, after each batch, and at the returned times. Then
    /// every request is executed, and none waits longer than the delay while an instance is idle.
    #[test]
    fn simulated_instances_execute_every_request(
        settings in settings(),
        arrivals in vec((0u64..1500, requests(), proptest::option::weighted(0.2, 0u64..4000)), 1..120),
        instances in 1usize..4,
        takes in vec(0u64..5000, 1..8),
    ) {
        let delay = settings.batching.as_ref().map_or(0, |batching| batching.delay_ns);
        let max_rows = settings.batching.as_ref().map_or(0, |batching| batching.max_rows);
        let mut batcher = DynamicBatcher::new(settings);
        let (mut now, mut outcomes) = (0, BTreeMap::<u32, &str>::new());
        let mut next_arrival = 0;
        let mut events: Vec<(u64, u32, Req, Option<u64>)> = Vec::new();
        for (id, (after, req, cancel_after)) in (0u32..).zip(arrivals) {
            next_arrival += after;
            events.push((next_arrival, id, Req { id, ..req }, cancel_after));
        }
        let mut events = events.into_iter().peekable();
        let mut waiting: BTreeMap<u32, (u64, u64, QueueTicket)> = BTreeMap::new(); // arrival, level, ticket
        let mut cancels: BTreeSet<(u64, u32)> = BTreeSet::new();
        let mut busy: Vec<u64> = vec![0; instances];
        let mut takes = takes.into_iter().cycle();
        let mut next_attempt: Option<u64> = None;
        let mut woken;
        loop {
            // Advance to the next event.
            let times = [
                events.peek().map(|event| event.0),
                cancels.first().map(|cancel| cancel.0),
                busy.iter().copied().filter(|&end| end > now).min(),
                next_attempt.filter(|&until| until > now),
                batcher.next_deadline().map(|deadline| deadline.max(now + 1)),
            ];
            let Some(next) = times.into_iter().flatten().min() else { break };
            woken = busy.contains(&next) || next_attempt.is_some_and(|until| until <= next);
            now = next;
            let mut wakes = Vec::new();
            while let Some((_, id, req, cancel_after)) = events.next_if(|event| event.0 <= now) {
                let level = batcher.settings.priority_level(req.priority);
                match batcher.push(req, now, &mut wakes) {
                    Ok(ticket) => {
                        waiting.insert(id, (now, level, ticket));
                        cancels.extend(cancel_after.map(|cancel_after| (now + cancel_after, id)));
                    }
                    Err((_, refusal)) => {
                        prop_assert_eq!(refusal, QueueRefusal::QueueFull);
                        prop_assert_eq!(outcomes.insert(id, "refused"), None);
                    }
                }
            }
            while let Some(&(when, id)) = cancels.first().filter(|cancel| cancel.0 <= now) {
                cancels.remove(&(when, id));
                if let Some((.., ticket)) = waiting.remove(&id) {
                    prop_assert_eq!(batcher.cancel(ticket).map(|req| req.id), Some(id));
                    prop_assert_eq!(outcomes.insert(id, "cancelled"), None);
                }
            }
            woken |= !wakes.is_empty() || batcher.next_deadline().is_some_and(|deadline| deadline <= now);
            if woken {
                let mut out = Vec::new();
                batcher.expire(now, &mut out);
                for (req, _) in out {
                    prop_assert!(waiting.remove(&req.id).is_some());
                    prop_assert_eq!(outcomes.insert(req.id, "timed out"), None);
                }
                for end in busy.iter_mut().filter(|end| **end <= now) {
                    let mut batch = Vec::new();
                    if let BatchDecision::Wait { until } = batcher.next_batch(now, &mut batch) {
                        prop_assert!(until.is_none_or(|until| until > now));
                        next_attempt = until;
                        break;
                    }
                    let reqs: Vec<&Req> = batch
                        .iter()
                        .map(|entry| match entry {
                            BatchEntry::Request(req) => req,
                            BatchEntry::Null => panic!("a null request"),
                        })
                        .collect();
                    let rows: u32 = reqs.iter().map(|req| req.rows).sum();
                    prop_assert!(reqs.len() == 1 || rows <= max_rows);
                    prop_assert!(reqs.iter().all(|req| req.compatible_with(reqs[0])));
                    for req in reqs {
                        let (_, level, ticket) = waiting.remove(&req.id).unwrap();
                        prop_assert_eq!(batcher.cancel(ticket), None);
                        prop_assert_eq!(outcomes.insert(req.id, "executed"), None);
                        // Older requests of its level that are still queued are delayed ones.
                        let policy = batcher.settings.policy(level);
                        let moves = policy.timeout_us != 0 && policy.action == TimeoutAction::Delay;
                        let passed = waiting.range(..req.id).any(|(_, other)| other.1 == level);
                        prop_assert!(moves || !passed);
                    }
                    *end = now + 1 + takes.next().unwrap();
                }
            }
            if busy.iter().any(|&end| end <= now) {
                let oldest = waiting.values().map(|&(arrival, ..)| arrival).min();
                prop_assert!(oldest.is_none_or(|arrival| now < arrival + delay), "{:?}", oldest);
            }
        }
        prop_assert!(waiting.is_empty() && batcher.waiting() == 0);
        prop_assert_eq!(outcomes.len() as u32, outcomes.keys().max().map_or(0, |id| id + 1));
    }
}
