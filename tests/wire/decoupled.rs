//! Decoupled models: many responses on gRPC streams, refused on unary endpoints.

use trtserver_tests::{Server, probe, python_v2};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";

/// Other buckets for the time to the first response.
const BUCKETS: &str = "model_metrics { metric_control { metric_identifier { \
    family: \"nv_inference_first_response_histogram_ms\" } histogram_options { buckets: [ 1, 60000 ] } } }\n";

#[test]
fn decoupled_models() {
    let decoupled = |name: &str| probe(name, &[]) + DECOUPLED;
    let server = Server::new()
        .model("many", decoupled("many"))
        .model("counted", decoupled("counted") + BUCKETS)
        .model("ordered", decoupled("ordered") + "dynamic_batching { preserve_ordering: true }\n")
        .model("warm", decoupled("warm") + "model_warmup { name: \"w\" batch_size: 1 inputs { key: \"INPUT0\" \
            value { data_type: TYPE_FP32 dims: 2 zero_data: true } } }\nparameters { key: \"responses\" value \
            { string_value: \"3\" } }\n")
        .model("one", probe("one", &[]))
        .start();
    python_v2(&server, "v2_decoupled.py", &[]);
    // v1 has no decoupled models.
    let header = "batch_size: 1 input { name: \"INPUT0\" dims: 2 } output { name: \"OUTPUT0\" }";
    let response = server.post("/api/infer/many", &[("NV-InferRequest", header)], [0; 8]);
    let status = response.header("nv-status").unwrap_or_default().replace("\\'", "'");
    let why = "model 'many' is decoupled and may send any number of responses, this protocol supports exactly one";
    assert!(status.contains("UNSUPPORTED") && status.contains(why), "{status}");
    let config = server.get("/v2/models/many/config").text();
    assert!(config.contains(r#""model_transaction_policy":{"decoupled":true}"#), "{config}");
    assert!(server.stop().success());
}
