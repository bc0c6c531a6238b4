//! Malformed requests: none crashes the server, is left without a response, or leaks memory.

mod grpc;
mod http;
mod v1;
mod v2;

use std::sync::LazyLock;
use trtserver_tests::{Response, Running, every_model};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

/// A request and what must come of it.
struct Malformed {
    what: &'static str,
    bytes: Vec<u8>,
    /// None of them is a crime of the server's: the codes a refusal may have.
    codes: &'static [u16],
    /// A part of the words.
    says: String,
}

/// A request that must work after every one that must not.
fn assert_still_serves(server: &Running) {
    let response = server.infer("echo", "");
    assert_eq!(response.status, 200, "after that, a good request fails: {}", response.text());
}

/// Sends it on a connection of its own. The server may hang up on what is endless, but not on anything else.
fn send(server: &Running, bad: &Malformed) -> Option<Response> {
    let mut connection = server.connect();
    connection.send(&bad.bytes).answer()
}

fn assert_all_refused(server: &Running, list: &[Malformed], may_hang_up: bool) {
    let mut wrong = Vec::new();
    for bad in list {
        match send(server, bad) {
            Some(response) => {
                let says = response.error_text().replace("\\'", "'");
                if !bad.codes.contains(&response.status) || !says.contains(&bad.says) {
                    wrong.push(format!(
                        "{}: {} {says:?}\n    wanted {:?} {:?}",
                        bad.what, response.status, bad.codes, bad.says
                    ));
                }
            }
            // Nobody reads a megabyte to its end only to refuse it.
            None if may_hang_up && bad.bytes.len() > 100_000 => {}
            None => wrong.push(format!("{}: hung up without a word", bad.what)),
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
    // Whatever is made once is made by now.
    round(500);
    let before = server.resident_kib();
    round(1000);
    let after = server.resident_kib();
    assert!(after < before + 4096, "resident memory grew from {before} KiB to {after} KiB");
    assert_still_serves(&server);
    // A request that was never answered would hold this up, and make the exit status 1.
    assert!(server.stop().success());
}
