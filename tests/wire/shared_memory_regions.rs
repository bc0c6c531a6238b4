//! Client shared memory: registering, unregistering and status with the real clients of both
//! generations.

use trtserver_tests::{Running, Server, Signal, dist, python_v1, python_v2};

/// A server without GPUs, whose answers the scripts expect on every machine.
fn without_gpus() -> Server {
    Server::new().env("TRITON_SERVER_CPU_ONLY", "1")
}

/// A server that may open only what its user owns. Root may open everything, unless it is started
/// without that capability.
fn server() -> Running {
    let server = without_gpus().flag("--allow-client-shm=true");
    if !rustix::process::getuid().is_root() {
        return server.start();
    }
    let program = dist().join("bin/trtserver").into_os_string();
    let without = "--bounding-set=-dac_override,-dac_read_search";
    server.program(["setpriv".into(), without.into(), program]).start()
}

#[test]
fn v1_client() {
    // v1 needs no flag.
    python_v1(&without_gpus().start(), "v1_regions.py", &[]);
}

#[test]
fn v2_client() {
    python_v2(&server(), "v2_regions.py", &[]);
}

/// The first region installs a handler of SIGBUS before that of the crash report.
#[test]
fn sigbus_outside_of_regions_is_reported_as_a_crash() {
    let server = Server::new().flag("--allow-client-shm=true").start();
    let file = tempfile::Builder::new().prefix("trtserver-test-").tempfile_in("/dev/shm").unwrap();
    file.as_file().set_len(64).unwrap();
    let key = file.path().file_name().unwrap().display();
    let body = format!(r#"{{"key":"{key}","byte_size":64}}"#);
    let response = server.post("/v2/systemsharedmemory/region/r/register", &[], body);
    assert_eq!(response.status, 200, "{}", response.text());
    server.signal(Signal::BUS);
    let ended = server.wait();
    assert_eq!(ended.code(), -7, "{}", ended.stderr);
    let report = "crash: SIGBUS outside of calls of backends";
    assert!(ended.stderr.contains(report), "{}", ended.stderr);
}
