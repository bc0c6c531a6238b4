//! Models of Triton's Python backend read the context of their request.

use serde_json::{Value, json};
use trtserver_tests::Server;
use trtserver_tests::triton::Triton;

const CONFIG: &str = "backend: \"python\"\nmax_batch_size: 0\n\
    input [ { name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
    output [ { name: \"CONTEXT\" data_type: TYPE_STRING dims: [ 1 ] } ]\n";

const MODEL: &str = r#"
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def execute(self, requests):
        def answer(request):
            context = str(request.trace().get_context()).encode()
            tensor = pb_utils.Tensor("CONTEXT", np.array([context], dtype=object))
            return pb_utils.InferenceResponse([tensor])
        return [answer(request) for request in requests]
"#;

#[test]
fn python_models_get_the_context() {
    let server = Server::new()
        .triton_start_line()
        .backend_dir(Triton::backends())
        .model("m", CONFIG)
        .file("m/1/model.py", MODEL)
        .flag("--trace-config=mode=triton")
        .flag("--trace-config=level=TIMESTAMPS")
        .flag("--trace-config=rate=2")
        .flag("--trace-kept=8")
        .start();
    let body = r#"{"inputs":[{"name":"INPUT0","datatype":"INT32","shape":[1],"data":[1]}]}"#;
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("00-{trace}-b7ad6b7169203331-00");
    let headers = [("traceparent", parent.as_str()), ("tracestate", "vendor=1")];
    // Every second request is traced.
    let mut contexts = (0..2).map(|_| {
        let response = server.post("/v2/models/m/infer", &headers, body);
        assert_eq!(response.status, 200, "{}", response.text());
        let context = response.json()["outputs"][0]["data"][0].clone();
        context.as_str().unwrap_or_else(|| panic!("{context}")).to_owned()
    });
    assert_eq!(contexts.next().as_deref(), Some("None"));
    let traced = contexts.next().unwrap_or_default();
    let context: Value = serde_json::from_str(&traced).unwrap_or_else(|e| panic!("{traced}: {e}"));
    assert_eq!(context["tracestate"], json!("vendor=1"));
    let own = context["traceparent"].as_str().unwrap_or_default();
    assert!(own.starts_with(&format!("00-{trace}-")) && own.ends_with("-01"), "{own}");
    assert_ne!(own[36..52], parent[36..52], "the span of the model");
    drop(contexts);
    assert!(server.stop().success());
}
