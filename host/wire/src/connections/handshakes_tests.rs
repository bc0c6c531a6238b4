//! Unit tests of `handshakes.rs`.

use super::super::Timeouts;
use super::super::state::{Order, Wire};
use super::*;
use std::time::Duration;
use trtserver_base::budget::OpenCallLimit;

fn connections(max_handshakes: usize) -> Arc<Connections> {
    let calls = OpenCallLimit::leak(usize::MAX);
    Connections::new(usize::MAX, max_handshakes, Timeouts::default(), calls)
}

async fn is_admitted(connections: &Connections, within: Duration) -> bool {
    tokio::time::timeout(within, connections.admit_handshake()).await.is_ok()
}

#[tokio::test]
async fn at_the_limit_the_oldest_handshake_makes_place() {
    let connections = connections(2);
    let entries: Vec<_> = (0..3).map(|_| connections.add(Wire::Http2)).collect();
    let mut handshakes: Vec<_> =
        entries[..2].iter().map(ConnectionEntry::begin_handshake).collect();
    // One that takes long, and a connection that is not counted.
    entries[2].state().handshake_began();
    entries[2].state().handshake_ended();
    let young = Duration::from_millis(100);
    assert!(!is_admitted(&connections, young).await, "handshakes that have just begun stay");
    assert!(entries.iter().all(|entry| entry.state().ordered() == Order::None as u8));
    tokio::time::sleep(Duration::from_millis(1000)).await;
    assert!(!is_admitted(&connections, young).await);
    let ended = entries.iter().filter(|entry| entry.state().is_ended()).count();
    assert!((1..=2).contains(&ended), "{ended}");
    assert!(
        !entries[2].state().is_ended(),
        "an idle connection does not make place for a handshake"
    );
    handshakes.pop();
    assert!(is_admitted(&connections, young).await);
}
