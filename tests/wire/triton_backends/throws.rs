//! A backend in C++ whose exceptions leave an entry point: they end the process of its model, and
//! nothing else.

use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::triton_backends::{rogues, throws};
use trtserver_tests::{Running, folder};

const MODEL: &str = "max_batch_size: 0\n\
    input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
    output [ { name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n\
    instance_group [ { kind: KIND_CPU count: 1 } ]\n";

fn infer(server: &Running, model: &str) -> trtserver_tests::Response {
    let body =
        r#"{"id":"good","inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}]}"#;
    server.post(&format!("/v2/models/{model}/infer"), &[], body)
}

#[test]
fn exceptions_end_the_process_of_the_model() {
    let (dir, good) = (folder(), rogues(&["rogue"]));
    let mut server = explicit().backend_dir(good.path()).backend_dir(dir.path());
    let cases = ["model", "instance", "execute"];
    for name in cases {
        throws(dir.path(), name, &format!("IN_{}", name.to_uppercase()));
        server = server.model(name, format!("backend: \"{name}\"\n{MODEL}"));
    }
    let server = server.model("good", format!("backend: \"rogue\"\n{MODEL}")).start();
    assert_ok(server.load("good"));
    for (name, entry) in [("model", "model_open"), ("instance", "instance_open")] {
        let says = server.load(name).error_text();
        for part in [&format!("'{name}'"), "foreign exceptions", "SIGABRT", entry] {
            assert!(says.contains(part), "{name}: no {part:?} in {says:?}");
        }
    }
    assert_ok(server.load("execute"));
    // Twice: the process is started again.
    for _ in 0..2 {
        server.poll_until("it serves", |s| s.get("/v2/models/execute/ready").status == 200);
        let response = infer(&server, "execute");
        let says = response.error_text();
        assert!(response.status >= 500, "{says}");
        for part in ["'execute'", "foreign exceptions", "SIGABRT in execute"] {
            assert!(says.contains(part), "no {part:?} in {says:?}");
        }
    }
    assert_eq!(infer(&server, "good").status, 200);
    assert!(server.stop().success());
}
