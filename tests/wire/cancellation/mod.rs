//! Cancellation by disconnect, RST_STREAM or deadline, on every endpoint.

mod clients;
mod executing;
mod queued;

use trtserver_tests::{Running, Server, probe};

const DEADLINE_EXCEEDED: Option<u8> = Some(4);

/// `stuck` executes one request at a time, each until it is cancelled; `echo` responds at once.
fn server() -> Running {
    let stuck = probe("stuck", &[("until_cancelled", "true")]);
    Server::new().model("stuck", stuck).model("echo", probe("echo", &[])).start()
}

fn count(server: &Running, sample: &str) -> usize {
    server.metrics(sample).unwrap_or_else(|| panic!("no {sample}")) as usize
}

/// Requests cancelled before and during their execution.
fn cancelled(server: &Running) -> (usize, usize) {
    let of = |when: &str| {
        let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="#;
        count(server, &format!("{sample}\"{when}\"}}"))
    };
    (of("queued"), of("executing"))
}

fn pending(server: &Running) -> usize {
    count(server, r#"nv_inference_pending_request_count{model="stuck",version="1"}"#)
}
