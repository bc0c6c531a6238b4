//! The same repository here and in Triton's own server: configurations and metadata of the models
//! are equal, except for what is listed here with its reason.

use serde_json::{Map, Value};
use trtserver_tests::triton::Triton;
use trtserver_tests::{Repository, Response, Running, Server};

const MODELS: &str = "tests/triton/models";

/// Configurations beyond those of tests/triton/models.
const MORE: [(&str, &str); 3] = [
    ("completed", "backend: \"python\"\n"),
    (
        "batching",
        "backend: \"python\"\nmax_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 100 }\n",
    ),
    (
        "sequences",
        "backend: \"python\"\nmax_batch_size: 4\nsequence_batching { max_sequence_idle_microseconds: 5000000 control_input [ {\n\
         name: \"START\" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ 0, 1 ] } ] } ] }\n",
    ),
];
const SCRIPT: &str = r#"import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [4]})
        config.add_input({"name": "MAYBE", "data_type": "TYPE_STRING", "dims": [-1], "optional": True})
        config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [4]})
        if config.as_dict()["max_batch_size"] == 0:
            config.set_max_batch_size(8)
            config.set_dynamic_batching()
        return config

    def execute(self, requests):
        return [pb_utils.InferenceResponse([]) for _ in requests]
"#;

/// Known differences: path, and why.
const KNOWN: [(&str, &str); 1] =
    [(".default_model_filename", "Triton fills in model.py; here a backend finds its own file")];

fn names() -> Vec<String> {
    let folder = trtserver_tests::root().join(MODELS);
    let entries =
        std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> =
        names.chain(MORE.iter().map(|(name, _)| (*name).to_owned())).collect();
    names.sort();
    names
}

#[track_caller]
fn object(response: &Response) -> Map<String, Value> {
    assert_eq!(response.status, 200, "{}", response.text());
    match response.json() {
        Value::Object(object) => object,
        other => panic!("{other}"),
    }
}

/// Paths at which two values differ, with both values.
fn differences(path: &str, ours: &Value, theirs: &Value, found: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (ours, theirs) = (a.get(key), b.get(key));
                let null = Value::Null;
                let path = format!("{path}.{key}");
                differences(&path, ours.unwrap_or(&null), theirs.unwrap_or(&null), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (ours, theirs)) in a.iter().zip(b).enumerate() {
                differences(&format!("{path}[{i}]"), ours, theirs, found);
            }
        }
        _ if ours == theirs => {}
        _ => found.push(format!("{path}: {ours} here, {theirs} in Triton")),
    }
}

fn compare(server: &Running, triton: &Triton, path: &str, found: &mut Vec<String>) {
    let (ours, theirs) = (object(&server.get(path)), object(&triton.get(path)));
    let mut new = Vec::new();
    differences("", &ours.into(), &theirs.into(), &mut new);
    let is_known = |difference: &String| {
        KNOWN.iter().any(|(known, _)| difference.starts_with(&format!("{known}: ")))
    };
    new.retain(|difference| !is_known(difference));
    found.extend(new.into_iter().map(|difference| format!("{path} {difference}")));
}

#[test]
fn configurations_and_metadata_are_equal() {
    let models = Repository::new();
    models.copy_all(MODELS.as_ref());
    let mut server =
        Server::new().triton_start_line().backend_dir(Triton::backends()).copy_models(MODELS);
    for (name, config) in MORE {
        models.model(name, config);
        models.file(format!("{name}/1/model.py"), SCRIPT);
        server = server.model(name, config).file(&format!("{name}/1/model.py"), SCRIPT);
    }
    let triton = Triton::start(models.path(), &Triton::backends(), &[]);
    let server = server.start();
    let mut found = Vec::new();
    for name in names() {
        compare(&server, &triton, &format!("/v2/models/{name}"), &mut found);
        compare(&server, &triton, &format!("/v2/models/{name}/config"), &mut found);
    }
    assert_eq!(found, [""; 0]);
    assert!(server.stop().success());
}
