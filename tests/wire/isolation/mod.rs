//! Isolated models: executed in child processes.

mod failures;
mod requests;
mod sequences;
mod shutdown;

use std::sync::LazyLock;
use trtserver_tests::isolated::isolated;
use trtserver_tests::{Running, Server, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    Server::new()
        .model("within", probe("within", &[]))
        .model("apart", isolated("apart", &[]))
        .model("mortal", isolated("mortal", &[]))
        .start_shared()
});
