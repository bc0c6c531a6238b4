//! Unit tests of the connections of a listener.

use super::*;
use state::Phase;

#[tokio::test]
async fn oldest_idle_connection_makes_place_at_the_limit() {
    let connections = Connections::new(3, 1, Timeouts::default(), OpenCallLimit::leak(usize::MAX));
    let entries: Vec<ConnectionEntry> = (0..3).map(|_| connections.add(Wire::Http1)).collect();
    entries[0].state().read(1);
    entries[0].state().head_arrived();
    assert_eq!(connections.evict(), 0, "they may have sent something");
    tokio::time::sleep(Duration::from_millis(60)).await;
    connections.clock.advance();
    entries[1].state().wrote();
    assert_eq!(connections.evict(), 1);
    let ordered = |entry: &ConnectionEntry| entry.state().ordered() == Order::Close as u8;
    assert_eq!(entries.iter().map(ordered).collect::<Vec<_>>(), [false, false, true]);
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(connections.evict(), 1);
    assert!(ordered(&entries[1]));
    assert_eq!(connections.evict(), 0, "a request is not given up for a connection");
    assert_eq!(entries[0].state().phase(), Phase::Body);
    let admitted = tokio::time::timeout(Duration::from_millis(50), connections.admit()).await;
    assert!(admitted.is_err());
    drop(entries);
    connections.admit().await;
    assert_eq!(connections.count(), 0);
}

#[tokio::test]
async fn drain_reaches_later_connections_too() {
    let connections = Connections::new(3, 1, Timeouts::default(), OpenCallLimit::leak(usize::MAX));
    let before = connections.add(Wire::Http1);
    assert!(!before.state().is_last());
    connections.drain();
    let after = connections.add(Wire::Http1);
    assert!(before.state().is_last() && after.state().is_last());
}
