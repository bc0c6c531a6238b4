//! Unit tests of `dynamic.rs`: arrivals at given times and the batches they lead to.

use super::*;
use crate::batcher::settings::BatchingSettings;
use std::collections::BTreeMap;
use trtserver_request::RequestSequence;

/// A request for tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Req {
    pub id: u32,
    pub rows: u32,
    pub shape: u8,
    pub priority: u64,
    pub timeout_us: u64,
    pub sequence: RequestSequence,
}

impl BatchableRequest for Req {
    type Memory = ();
    fn rows(&self) -> u32 {
        self.rows
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
    fn compatible_with(&self, first: &Self) -> bool {
        self.shape == first.shape
    }
}

pub fn req(id: u32) -> Req {
    Req { id, rows: 1, shape: 0, priority: 0, timeout_us: 0, sequence: RequestSequence::default() }
}

pub fn ids(batch: &[BatchEntry<Req>]) -> Vec<u32> {
    let id = |entry: &BatchEntry<Req>| match entry {
        BatchEntry::Request(req) => req.id,
        BatchEntry::Null => u32::MAX,
    };
    batch.iter().map(id).collect()
}

/// A batcher and its clock.
struct Fixture {
    batcher: DynamicBatcher<Req>,
    now: u64,
}

impl Fixture {
    fn new(settings: DynamicSettings) -> Self {
        Self { batcher: DynamicBatcher::new(settings), now: 0 }
    }

    fn batching(max_rows: u32, preferred: &[u32], delay_ns: u64) -> DynamicSettings {
        let preferred = preferred.to_vec();
        let batching = Some(BatchingSettings { max_rows, preferred, delay_ns });
        DynamicSettings { batching, ..DynamicSettings::default() }
    }

    /// As `batching(4, [], delay)`, with levels 1 to 3 and 2 by default.
    fn levels(delay_ns: u64) -> DynamicSettings {
        DynamicSettings { levels: 3, default_level: 2, ..Self::batching(4, &[], delay_ns) }
    }

    fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    /// The ticket, and whether an instance was woken.
    fn push(&mut self, req: Req) -> (QueueTicket, bool) {
        let mut wakes = Vec::new();
        let ticket = self.batcher.push(req, self.now, &mut wakes).unwrap();
        assert!(wakes.iter().all(|&wake| wake == WakeTarget::Any));
        (ticket, !wakes.is_empty())
    }

    fn push_all(&mut self, reqs: impl IntoIterator<Item = Req>) -> &mut Self {
        for req in reqs {
            self.push(req);
        }
        self
    }

    fn refused(&mut self, req: Req) -> QueueRefusal {
        let given = req.clone();
        let (returned, refusal) = self.batcher.push(req, self.now, &mut Vec::new()).unwrap_err();
        assert_eq!(returned, given);
        refusal
    }

    fn forms(&mut self, expected: &[u32], closed: CloseReason) -> &mut Self {
        let mut batch = Vec::new();
        let formed = self.batcher.next_batch(self.now, &mut batch);
        assert_eq!((ids(&batch).as_slice(), formed), (expected, BatchDecision::Batch(closed)));
        self
    }

    fn waits(&mut self, until: Option<u64>) -> &mut Self {
        let mut batch = Vec::new();
        assert_eq!(self.batcher.next_batch(self.now, &mut batch), BatchDecision::Wait { until });
        assert!(batch.is_empty());
        self
    }

    fn expires(&mut self, expected: &[u32]) -> &mut Self {
        let mut out = Vec::new();
        self.batcher.expire(self.now, &mut out);
        assert!(out.iter().all(|(_, refusal)| *refusal == QueueRefusal::TimedOut));
        assert_eq!(out.iter().map(|(req, _)| req.id).collect::<Vec<_>>(), expected);
        self
    }
}

fn rows(id: u32, rows: u32) -> Req {
    Req { rows, ..req(id) }
}

fn level(id: u32, priority: u64) -> Req {
    Req { priority, ..req(id) }
}

#[test]
fn without_batching_requests_are_executed_alone() {
    let mut fixture = Fixture::new(DynamicSettings::default());
    fixture.waits(None).push_all([rows(1, 7), level(2, 1), req(3)]);
    fixture
        .forms(&[1], CloseReason::Alone)
        .forms(&[2], CloseReason::Alone)
        .forms(&[3], CloseReason::Alone);
    fixture.waits(None);
    assert!(fixture.push(req(4)).1 && fixture.push(req(5)).1, "each is a batch: each wakes");
}

#[test]
fn scan_continues_where_it_stopped() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[4, 8], 100));
    assert!(fixture.push(req(1)).1, "an instance has to wait for the delay");
    assert!(!fixture.at(10).push(req(2)).1);
    fixture.waits(Some(100));
    assert!(!fixture.push(req(3)).1);
    assert!(fixture.push(req(4)).1, "a preferred size");
    assert!(fixture.push(req(5)).1);
    fixture.forms(&[1, 2, 3, 4], CloseReason::Preferred).waits(Some(110));
    fixture.at(110).forms(&[5], CloseReason::Delay).waits(None);
}

/// Known behaviour of TRTIS and Triton (docs/protocol/v1.md §14, docs/protocol/v2.md §8): an
/// oversized request runs alone, a shape mismatch closes the batch at once, the delay counts from
/// the oldest request, and when it has passed all collected requests are executed.
#[test]
fn batches_close_by_size_shape_and_delay() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[4], 100));
    fixture.push_all([rows(1, 6), rows(2, 3), rows(3, 2)]);
    fixture.forms(&[1], CloseReason::Alone).forms(&[2], CloseReason::Full).waits(Some(100));
    fixture.at(50).push_all([req(4)]).waits(Some(100));
    fixture.push_all([Req { shape: 1, ..req(5) }, req(6)]);
    fixture.forms(&[3, 4], CloseReason::Shape).forms(&[5], CloseReason::Shape).waits(Some(150));
    fixture.push_all([rows(7, 3), rows(8, 3), rows(9, 3)]);
    fixture.at(150).forms(&[6, 7, 8], CloseReason::Full).forms(&[9], CloseReason::Delay);
}

#[test]
fn five_wait_for_eight_as_long_as_the_delay_allows() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[], 100));
    let size = |(rows, run_ns)| PreparedSize { rows, run_ns };
    let sizes = [(1, 913), (2, 1071), (4, 1309), (8, 1831)].map(size);
    fixture.batcher.set_prepared(sizes.to_vec());
    fixture.push_all((1..=5).map(req)).at(99).waits(Some(100));
    fixture.at(100).forms(&[1, 2, 3, 4, 5], CloseReason::Delay);
    fixture.push_all((6..=13).map(req));
    fixture.forms(&[6, 7, 8, 9, 10, 11, 12, 13], CloseReason::Full).waits(None);
}

#[test]
fn requests_behind_a_cut_are_the_next_batch() {
    let mut fixture = Fixture::new(Fixture::batching(16, &[], 0));
    fixture.push_all((1..=9).map(req));
    let size = |(rows, run_ns)| PreparedSize { rows, run_ns };
    // While requests wait: what was scanned before is forgotten.
    fixture.batcher.set_prepared([(1, 913), (8, 1831), (16, 3009)].map(size).to_vec());
    fixture.forms(&[1, 2, 3, 4, 5, 6, 7, 8], CloseReason::Preferred);
    assert!(fixture.batcher.is_batch_ready(0));
    fixture.forms(&[9], CloseReason::Delay).waits(None);
    fixture.batcher.set_prepared(Vec::new());
    fixture.push_all((10..=18).map(req));
    fixture.forms(&[10, 11, 12, 13, 14, 15, 16, 17, 18], CloseReason::Delay);
}

#[test]
fn without_delay_requests_do_not_wait() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[2], 0));
    assert!(fixture.push(req(1)).1 && fixture.push(req(2)).1 && fixture.push(req(3)).1);
    fixture.forms(&[1, 2], CloseReason::Preferred).forms(&[3], CloseReason::Delay);
}

#[test]
fn close_disables_the_delay() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[4], 100));
    fixture.push_all([req(1), req(2)]).waits(Some(100));
    fixture.batcher.close();
    fixture.forms(&[1, 2], CloseReason::Delay).waits(None);
}

#[test]
fn higher_priority_levels_are_served_first() {
    let mut fixture = Fixture::new(Fixture::levels(100));
    // Known behaviour of Triton: level 0 and every level above the maximum mean the default level.
    fixture.push_all([level(1, 3), level(2, 0), level(3, 9), level(4, 2), level(5, 1)]);
    fixture.forms(&[5, 2, 3, 4], CloseReason::Full).waits(Some(100));
    fixture.at(60).push_all([level(6, 1)]).waits(Some(100));
    fixture.at(100).forms(&[6, 1], CloseReason::Delay);
}

#[test]
fn reason_is_priority_when_an_older_request_was_overtaken() {
    let mut fixture = Fixture::new(Fixture::levels(0));
    fixture.push_all([level(1, 2), level(2, 2), level(3, 3)]);
    fixture.at(1).push_all([level(4, 1), level(5, 1), level(6, 1)]);
    fixture.forms(&[4, 5, 6, 1], CloseReason::Priority).forms(&[2, 3], CloseReason::Delay);
    // The requests that stay are younger: not overtaken.
    fixture.push_all((10..14).map(|id| level(id, 2)));
    fixture.at(2).push_all([level(14, 3), level(15, 2)]);
    fixture.forms(&[10, 11, 12, 13], CloseReason::Full).forms(&[15, 14], CloseReason::Delay);
    // The last request of the batch has the level of the one that stays.
    fixture.push_all([level(20, 2), rows(21, 4)]);
    fixture.at(3).push_all([level(22, 1)]);
    fixture.forms(&[22, 20], CloseReason::Priority);
}

#[test]
fn arrival_of_a_higher_level_restarts_the_scan() {
    let mut fixture = Fixture::new(Fixture::levels(100));
    let odd = |id, priority| Req { shape: 1, ..level(id, priority) };
    fixture.push_all([level(1, 2), odd(2, 3)]);
    // Between the pending request and the one that ended the scan.
    fixture.push_all([level(3, 2)]).forms(&[1, 3], CloseReason::Shape).waits(Some(100));
    // At the front: now other shapes fit the batch.
    fixture.push_all([odd(4, 2), odd(5, 1)]).waits(Some(100));
    fixture.push_all([level(6, 1)]).forms(&[5], CloseReason::Shape).forms(&[6], CloseReason::Shape);
}

#[test]
fn cancel_removes_requests_at_any_position() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[4], 100));
    let tickets: Vec<QueueTicket> = (1..7).map(|id| fixture.push(rows(id, 3)).0).collect();
    // The request that ended the scan, then the first one, then one far behind.
    for (index, left) in [(1, 5), (0, 4), (5, 3)] {
        let gone = fixture.batcher.cancel(tickets[index]).unwrap();
        assert_eq!((gone.id, fixture.batcher.waiting()), (index as u32 + 1, left));
        assert_eq!(fixture.batcher.cancel(tickets[index]), None, "only once");
    }
    fixture.forms(&[3], CloseReason::Full).forms(&[4], CloseReason::Full).waits(Some(100));
    assert_eq!(fixture.batcher.cancel(tickets[2]), None, "it is being executed");
    fixture.push_all([req(9)]);
    assert!(
        tickets
            .iter()
            .all(|&ticket| ticket == tickets[4] || fixture.batcher.cancel(ticket).is_none())
    );
    fixture.forms(&[5, 9], CloseReason::Preferred);
}

fn policy(timeout_us: u64, allow_override: bool) -> QueuePolicy {
    QueuePolicy { timeout_us, allow_override, ..QueuePolicy::default() }
}

/// Known behaviour of TRTIS and Triton: a request's timeout counts only if the policy allows it and
/// has a longer timeout itself.
#[test]
fn request_timeout_only_shortens_the_policys() {
    #[rustfmt::skip]
    let table = [
        (policy(0, true), 5, None),
        (policy(10, false), 5, Some(10_000)),
        (policy(10, true), 5, Some(5_000)),
        (policy(10, true), 0, Some(10_000)),
        (policy(10, true), 11, Some(10_000)),
        (policy(u64::MAX, true), u64::MAX - 1, Some(u64::MAX)),
    ];
    for (default_policy, timeout_us, deadline) in table {
        let mut fixture =
            Fixture::new(DynamicSettings { default_policy, ..DynamicSettings::default() });
        fixture.push_all([Req { timeout_us, ..req(1) }]);
        assert_eq!(fixture.batcher.next_deadline(), deadline, "{default_policy:?} {timeout_us}");
    }
}

#[test]
fn timeout_rejects_or_delays() {
    let reject = policy(10, false);
    let delay = QueuePolicy { action: TimeoutAction::Delay, ..reject };
    let policies = BTreeMap::from([(1, delay), (2, reject)]);
    let mut fixture = Fixture::new(DynamicSettings { policies, ..Fixture::levels(1_000_000) });
    fixture.push_all([level(1, 1), level(2, 2), level(3, 3), level(4, 1)]);
    let deadline = fixture.batcher.next_deadline().unwrap();
    assert_eq!(deadline, 10_000);
    fixture.at(deadline - 1).expires(&[]).push_all([level(5, 1)]);
    fixture.at(deadline).expires(&[2]).push_all([level(6, 1)]);
    // The delayed requests are served after 5 and 6, and have no timeout any more.
    fixture.at(deadline + 1).forms(&[5, 6, 1, 4], CloseReason::Priority);
    fixture.at(u64::MAX / 2).expires(&[]).forms(&[3], CloseReason::Delay);
    assert_eq!((fixture.batcher.next_deadline(), fixture.batcher.waiting()), (None, 0));
}

/// Without levels too, a delayed request is older than the ones before it.
#[test]
fn delayed_request_behind_a_preferred_size_counts_as_oldest() {
    let default_policy = QueuePolicy { action: TimeoutAction::Delay, ..policy(1, false) };
    let settings = DynamicSettings { default_policy, ..Fixture::batching(8, &[2], 5_000) };
    let mut fixture = Fixture::new(settings);
    fixture.push_all([req(1)]).at(1_000).expires(&[]).push_all([req(2), req(3)]);
    fixture.at(1_001).forms(&[2, 3], CloseReason::Preferred).push_all([req(4), req(5)]);
    fixture.at(5_000).forms(&[4, 5, 1], CloseReason::Delay);
}

#[test]
fn earlier_timeout_wakes_an_instance() {
    let default_policy = policy(10, true);
    let settings = DynamicSettings { default_policy, ..Fixture::batching(8, &[], 1_000_000) };
    let mut fixture = Fixture::new(settings);
    assert!(fixture.push(req(1)).1);
    assert!(!fixture.push(req(2)).1);
    assert!(fixture.push(Req { timeout_us: 3, ..req(3) }).1);
    fixture.at(3_000).expires(&[3]).at(10_000).expires(&[1, 2]).waits(None);
}

#[test]
fn max_queue_size_refuses_by_level() {
    let default_policy = QueuePolicy { max_size: 2, ..QueuePolicy::default() };
    let policies = BTreeMap::from([(1, QueuePolicy { max_size: 1, ..default_policy })]);
    let settings = DynamicSettings { default_policy, policies, ..Fixture::levels(100) };
    let mut fixture = Fixture::new(settings.clone());
    let (ticket, _) = fixture.push(level(1, 1));
    fixture.push_all([level(2, 2), level(3, 0), level(4, 3)]);
    assert_eq!(fixture.refused(level(5, 1)), QueueRefusal::QueueFull);
    assert_eq!(fixture.refused(level(5, 7)), QueueRefusal::QueueFull);
    fixture.batcher.cancel(ticket);
    fixture.push(level(6, 1));
    fixture.forms(&[6, 2, 3, 4], CloseReason::Full).push_all([level(7, 1)]);
    // Without levels the default policy applies to all.
    let mut fixture = Fixture::new(DynamicSettings { levels: 0, ..settings });
    fixture.push_all([level(1, 1), level(2, 1)]);
    assert_eq!(fixture.refused(level(3, 2)), QueueRefusal::QueueFull);
}

#[test]
fn number_of_levels_may_be_u64_max() {
    let mut fixture = Fixture::new(DynamicSettings { levels: u64::MAX, ..Fixture::levels(0) });
    fixture.push_all([level(1, u64::MAX), level(2, u64::MAX - 1), level(3, 1), level(4, 0)]);
    fixture.forms(&[3, 4, 2, 1], CloseReason::Full);
}

/// A time that was read before waiting for the lock counts as the latest seen.
#[test]
fn time_before_the_latest_arrival_is_adjusted() {
    let mut fixture = Fixture::new(Fixture::batching(8, &[], 100));
    fixture.at(50).push(req(1));
    fixture.at(40).push(req(2));
    fixture.waits(Some(150)).at(150).forms(&[1, 2], CloseReason::Delay);
}

#[test]
fn arrival_is_behind_its_level_and_has_the_timeout_of_its_policy() {
    let mut settings = Fixture::levels(0);
    let policy = QueuePolicy { timeout_us: 50, allow_override: true, ..QueuePolicy::default() };
    settings.policies.insert(1, policy);
    let mut fixture = Fixture::new(settings);
    fixture.push_all([level(1, 1), level(2, 2), level(3, 3), level(4, 3)]);
    for (priority, timeout_us, ahead, queue_timeout_us) in
        [(1, 0, 1, 50), (1, 20, 1, 20), (0, 20, 2, 0), (3, 0, 4, 0)]
    {
        let arrival = fixture.batcher.arrival(&Req { timeout_us, ..level(5, priority) });
        assert_eq!(
            arrival,
            QueueArrival { ahead, max_requests: 4, queue_timeout_us },
            "{priority}"
        );
    }
    let alone = DynamicBatcher::new(DynamicSettings::default()).arrival(&req(1));
    assert_eq!(alone, QueueArrival { ahead: 0, max_requests: 1, queue_timeout_us: 0 });
}
