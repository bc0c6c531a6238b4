//! Isolated models: executed in child processes.

mod failures;
mod logging;
mod requests;
mod sequences;
mod shutdown;

use std::fs;
use std::sync::LazyLock;
use trtserver_tests::isolated::{isolated, processes};
use trtserver_tests::{Running, Server, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    Server::new()
        .model("local", probe("local", &[]))
        .model("isolated", isolated("isolated", &[]))
        .model("mortal", isolated("mortal", &[]))
        .start_shared()
});

/// Open files, shared mappings, children and threads of the server.
fn resources(server: &Running) -> [usize; 4] {
    let proc = format!("/proc/{}", server.process().pid().as_raw_nonzero());
    let count = |dir: &str| fs::read_dir(format!("{proc}/{dir}")).map_or(0, Iterator::count);
    let maps = fs::read_to_string(format!("{proc}/maps")).unwrap_or_default();
    let shared = maps.lines().filter(|line| line.contains("memfd:")).count();
    [count("fd"), shared, processes(server, "").len(), count("task")]
}
