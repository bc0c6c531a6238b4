//! Unit tests of `fair_clients.rs`.

use super::*;

#[test]
fn names_have_a_bounded_number_of_counters() {
    let clients = FairClients::new(&BTreeMap::from([("heavy".to_owned(), 4)]));
    assert_eq!((clients.named("heavy").weight, clients.named("b").weight), (4, 1));
    assert_eq!(clients.named("b").key, clients.named("b").key);
    let serve = |name: &str| {
        let mut turn = ClientTurn::new(clients.named(name));
        turn.begin(100);
        turn.end(350);
    };
    for i in 0..200 {
        serve(&format!("client {i}"));
    }
    serve(&"long".repeat(100));
    serve("heavy");
    let report = clients.report();
    // Those with counters, a weighted one, and all others.
    assert_eq!(report.len(), MAX_SHOWN - 1 + 2, "{report:?}");
    let requests = |name: &str| report.iter().find(|r| r.name == name).map(|r| r.requests);
    assert_eq!((requests("heavy"), requests("client 0")), (Some(1), Some(1)));
    assert_eq!(report.iter().map(|r| r.requests).sum::<u64>(), 202);
    assert!(report.iter().all(|r| r.waiting == 0 && r.waited_ns == 250 * r.requests));
    // Clients without counters of their own are still told apart.
    assert_ne!(clients.named("client 150").key, clients.named("client 151").key);
}

#[test]
fn names_of_the_page_are_one_line_each() {
    let clients = FairClients::new(&BTreeMap::from([(UNNAMED.to_owned(), 5)]));
    let serve = |client| ClientTurn::new(client).begin(1);
    for name in [UNNAMED, OTHERS] {
        serve(clients.named(name));
    }
    for i in 0..MAX_SHOWN + 3 {
        serve(clients.named(&format!("client {i}")));
    }
    serve(clients.unnamed());
    assert_eq!(clients.unnamed().weight, 5);
    let report = clients.report();
    let requests = |name: &str| -> Vec<u64> {
        report.iter().filter(|row| row.name == name).map(|row| row.requests).collect()
    };
    assert_eq!((requests(UNNAMED), requests(OTHERS)), (vec![2], vec![4]));
    assert_eq!(report.len(), MAX_SHOWN + 2);
}

#[test]
fn dropped_request_does_not_wait() {
    let clients = FairClients::new(&BTreeMap::new());
    let mut turn = ClientTurn::new(clients.unnamed());
    turn.begin(now_ns());
    assert_eq!(clients.report()[0].waiting, 1);
    drop(turn);
    let report = &clients.report()[0];
    assert_eq!((report.name.as_str(), report.requests, report.waiting), (UNNAMED, 1, 0));
    // A request that was not queued does not count.
    drop(ClientTurn::new(clients.unnamed()));
    assert_eq!(clients.report()[0].requests, 1);
}
