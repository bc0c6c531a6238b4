//! The install that this program lies in: `bin/trtserver-gpu-test` of it.

use std::path::PathBuf;
use trtserver_tests::Server;

/// The folder with `bin/` and `gpu-test/`; TRTSERVER_DIST names another.
///
/// # Panics
/// This program does not lie in an install.
pub fn dist() -> PathBuf {
    if let Some(dist) = std::env::var_os("TRTSERVER_DIST") {
        return dist.into();
    }
    let program =
        std::env::current_exe().unwrap_or_else(|e| panic!("no path of this program: {e}"));
    let dist = program.parent().and_then(|bin| bin.parent()).map(PathBuf::from).unwrap_or_default();
    let server = dist.join("bin/trtserver");
    assert!(
        server.is_file(),
        "no server at {}: `cargo xtask gpu-test --only-build` puts this program into target/dist",
        server.display()
    );
    dist
}

/// A server of the install, with the test backends.
pub fn server() -> Server {
    let dist = dist();
    let program = dist.join("bin/trtserver");
    Server::new().program([program]).backend_dir(dist.join("gpu-test/backends"))
}
