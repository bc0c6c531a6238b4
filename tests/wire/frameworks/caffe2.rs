//! Caffe2 models: in the server's process, in one of their own, and files that cannot be served.

#![allow(clippy::expect_used)] // `append` is a part of tests

use std::fs;
use std::io::Write;
use trtserver_tests::grpc::field;
use trtserver_tests::isolated::process;
use trtserver_tests::{Running, Server, root};

const MODEL: &str = "tests/models/netdef/addsub_fp32";

/// Appends to a file of the repository.
fn append(server: &Server, path: &str, text: &str) {
    let file = fs::OpenOptions::new().append(true).open(server.models().join(path));
    file.and_then(|mut file| file.write_all(text.as_bytes())).expect("a file of the repository");
}

/// Copies of the model under other names.
fn copies(mut server: Server, names: &[&str]) -> Server {
    let config = fs::read_to_string(root().join(MODEL).join("config.pbtxt")).expect("a model");
    for name in names {
        server = server.model(name, config.replace("\"addsub_fp32\"", &format!("\"{name}\"")));
        for file in ["init_model.netdef", "model.netdef"] {
            let contents = fs::read(root().join(MODEL).join("1").join(file)).expect("a model");
            server = server.file(&format!("{name}/1/{file}"), contents);
        }
    }
    server
}

fn adds(server: &Running, model: &str) {
    let body = serde_json::json!({
        "inputs": [
            { "name": "INPUT0", "datatype": "FP32", "shape": [1, 16], "data": vec![3; 16] },
            { "name": "INPUT1", "datatype": "FP32", "shape": [1, 16], "data": vec![2; 16] },
        ],
        "outputs": [{ "name": "OUTPUT0" }],
    });
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string());
    assert_eq!(response.json()["outputs"][0]["data"][15], 5.0, "{}", response.text());
}

/// Caffe2 has no unsigned integers of 32 bits and more; its models have no strings.
#[test]
fn serves_the_model_family() {
    super::serves_the_family("netdef", &["uint32", "uint64", "string", "bf16", "nonzero"], &[]);
}

#[test]
fn model_in_a_process_of_its_own() {
    let server = copies(Server::new().copy_model(MODEL), &["isolated"]);
    let isolation = "parameters { key: \"isolation\" value { string_value: \"process\" } }\n";
    append(&server, "isolated/config.pbtxt", isolation);
    let server = server.start();
    adds(&server, "addsub_fp32");
    adds(&server, "isolated");
    assert!(process(&server, "isolated").as_raw_nonzero().get() > 0);
    assert!(server.stop().success());
}

#[test]
fn platform_and_outputs_are_completed() {
    let config = r#"
        max_batch_size: 8
        input { name: "INPUT0" data_type: TYPE_FP32 dims: 16 }
        input { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }
    "#;
    let server = copies(Server::new(), &["detected"]).model("detected", config);
    let server = server.flag("--strict-model-config=false").start();
    adds(&server, "detected");
    let config = server.get("/v2/models/detected/config").json();
    assert_eq!(config["platform"], "caffe2_netdef", "{config}");
    assert_eq!(config["output"][0]["name"], "OUTPUT0", "{config}");
    assert_eq!(config["output"][1]["dims"], serde_json::json!([16]), "{config}");
    assert!(server.stop().success());
}

/// The text of a net that adds its inputs and lists no `external_output`, as old exporters write it.
#[test]
fn net_without_external_output_is_served() {
    let net = r#"
        op { input: "INPUT0" input: "INPUT1" output: "OUTPUT1" type: "Sub" }
        op { input: "INPUT0" input: "INPUT1" output: "OUTPUT0" type: "Add" }
        external_input: "INPUT0" external_input: "INPUT1"
    "#;
    let inputs = r#"
        max_batch_size: 8
        input { name: "INPUT0" data_type: TYPE_FP32 dims: 16 }
        input { name: "INPUT1" data_type: TYPE_FP32 dims: 16 }
    "#;
    let server = copies(Server::new(), &["configured", "completed"])
        .file("configured/1/model.netdef", net)
        .file("completed/1/model.netdef", net)
        .model("completed", inputs)
        .flag("--strict-model-config=false")
        .start();
    for (name, outputs) in [("configured", 2), ("completed", 1)] {
        adds(&server, name);
        let config = server.get(&format!("/v2/models/{name}/config")).json();
        assert_eq!(config["output"].as_array().map(Vec::len), Some(outputs), "{config}");
    }
    assert!(server.stop().success());
}

#[test]
fn damaged_files_fail_their_model_alone() {
    let relu = |input: &str, output: &str| {
        format!("op {{ input: \"{input}\" output: \"{output}\" type: \"Relu\" }}\n")
    };
    let ends =
        "external_input: \"INPUT0\" external_input: \"INPUT1\" external_output: \"OUTPUT0\"\n";
    let cycle = [relu("b", "a"), relu("a", "b"), relu("b", "OUTPUT0"), ends.to_owned()].concat();
    let unknown = relu("INPUT0", "OUTPUT0").replace("Relu", "RoIAlign") + ends;
    let quantised = relu("INPUT0", "OUTPUT0").replace("Relu", "Int8Relu") + ends;
    let whole = fs::read(root().join(MODEL).join("1/model.netdef")).expect("a model");
    let truncated = &whole[..whole.len() - 2];
    let huge = field(2, &[field(2, b"OUTPUT0"), vec![0x2a, 0xff, 0xff, 0xff, 0xff, 0x07]].concat());

    let cases: [(&str, &[u8], &str); 5] = [
        (
            "cycle",
            cycle.as_bytes(),
            "operator 'Relu' (number 0, output 'a'): it reads blob 'b', which no operator before",
        ),
        (
            "unknown",
            unknown.as_bytes(),
            "operator 'RoIAlign' (number 0, output 'OUTPUT0'): the operator is not supported",
        ),
        (
            "quantised",
            quantised.as_bytes(),
            "operator 'Int8Relu' (number 0, output 'OUTPUT0'): quantised operators",
        ),
        ("truncated", truncated, "it is not a binary NetDef"),
        ("huge", &huge, "it is not a binary NetDef"),
    ];
    let names: Vec<&str> =
        cases.iter().map(|case| case.0).chain(["without_init", "integers"]).collect();
    let mut server = copies(Server::new().copy_model(MODEL), &names).flag("--exit-on-error=false");
    for (name, contents, _) in &cases {
        server = server.file(&format!("{name}/1/model.netdef"), contents);
    }
    fs::remove_file(server.models().join("without_init/1/init_model.netdef")).expect("a file");
    let config = server.models().join("integers/config.pbtxt");
    let text = fs::read_to_string(&config).expect("a file").replace("FP32", "UINT32");
    fs::write(config, text).expect("a file");

    let server = server.start();
    adds(&server, "addsub_fp32");
    let index = server.post("/v2/repository/index", &[], "").json();
    let reason = |name: &str| {
        let entry = index.as_array().and_then(|all| all.iter().find(|model| model["name"] == name));
        let entry = entry.unwrap_or_else(|| panic!("no {name} in {index}"));
        assert_eq!(entry["state"], "UNAVAILABLE", "{index}");
        entry["reason"].as_str().unwrap_or_default().to_owned()
    };
    for (name, _, expected) in &cases {
        let found = reason(name);
        let start = format!("unable to load model '{name}' from ");
        assert!(found.starts_with(&start) && found.contains("/1/model.netdef: "), "{found}");
        assert!(found.contains(expected), "{found}");
    }
    let expected =
        "unable to find NetDef initialization model 'init_model.netdef' for without_init";
    assert!(reason("without_init").starts_with(expected), "{}", reason("without_init"));
    let expected = "unsupported datatype TYPE_UINT32 for input 'INPUT0' for model 'integers'";
    assert_eq!(reason("integers"), expected);
    assert!(server.stop().success());
}
