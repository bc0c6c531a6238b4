//! Triton's unmodified Python backend completes configurations, and what it leaves incomplete is an
//! error.

use serde_json::{Value, json};
use trtserver_tests::triton::Triton;
use trtserver_tests::{Running, Server};

/// Completes a configuration with one input and one output, a batch size and dynamic batching.
const COMPLETES: &str = r#"
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        config.set_max_batch_size(8)
        config.set_dynamic_batching()
        return config
"#;
const RAISES: &str = r#"
    @staticmethod
    def auto_complete_config(config):
        raise ValueError("no configuration today")
"#;

fn model(completion: &str) -> String {
    format!(
        r#"import triton_python_backend_utils as pb_utils


class TritonPythonModel:
{completion}
    def execute(self, requests):
        outputs = [pb_utils.get_input_tensor_by_name(request, "IN").as_numpy() + 1 for request in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", output)]) for output in outputs]
"#
    )
}

fn json_of(server: &Running, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!(response.status, 200, "{path}: {}", response.text());
    serde_json::from_slice(&response.body).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn python_models_complete_their_configuration() {
    let server = Server::new()
        .triton_start_line()
        .backend_dir(Triton::backends())
        .flag("--exit-on-error=false")
        .model("empty", "backend: \"python\"")
        .file("empty/1/model.py", model(COMPLETES))
        // Recognised by its file.
        .file("absent/1/model.py", model(COMPLETES))
        // What the configuration says and the model changes: the model decides, as in Triton.
        .model(
            "partial",
            "backend: \"python\"\nmax_batch_size: 4\n\
             input [ { name: \"IN\" data_type: TYPE_FP32 dims: [ 4 ] } ]\n",
        )
        .file("partial/1/model.py", model(COMPLETES))
        // Loads as in Triton, though requests to it cannot have tensors.
        .model("nothing", "backend: \"python\"")
        .file("nothing/1/model.py", model(""))
        .model("raises", "backend: \"python\"")
        .file("raises/1/model.py", model(RAISES))
        .start();
    for name in ["empty", "absent", "partial"] {
        let config = json_of(&server, &format!("/v2/models/{name}/config"));
        assert_eq!(config["backend"], "python", "{config}");
        assert_eq!(config["default_model_filename"], "model.py", "{config}");
        assert_eq!(config["max_batch_size"], 8, "{config}");
        assert_eq!(config["input"][0]["dims"], json!([4]), "{config}");
        assert_eq!(config["output"][0]["data_type"], "TYPE_FP32", "{config}");
        assert_eq!(config["dynamic_batching"]["preferred_batch_size"], json!([8]), "{config}");
        let tensor =
            json!({"name": "IN", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]});
        let body = json!({"inputs": [tensor]}).to_string();
        let response = server.post(&format!("/v2/models/{name}/infer"), &[], body);
        let answer: Value = serde_json::from_str(&response.text()).unwrap_or_default();
        assert_eq!(answer["outputs"][0]["data"], json!([2.0, 3.0, 4.0, 5.0]), "{answer}");
    }
    let index = server.post("/v2/repository/index", &[], "").text();
    let models: Vec<Value> = serde_json::from_str(&index).unwrap_or_default();
    let raises = models.iter().find(|model| model["name"] == "raises");
    let raises = raises.unwrap_or_else(|| panic!("no 'raises' in {index}"));
    assert_eq!(raises["state"], "UNAVAILABLE", "{raises}");
    let reason = "ValueError: no configuration today";
    assert!(raises["reason"].as_str().is_some_and(|why| why.contains(reason)), "{raises}");
    let config = json_of(&server, "/v2/models/nothing/config");
    assert_eq!((&config["input"], &config["output"]), (&json!([]), &json!([])), "{config}");
    assert_eq!(server.get("/v2/models/nothing/ready").status, 200);
    let text = "model 'nothing': the configuration has neither inputs nor outputs";
    assert!(server.log().contains(text), "{}", server.log());
    assert!(server.stop().success());
}
