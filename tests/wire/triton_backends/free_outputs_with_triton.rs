//! Outputs with another type or shape than configured: clients get what the backend sends, as they
//! do from Triton itself.

use trtserver_tests::triton::Triton;
use trtserver_tests::{Repository, Server, python_v2, python_v2_with_triton};

const MODEL: &str = include_str!("../../triton/free_outputs.py");
const SCRIPT: &str = "triton_free_outputs.py";

fn models() -> Vec<(&'static str, String)> {
    let python = |batch: u32, more: &str| {
        format!(
            "backend: \"python\"\nmax_batch_size: {batch}\n\
             input [ {{ name: \"WISH\" data_type: TYPE_STRING dims: [ 1 ] }} ]\n\
             output [ {{ name: \"OUT\" data_type: TYPE_INT32 dims: [ 2 ] }} ]\n\
             instance_group [ {{ kind: KIND_CPU count: 1 }} ]\n{more}"
        )
    };
    let ensemble = |steps: &str| {
        format!(
            "platform: \"ensemble\"\nmax_batch_size: 0\n\
             input [ {{ name: \"WISH\" data_type: TYPE_STRING dims: [ 1 ] }} ]\n\
             output [ {{ name: \"OUT\" data_type: TYPE_INT32 dims: [ 2 ] }} ]\n\
             ensemble_scheduling {{ step [ {{ model_name: \"any\" model_version: -1\n\
             input_map {{ key: \"WISH\" value: \"WISH\" }} output_map {{ key: \"OUT\" value: \"MID\" }} }}{steps} ] }}\n"
        )
    };
    let reshaped = python(0, "").replace("dims: [ 2 ]", "dims: [ 2 ] reshape { shape: [ 1, 2 ] }");
    vec![
        ("any", python(0, "")),
        (
            "batch",
            python(
                2,
                "dynamic_batching { preferred_batch_size: [ 2 ] max_queue_delay_microseconds: 60000000 }\n",
            ),
        ),
        ("rows", python(4, "")),
        ("stream", python(0, "model_transaction_policy { decoupled: true }\n")),
        ("reshaped", reshaped),
        ("passed", ensemble("").replace("MID", "OUT")),
        (
            "chain",
            ensemble(
                ", { model_name: \"reader\" model_version: -1\n\
                 input_map { key: \"IN\" value: \"MID\" } output_map { key: \"OUT\" value: \"OUT\" } }",
            ),
        ),
        (
            "reader",
            "backend: \"python\"\nmax_batch_size: 0\n\
             input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n\
             output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 2 ] } ]\n\
             instance_group [ { kind: KIND_CPU count: 1 } ]\n"
                .to_owned(),
        ),
    ]
}

const READER: &str = "import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        values = [pb_utils.get_input_tensor_by_name(r, 'IN').as_numpy() for r in requests]
        return [pb_utils.InferenceResponse([pb_utils.Tensor('OUT', each)]) for each in values]
";

/// The script of a Python model.
fn script(name: &str) -> (String, &'static str) {
    (format!("{name}/1/model.py"), if name == "reader" { READER } else { MODEL })
}

#[test]
fn clients_get_what_the_backend_sends() {
    for isolation in ["process", "none"] {
        let mut server = Server::new().triton_start_line().backend_dir(Triton::backends());
        for (name, config) in models() {
            let (path, text) = script(name);
            server = server.model(name, &config).file(&path, text);
        }
        let server = server
            .flag("--allow-client-shm=true")
            .flag(format!("--backend-config=python,isolation={isolation}"))
            .start();
        python_v2(&server, SCRIPT, &["--without=impossible-shapes"]);
        assert!(server.stop().success(), "{isolation}");
    }
}

#[test]
fn clients_get_it_from_triton() {
    let repository = Repository::new();
    for (name, config) in models() {
        repository.model(name, &config);
        let (path, text) = script(name);
        repository.file(path, text);
    }
    let triton = Triton::start(repository.path(), &Triton::backends(), &[]);
    python_v2_with_triton(&triton, SCRIPT, &[]);
}
