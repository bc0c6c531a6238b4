//! Malformed requests: none crashes the server, is left without a response, or leaks memory.

mod grpc;
mod http;
mod v1;
mod v2;

use std::sync::LazyLock;
use trtserver_tests::{Response, Running, every_model};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

/// A malformed request and its expected response.
struct Malformed {
    what: &'static str,
    bytes: Vec<u8>,
    /// Permitted status codes.
    codes: &'static [u16],
    /// Part of the message.
    says: String,
}

/// A valid request must succeed after every malformed one.
fn assert_still_serves(server: &Running) {
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "a valid request fails afterwards: {}", response.text());
}

/// Sends the request on a new connection. The server may close it without a response only if the
/// request is very long.
fn send(server: &Running, bad: &Malformed) -> Option<Response> {
    let mut connection = server.connect();
    connection.send(&bad.bytes).try_response()
}

fn assert_all_refused(server: &Running, list: &[Malformed], may_hang_up: bool) {
    let mut wrong = Vec::new();
    for bad in list {
        match send(server, bad) {
            Some(response) => {
                let says = response.error_text().replace("\\'", "'");
                if !bad.codes.contains(&response.status) || !says.contains(&bad.says) {
                    wrong.push(format!(
                        "{}: {} {says:?}\n    expected {:?} {:?}",
                        bad.what, response.status, bad.codes, bad.says
                    ));
                }
            }
            // The server need not read a megabyte that it refuses.
            None if may_hang_up && bad.bytes.len() > 100_000 => {}
            None => wrong.push(format!("{}: connection closed without a response", bad.what)),
        }
        assert_still_serves(server);
    }
    assert!(wrong.is_empty(), "{} of {}:\n  {}", wrong.len(), list.len(), wrong.join("\n  "));
}

#[test]
fn malformed_requests_leak_no_memory() {
    let server = every_model().start();
    let bad: Vec<Malformed> =
        [v1::requests(), v2::requests(), http::requests()].into_iter().flatten().collect();
    let round = |times: usize| {
        for bad in bad.iter().cycle().take(times) {
            send(&server, bad);
        }
    };
    // Lazy allocations are done by now.
    round(500);
    let before = server.resident_kib();
    round(1000);
    let after = server.resident_kib();
    assert!(after < before + 4096, "resident memory grew from {before} KiB to {after} KiB");
    assert_still_serves(&server);
    // A request without a response would delay this and make the exit status 1.
    assert!(server.stop().success());
}
