//! Client shared memory: registering, unregistering and status with the real clients of both generations.

use trtserver_tests::{Running, Server, dist, python_v1, python_v2};

/// A server that may open only what its user owns. Root may open everything, unless it is started without that capability.
fn server() -> Running {
    let server = Server::new().flag("--allow-client-shm=true");
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
    python_v1(&Server::new().start(), "v1_regions.py", &[]);
}

#[test]
fn v2_client() {
    python_v2(&server(), "v2_regions.py", &[]);
}
