//! The clients of KServe and MLServer, unmodified.

use trtserver_tests::{Server, probe, python_kserve};

#[test]
fn kserve_client() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("broken", probe("broken", &[("fail_in", "model_open")]))
        .flag("--exit-on-error=false")
        .start();
    python_kserve(&server, "kserve_client.py", &[]);
}

#[test]
fn mlserver_client() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .flag("--model-control-mode=explicit")
        .flag("--load-model=*")
        .start();
    python_kserve(&server, "mlserver_client.py", &[]);
}
