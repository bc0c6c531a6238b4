//! The clients of this repository, against the real server.

mod bad_servers;
mod c;
mod core;
mod perf;
mod programs;
mod python;
mod requests;
mod scripted;
mod tls;

use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Server, every_model, probe};

/// Models of every kind, with model control and shared memory.
fn server() -> Server {
    let controls = [flag("START", "int32"), correlation("UINT64")];
    let scheduling = sequences(NEVER, "oldest { }", &controls);
    let decoupled = probe("many", &[]) + "model_transaction_policy { decoupled: true }\n";
    every_model()
        .model("sums", accumulator("sums", 4, "corrid", &scheduling))
        .model("many", decoupled)
        .model("endless", probe("endless", &[("until_cancelled", "true"), ("responses", "0")]))
        .flag("--allow-client-shm=true")
        .flag("--model-control-mode=explicit")
        .flag("--load-model=*")
}
