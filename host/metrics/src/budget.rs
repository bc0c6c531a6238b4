//! Metrics of the memory budget.

use super::family::FamilyBuilder;
use prometheus::proto::MetricFamily;
use trtserver_base::budget::{RefusalReason, request_memory};

/// Bytes in use, their peak and limit, and refused requests by reason.
pub fn budget_families() -> Vec<MetricFamily> {
    let budget = request_memory();
    let gauge = |name, help, bytes: usize| FamilyBuilder::single_gauge(name, help, bytes as f64);
    let mut refusals = FamilyBuilder::counter(
        "trtserver_request_refusals_total",
        "Number of requests refused for lack of memory, for their size, or because too many calls were open",
    );
    for reason in RefusalReason::ALL {
        let labels = vec![("reason".to_owned(), reason.name().to_owned())];
        refusals.put(&labels, budget.refusals(reason) as f64);
    }
    vec![
        gauge(
            "trtserver_request_memory_bytes",
            "Bytes that requests and responses hold, without small messages",
            budget.in_use(),
        ),
        gauge(
            "trtserver_request_memory_peak_bytes",
            "The most bytes that requests and responses have held",
            budget.peak(),
        ),
        gauge(
            "trtserver_request_memory_limit_bytes",
            "Limit of the bytes that requests and responses may hold (--max-request-memory)",
            budget.limit(),
        ),
        refusals.done(),
    ]
}
