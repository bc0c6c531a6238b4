//! Unit tests of `dynamic.rs`: clients are served in turn.

use super::super::ClientShare;
use super::super::settings::BatchingSettings;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use trtserver_request::RequestSequence;

#[derive(Clone, Debug, PartialEq)]
struct ClientRequest {
    client: &'static str,
    number: usize,
    weight: u32,
    level: u64,
    rows: u32,
    sequence: RequestSequence,
}

impl BatchableRequest for ClientRequest {
    type Memory = ();

    fn rows(&self) -> u32 {
        self.rows
    }

    fn priority(&self) -> u64 {
        self.level
    }

    fn timeout_us(&self) -> u64 {
        0
    }

    fn sequence(&self) -> &RequestSequence {
        &self.sequence
    }

    fn client(&self) -> ClientShare {
        let key = self.client.bytes().map(u64::from).sum();
        ClientShare { key, weight: self.weight }
    }

    fn compatible_with(&self, _: &Self) -> bool {
        true
    }
}

fn client_request(client: &'static str, number: usize) -> ClientRequest {
    ClientRequest { client, number, weight: 1, level: 0, rows: 1, sequence: Default::default() }
}

fn batcher(max_rows: u32, levels: u64) -> DynamicBatcher<ClientRequest> {
    let batching = BatchingSettings { max_rows, preferred: vec![], delay_ns: 0 };
    DynamicBatcher::new(DynamicSettings {
        batching: (max_rows > 0).then_some(batching),
        levels,
        default_level: 1,
        fair: true,
        ..Default::default()
    })
}

fn push(batcher: &mut DynamicBatcher<ClientRequest>, request: ClientRequest) -> QueueTicket {
    batcher.push(request, 0, &mut Vec::new()).unwrap()
}

fn next(batcher: &mut DynamicBatcher<ClientRequest>) -> Vec<ClientRequest> {
    let mut batch = Vec::new();
    batcher.next_batch(0, &mut batch);
    let request = |entry| match entry {
        BatchEntry::Request(request) => request,
        BatchEntry::Null => unreachable!(),
    };
    batch.into_iter().map(request).collect()
}

#[test]
fn backlog_does_not_delay_another_client() {
    for max_rows in [0, 1, 8] {
        let mut batcher = batcher(max_rows, 0);
        for number in 0..10_000 {
            push(&mut batcher, client_request("busy", number));
        }
        for round in 0..20 {
            next(&mut batcher);
            push(&mut batcher, client_request("rare", round));
            let two = [next(&mut batcher), next(&mut batcher)].concat();
            assert!(two.contains(&client_request("rare", round)), "{max_rows} rows, round {round}");
        }
        // Nothing is lost, and each client's requests are in the order of arrival.
        let rest: Vec<_> = std::iter::repeat_with(|| next(&mut batcher))
            .take_while(|batch| !batch.is_empty())
            .flatten()
            .map(|request| request.number)
            .collect();
        assert!(rest.is_sorted() && rest.last() == Some(&9999) && batcher.waiting() == 0);
    }
}

#[test]
fn shares_follow_weights_and_rows() {
    // Weights and rows of two clients, and their shares of 80 rows.
    for (weights, rows, shares) in [
        ([1, 1], [1, 1], [40, 40]),
        ([3, 1], [1, 1], [60, 20]),
        ([1, 1], [4, 1], [40, 40]),
        ([1, 4], [1, 2], [16, 64]),
    ] {
        let mut batcher = batcher(0, 0);
        for number in 0..200 {
            for (at, client) in ["a", "b"].into_iter().enumerate() {
                let (weight, rows) = (weights[at], rows[at]);
                push(
                    &mut batcher,
                    ClientRequest { weight, rows, ..client_request(client, number) },
                );
            }
        }
        let mut served = BTreeMap::<_, i64>::new();
        while served.values().sum::<i64>() < 80 {
            let request = next(&mut batcher).remove(0);
            *served.entry(request.client).or_default() += i64::from(request.rows);
        }
        for (client, share) in ["a", "b"].into_iter().zip(shares) {
            assert!((served[client] - share).abs() <= 4, "{weights:?} {rows:?}: {served:?}");
        }
    }
}

#[test]
fn levels_come_before_clients() {
    let mut batcher = batcher(4, 2);
    let at = |level, client, number| ClientRequest { level, ..client_request(client, number) };
    for number in 0..3 {
        push(&mut batcher, at(2, "low", number));
    }
    for number in 0..3 {
        push(&mut batcher, at(1, "busy", number));
    }
    push(&mut batcher, at(1, "rare", 0));
    let names = |batch: Vec<ClientRequest>| -> Vec<_> {
        batch.into_iter().map(|request| (request.client, request.number)).collect()
    };
    assert_eq!(names(next(&mut batcher)), [("busy", 0), ("rare", 0), ("busy", 1), ("busy", 2)]);
    assert_eq!(names(next(&mut batcher)), [("low", 0), ("low", 1), ("low", 2)]);
}

#[test]
fn overtaken_clients_are_not_overtaken_levels() {
    let mut batcher = batcher(2, 2);
    for number in 0..4 {
        push(&mut batcher, ClientRequest { level: 1, ..client_request("busy", number) });
    }
    batcher
        .push(ClientRequest { level: 1, ..client_request("rare", 0) }, 5, &mut Vec::new())
        .unwrap();
    let mut batch = Vec::new();
    assert_eq!(batcher.next_batch(9, &mut batch), BatchDecision::Batch(CloseReason::Full));
}

#[test]
fn queue_size_is_that_of_the_level() {
    let default_policy = QueuePolicy { max_size: 2, ..Default::default() };
    let mut batcher =
        DynamicBatcher::new(DynamicSettings { default_policy, fair: true, ..Default::default() });
    push(&mut batcher, client_request("a", 0));
    push(&mut batcher, client_request("b", 0));
    let refused = batcher.push(client_request("c", 0), 0, &mut Vec::new()).unwrap_err();
    assert_eq!(refused.1, QueueRefusal::QueueFull);
}

#[test]
fn delayed_requests_are_behind_all_clients() {
    let default_policy =
        QueuePolicy { timeout_us: 1, action: TimeoutAction::Delay, ..Default::default() };
    let mut batcher =
        DynamicBatcher::new(DynamicSettings { default_policy, fair: true, ..Default::default() });
    push(&mut batcher, client_request("early", 0));
    push(&mut batcher, client_request("early", 1));
    batcher.expire(1_000_000, &mut Vec::new());
    for number in 0..2 {
        batcher.push(client_request("late", number), 1_000_000, &mut Vec::new()).unwrap();
    }
    let order: Vec<_> = (0..4).map(|_| next(&mut batcher).remove(0).client).collect();
    assert_eq!(order, ["late", "late", "early", "early"]);
}

#[derive(Clone, Debug)]
enum Step {
    Push { client: usize, level: u64, rows: u32 },
    Cancel(usize),
    Expire,
    Next,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0usize..3, 0u64..4, 1u32..4)
            .prop_map(|(client, level, rows)| Step::Push { client, level, rows }),
        1 => any::<usize>().prop_map(Step::Cancel),
        1 => Just(Step::Expire),
        2 => Just(Step::Next),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(41),
        ..ProptestConfig::default()
    })]
    #[test]
    fn nothing_is_lost_and_clients_keep_their_order(
        steps in prop::collection::vec(step(), 1..120),
        levels in 0u64..4,
        delays in any::<bool>(),
    ) {
        let batching = BatchingSettings { max_rows: 4, preferred: vec![], delay_ns: 0 };
        let default_policy = QueuePolicy {
            timeout_us: u64::from(delays) * 2,
            action: TimeoutAction::Delay,
            ..Default::default()
        };
        let mut batcher = DynamicBatcher::new(DynamicSettings {
            batching: Some(batching),
            levels,
            default_level: levels.min(1),
            default_policy,
            fair: true,
            ..Default::default()
        });
        let (mut now, mut pushed, mut waiting, mut gone) = (0, 0, Vec::new(), Vec::new());
        for step in steps.into_iter().chain(std::iter::repeat_n(Step::Next, 150)) {
            now += 500;
            match step {
                Step::Push { client, level, rows } => {
                    let client = ["a", "b", "c"][client];
                    let request = ClientRequest { level, rows, ..client_request(client, pushed) };
                    waiting.push(batcher.push(request, now, &mut Vec::new()).unwrap());
                    pushed += 1;
                }
                Step::Cancel(at) if !waiting.is_empty() => {
                    let ticket = waiting.remove(at % waiting.len());
                    gone.extend(batcher.cancel(ticket).map(|request| request.number));
                }
                Step::Cancel(_) => {}
                Step::Expire => batcher.expire(now, &mut Vec::new()),
                Step::Next => {
                    let batch = {
                        let mut batch = Vec::new();
                        batcher.next_batch(now, &mut batch);
                        batch
                    };
                    let mut last = BTreeMap::new();
                    for entry in batch {
                        let BatchEntry::Request(request) = entry else { unreachable!() };
                        let order = (request.client, request.level);
                        if let Some(before) = last.insert(order, request.number) {
                            prop_assert!(delays || before < request.number);
                        }
                        gone.push(request.number);
                    }
                }
            }
        }
        gone.sort_unstable();
        prop_assert_eq!(gone, (0..pushed).collect::<Vec<_>>());
        prop_assert_eq!(batcher.waiting(), 0);
    }
}
