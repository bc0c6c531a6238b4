//! Clients that are served in turn. How many have series of their own is limited
//! (`base/src/fair_clients.rs`).

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use trtserver_base::fair_clients::ClientReport;

pub fn client_families(clients: &[ClientReport]) -> [MetricFamily; 3] {
    let mut requests =
        FamilyBuilder::counter("trtserver_client_requests_total", "Requests that a client queued");
    let mut waited = FamilyBuilder::counter(
        "trtserver_client_queue_seconds_total",
        "Time that the requests of a client waited in queues",
    );
    let mut waiting = FamilyBuilder::gauge(
        "trtserver_client_waiting_requests",
        "Requests of a client that wait in queues now",
    );
    for client in clients {
        let labels = Labels::from([("client".to_owned(), client.name.clone())]);
        requests.put(&labels, client.requests as f64);
        waited.put(&labels, client.waited_ns as f64 / 1e9);
        waiting.put(&labels, client.waiting as f64);
    }
    [requests.done(), waited.done(), waiting.done()]
}
