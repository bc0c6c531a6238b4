//! Model control over HTTP: load, unload and the repository index.

use crate::http1::Response;
use crate::repository::probe;
use crate::server::{Running, Server};
use serde_json::{Value, json};

pub fn explicit() -> Server {
    Server::new().flag("--model-control-mode=explicit")
}

/// The ensemble `pair`: `model` applied twice to INPUT0.
pub fn pair(model: &str) -> String {
    let step = |from: &str, to: &str| {
        format!(
            r#"{{ model_name: "{model}" model_version: -1
  input_map {{ key: "INPUT0" value: "{from}" }} output_map {{ key: "OUTPUT0" value: "{to}" }} }}"#
        )
    };
    let config = probe("pair", &[]).replace("backend: \"probe\"", "platform: \"ensemble\"");
    format!(
        "{config}ensemble_scheduling {{ step [ {}, {} ] }}",
        step("INPUT0", "between"),
        step("between", "OUTPUT0")
    )
}

pub trait Control {
    fn control(&self, model: &str, act: &str, parameters: Value) -> Response;
    fn load(&self, model: &str) -> Response;
    fn unload(&self, model: &str) -> Response;
    fn v1(&self, act: &str, model: &str) -> Response;
    /// The error message of v1, unescaped.
    fn v1_error(&self, act: &str, model: &str) -> String;
    fn index(&self) -> Value;
    /// Waits for this index: a request may be counted as in flight for a moment after its response.
    fn wait_for_index(&self, index: &Value);
    fn serves(&self, model: &str) -> bool;
}

impl Control for Running {
    fn control(&self, model: &str, act: &str, parameters: Value) -> Response {
        let body = json!({ "parameters": parameters }).to_string();
        self.post(&format!("/v2/repository/models/{model}/{act}"), &[], body)
    }

    fn load(&self, model: &str) -> Response {
        self.post(&format!("/v2/repository/models/{model}/load"), &[], "")
    }

    fn unload(&self, model: &str) -> Response {
        self.post(&format!("/v2/repository/models/{model}/unload"), &[], "")
    }

    fn v1(&self, act: &str, model: &str) -> Response {
        self.post(&format!("/api/modelcontrol/{act}/{model}"), &[], "")
    }

    fn v1_error(&self, act: &str, model: &str) -> String {
        let response = self.v1(act, model);
        assert_eq!(response.status, 400);
        response.error_text().replace("\\'", "'")
    }

    fn index(&self) -> Value {
        self.post("/v2/repository/index", &[], "").json()
    }

    fn wait_for_index(&self, index: &Value) {
        self.poll_until(&format!("the index {index}"), |s| s.index() == *index);
    }

    fn serves(&self, model: &str) -> bool {
        self.infer(model, "").status == 200
    }
}

#[track_caller]
pub fn assert_ok(response: Response) {
    assert_eq!((response.status, response.text().as_str()), (200, ""));
}

#[track_caller]
pub fn refused(response: Response, status: u16, text: &str) {
    assert_eq!((response.status, response.error_text().as_str()), (status, text));
}

pub fn unloaded(name: &str) -> Value {
    json!({"name": name, "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"})
}

pub fn ready(name: &str) -> Value {
    json!({"name": name, "version": "1", "state": "READY"})
}
