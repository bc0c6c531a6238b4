//! A rolling restart of three servers behind one address, under load: what clients see with and
//! without `--drain-delay-secs`. `cargo xtask soak -- --rolling-restart` does it behind Envoy.

use std::time::Duration;
use trtserver_tests::rolling_restart::{echo_server, end_server, send_during};
use trtserver_tests::service::Service;
use trtserver_tests::{Running, say};

const SERVERS: usize = 3;
/// From a probe to its effect.
const LAG: Duration = Duration::from_millis(500);
const DELAY_SECS: u32 = 3;

/// Replaces each server by a new one. Good and failed requests over HTTP and gRPC.
fn restart_all(delay_secs: u32) -> [(u64, u64); 2] {
    let service = Service::start(LAG);
    let start = || {
        let server = echo_server(delay_secs).start();
        service.add(server.http(), server.grpc());
        server
    };
    let mut servers: Vec<Running> = (0..SERVERS).map(|_| start()).collect();
    let counts = send_during((service.http(), service.grpc()), |_, _| {
        for _ in 0..SERVERS {
            let old = std::mem::replace(&mut servers[0], start());
            servers.rotate_left(1);
            end_server(old);
        }
    });
    counts.map(|counts| counts.read())
}

#[test]
fn drain_delay_loses_no_request_of_a_rolling_restart() {
    for (delay_secs, loses) in [(DELAY_SECS, false), (0, true)] {
        let [http, grpc] = restart_all(delay_secs);
        say(&format!(
            "--drain-delay-secs={delay_secs}: HTTP {} good, {} failed; gRPC {} good, {} failed",
            http.0, http.1, grpc.0, grpc.1
        ));
        assert!(http.0 > 500 && grpc.0 > 500, "too few requests: {http:?} {grpc:?}");
        if loses {
            assert!(http.1 > 0 && grpc.1 > 0, "the restart is not felt: {http:?} {grpc:?}");
        } else {
            assert_eq!((http.1, grpc.1), (0, 0));
        }
    }
}
