//! Rows of docs/protocol/v1.md and v2.md that no other test of the wire covers, one test for each
//! section.

mod configurations;
mod log_lines;
mod metrics_port;
mod v1_http;
mod v1_stats;
mod v2_http;
mod v2_inference;

use std::sync::LazyLock;
use trtserver_tests::{Running, every_model, python_v1, python_v2};

/// All models, and every endpoint that a flag switches on.
static SERVER: LazyLock<Running> =
    LazyLock::new(|| every_model().flag("--allow-client-shm=true").start_shared());

#[test]
fn v1_rpcs() {
    python_v1(&SERVER, "v1_rows.py", &[]);
}

#[test]
fn v2_rpcs() {
    python_v2(&SERVER, "v2_rows.py", &[]);
}
