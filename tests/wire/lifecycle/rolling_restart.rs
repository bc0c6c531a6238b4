//! A rolling restart of three servers behind one address, under load: what clients see with and
//! without `--drain-delay-secs`. `cargo xtask soak -- --rolling-restart` does it behind Envoy.

use std::time::{Duration, Instant};

use trtserver_tests::rolling_restart::{RequestCounts, echo_server, end_server, send_during};
use trtserver_tests::service::Service;
use trtserver_tests::{Running, TIMEOUT, say};

const SERVERS: usize = 3;
/// From a probe to its effect.
const LAG: Duration = Duration::from_millis(500);
const DELAY_SECS: u32 = 3;

/// Requests of each kind that end between two restarts, however slow the machine is.
const REQUESTS: u64 = 50;
/// Rounds until a restart without delay must have been felt.
const ROUNDS: usize = 5;

/// Replaces each server by a new one, in rounds until `enough`. Good and failed requests over HTTP
/// and gRPC.
fn restart_all(delay_secs: u32, enough: impl Fn([(u64, u64); 2]) -> bool) -> [(u64, u64); 2] {
    let service = Service::start(LAG);
    let start = || {
        let server = echo_server(delay_secs).start();
        service.add(server.http(), server.grpc());
        server
    };
    let mut servers: Vec<Running> = (0..SERVERS).map(|_| start()).collect();
    let counts = send_during((service.http(), service.grpc()), |http, grpc| {
        for _ in 0..ROUNDS {
            for _ in 0..SERVERS {
                let old = std::mem::replace(&mut servers[0], start());
                servers.rotate_left(1);
                end_server(old);
                [http, grpc].into_iter().for_each(wait_for_requests);
            }
            if enough([http.read(), grpc.read()]) {
                return;
            }
        }
    });
    counts.map(|counts| counts.read())
}

#[track_caller]
fn wait_for_requests(counts: &RequestCounts) {
    let ended = || counts.read().0 + counts.read().1;
    let (before, begin) = (ended(), Instant::now());
    while ended() < before + REQUESTS {
        assert!(begin.elapsed() < TIMEOUT, "{} of {REQUESTS} requests ended", ended() - before);
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn drain_delay_loses_no_request_of_a_rolling_restart() {
    for (delay_secs, loses) in [(DELAY_SECS, false), (0, true)] {
        let felt = |[http, grpc]: [(u64, u64); 2]| http.1 > 0 && grpc.1 > 0;
        let [http, grpc] = restart_all(delay_secs, |counts| !loses || felt(counts));
        say(&format!(
            "--drain-delay-secs={delay_secs}: HTTP {} good, {} failed; gRPC {} good, {} failed",
            http.0, http.1, grpc.0, grpc.1
        ));
        if loses {
            assert!(felt([http, grpc]), "the restart is not felt: {http:?} {grpc:?}");
        } else {
            assert_eq!((http.1, grpc.1), (0, 0));
        }
    }
}
