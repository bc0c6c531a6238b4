//! `NOTIFY_SOCKET`: a service manager such as systemd learns of readiness, reload and stop.

use std::os::unix::net::UnixDatagram;
use std::time::Duration;
use trtserver_tests::{LoadGate, Server, Signal, folder};

#[test]
fn service_manager_learns_when_the_server_is_ready_reloads_and_stops() {
    let dir = folder();
    let path = dir.path().join("notify");
    let socket = UnixDatagram::bind(&path).expect("a socket in a new folder");
    let mut bytes = [0; 256];
    let mut next = || {
        let length = socket.recv(&mut bytes).expect("a message before the timeout");
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    };
    let server = Server::new().gated_model().env("NOTIFY_SOCKET", &path).launch();
    let gate = LoadGate::reach(&server);
    // A reload before the models are loaded is not a sign of readiness.
    server.signal(Signal::HUP);
    server.wait_for_log("SIGHUP ignored");
    socket.set_nonblocking(true).expect("a socket");
    assert!(socket.recv(&mut [0; 16]).is_err(), "a message before the models are loaded");
    socket.set_nonblocking(false).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    gate.open();
    assert_eq!(next(), "READY=1");
    assert_eq!(server.get("/v2/health/ready").status, 200);
    server.signal(Signal::HUP);
    let reload = next();
    assert!(reload.starts_with("RELOADING=1\nMONOTONIC_USEC="), "{reload}");
    assert_eq!(next(), "READY=1");
    server.signal(Signal::TERM);
    assert_eq!(next(), "STOPPING=1");
    assert_eq!(server.wait().code(), 0);
}
