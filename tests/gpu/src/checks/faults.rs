//! A kernel that faults: its requests fail with a reason, its model is not ready, models on the CPU
//! go on, and an isolated model serves again in a new process.

use crate::Options;
use crate::cuda::Driver;
use crate::report::{CheckResult, Outcome};
use crate::tensors::{binary, check};
use crate::{install, models};
use trtserver_tests::Running;

pub fn run(_: &Driver, _: &Options) -> CheckResult {
    let group = "kind: KIND_GPU gpus: 0";
    let fault = [("fault", "1")];
    let isolated = [("fault", "1"), ("isolation", "process")];
    let server = install::server()
        .model("beside", models::add("beside", "kind: KIND_CPU", &[]))
        .model("isolated", models::add("isolated", group, &isolated))
        .model("local", models::add("local", group, &fault))
        .start();
    let first = failure(&server, "isolated")?;
    server.wait_for_log_with(&["isolated", "restart"]);
    server.poll_until("the isolated model is ready again", |server| {
        server.get("/v2/models/isolated/ready").status == 200
    });
    beside(&server)?;
    let reason = failure(&server, "local")?;
    server.poll_until("the model of the lost device is not ready", |server| {
        server.get("/v2/models/local/ready").status != 200
    });
    failure(&server, "local")?;
    beside(&server)?;
    Ok(Outcome::Pass(format!("local: {reason}; isolated: {first}")))
}

/// The error of a request whose kernel faults.
fn failure(server: &Running, model: &str) -> Result<String, String> {
    let response = server.send(binary(model, 4));
    match response.status {
        200 => Err(format!("a request to '{model}' succeeded although its kernel faults")),
        status => Ok(format!("{status} {}", response.text())),
    }
}

fn beside(server: &Running) -> Result<(), String> {
    let response = server.send(binary("beside", 4));
    check(&response, 4).map_err(|e| format!("a model on the CPU, after the fault: {e}"))
}
