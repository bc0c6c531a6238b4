//! TensorFlow models that cannot be loaded: each fails with an error that names the file or tensor
//! and both sides, and the other models of the server are served.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use serde_json::Value;
use std::fs::{self, File};
use std::path::Path;
use trtserver_tests::tensorflow_files::{
    Node, call, entry, field, library, meta_graph, node, number, placeholder, shape, tensor_info,
    typed, versions,
};
use trtserver_tests::{Running, Server, compile_c, dist, folder, root};

const GRAPH_DEF: &str = "tensorflow_graphdef";
const SAVED_MODEL: &str = "tensorflow_savedmodel";

const FLOAT: i64 = 1;
const TEXT: i64 = 7;
const COMPLEX: i64 = 8;

/// A model whose load fails.
struct Bad {
    name: &'static str,
    platform: &'static str,
    /// Inputs and outputs of the configuration; further fields.
    config: String,
    /// Contents of `model.graphdef` or of `saved_model.pb`.
    file: Vec<u8>,
    /// Parts of the error.
    error: &'static [&'static str],
}

/// Tensors of a configuration: `x FP32 [ -1 ]`.
fn tensors(field: &str, all: &[&str]) -> String {
    all.iter()
        .map(|tensor| {
            let mut words = tensor.splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (name, kind, dims) = (word(), word(), word());
            format!("{field} {{ name: \"{name}\" data_type: TYPE_{kind} dims: {dims} }}\n")
        })
        .collect()
}

fn config(inputs: &[&str], outputs: &[&str]) -> String {
    tensors("input", inputs) + &tensors("output", outputs)
}

/// `y` = the identity of `x`.
fn identity() -> String {
    config(&["x FP32 [ -1 ]"], &["y FP32 [ -1 ]"])
}

fn graph_def(
    name: &'static str,
    config: String,
    parts: &[Vec<u8>],
    error: &'static [&'static str],
) -> Bad {
    let file = [parts.concat(), versions()].concat();
    Bad { name, platform: GRAPH_DEF, config, file, error }
}

fn saved_model(
    name: &'static str,
    config: String,
    file: Vec<u8>,
    error: &'static [&'static str],
) -> Bad {
    Bad { name, platform: SAVED_MODEL, config, file, error }
}

/// Graph `y` = identity of `x` with a signature of these names for input and output.
fn signed(tag: &str, signature: &str, tensors: [&str; 2]) -> Vec<u8> {
    let info = |name| tensor_info(name, FLOAT, Some(&[-1]));
    let message = [entry(1, "x", info(tensors[0])), entry(2, "y", info(tensors[1]))].concat();
    let graph =
        [placeholder("a", FLOAT, Some(&[-1])), typed("b", "Identity", &["a"], FLOAT), versions()];
    let tags = field(1, field(4, tag));
    let signature = entry(5, signature, message);
    field(2, [tags, field(2, graph.concat()), signature].concat())
}

fn graph_defs() -> Vec<Bad> {
    let x = || placeholder("x", FLOAT, Some(&[-1]));
    let y = || typed("y", "Identity", &["x"], FLOAT);
    let pair = [x(), y()];
    let truncated = pair.concat();
    let git_lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\n".to_vec();
    let own = library(&[("f", &["g"]), ("g", &["f"])]);
    vec![
        Bad {
            file: truncated[..truncated.len() - 3].to_vec(),
            ..graph_def(
                "truncated",
                identity(),
                &[],
                &[
                    "unable to load model 'truncated' from ",
                    "/truncated/1/model.graphdef: not a GraphDef: truncated message",
                ],
            )
        },
        Bad {
            file: git_lfs,
            ..graph_def(
                "no_graph",
                identity(),
                &[],
                &["/no_graph/1/model.graphdef: not a GraphDef: "],
            )
        },
        Bad {
            file: Vec::new(),
            ..graph_def(
                "empty",
                identity(),
                &[],
                &["/empty/1/model.graphdef: model empty has an empty network"],
            )
        },
        graph_def(
            "wrong_input",
            config(&["X FP32 [ -1 ]"], &["y FP32 [ -1 ]"]),
            &pair,
            &["unexpected inference input 'X', allowed inputs are: x; similar names: x"],
        ),
        graph_def(
            "wrong_output",
            config(&["x FP32 [ -1 ]"], &["z/y FP32 [ -1 ]"]),
            &pair,
            &["unexpected inference output 'z/y', allowed outputs are: y", "similar names: y"],
        ),
        graph_def(
            "wrong_index",
            config(&["x FP32 [ -1 ]"], &["y:1 FP32 [ -1 ]"]),
            &pair,
            &[
                "unable to load model 'wrong_index' from ",
                "/wrong_index/1/model.graphdef: the graph has no tensor 'y:1' for output 'y:1'",
            ],
        ),
        graph_def(
            "surplus_input",
            config(&["x FP32 [ -1 ]", "w FP32 [ -1 ]"], &["y FP32 [ -1 ]"]),
            &pair,
            &["configuration expects 2 inputs, model provides at most 1; allowed inputs are: x"],
        ),
        graph_def(
            "missing_input",
            identity(),
            &[x(), placeholder("w", FLOAT, None), typed("y", "AddV2", &["x", "w"], FLOAT)],
            &["model provides at most 2; output 'y' needs inputs that are not configured: w"],
        ),
        graph_def(
            "wrong_type",
            config(&["x FP32 [ -1 ]"], &["y INT32 [ -1 ]"]),
            &pair,
            &[
                "unable to load model 'wrong_type', configuration expects datatype TYPE_INT32 for output 'y', \
                 model provides TYPE_FP32",
            ],
        ),
        graph_def(
            "text_for_number",
            config(&["x FP32 [ -1 ]"], &["y STRING [ -1 ]"]),
            &[placeholder("x", TEXT, Some(&[-1])), typed("y", "Identity", &["x"], TEXT)],
            &["configuration expects datatype TYPE_FP32 for input 'x', model provides TYPE_STRING"],
        ),
        graph_def(
            "complex",
            identity(),
            &[placeholder("x", COMPLEX, Some(&[-1])), typed("y", "Identity", &["x"], COMPLEX)],
            &["configuration expects datatype TYPE_FP32 for input 'x', model provides complex64"],
        ),
        graph_def(
            "unknown_operation",
            identity(),
            &[x(), node("y", "NoSuchOp", &["x"])],
            &[
                "unable to load model 'unknown_operation' from ",
                "/unknown_operation/1/model.graphdef: ",
                "NoSuchOp",
            ],
        ),
        graph_def(
            "no_kernel",
            identity(),
            &[x(), no_kernel()],
            &[
                "unable to load model 'no_kernel' from ",
                "/no_kernel/1/model.graphdef: ",
                "has no kernel for operation 'y' of type 'NcclBroadcast' on CPU",
            ],
        ),
        graph_def(
            "cycle",
            identity(),
            &[x(), typed("y", "Identity", &["z"], FLOAT), typed("z", "Identity", &["y"], FLOAT)],
            &["/cycle/1/model.graphdef: ", "cycle"],
        ),
        graph_def(
            "function_cycle",
            identity(),
            &[x(), call(1, "y", "f"), own],
            &["/function_cycle/1/model.graphdef: cyclic function library: f -> g -> f"],
        ),
    ]
}

/// An operation `y` that TensorFlow knows and that needs a GPU.
fn no_kernel() -> Vec<u8> {
    let attributes =
        [entry(5, "T", number(6, FLOAT)), entry(5, "shape", field(7, shape(Some(&[2]))))];
    let attributes = attributes.concat();
    Node { name: "y", kind: "NcclBroadcast", inputs: &["x"], attributes }.encode(1)
}

fn saved_models() -> Vec<Bad> {
    let good = || signed("serve", "serving_default", ["a:0", "b:0"]);
    let two = meta_graph(&["serve"], &versions(), &["first", "second"]);
    let parameter = "parameters { key: \"TF_SIGNATURE_DEF\" value { string_value: \"absent\" } }\n";
    let own = [call(1, "x", "f"), library(&[("f", &["f"])]), versions()].concat();
    let truncated = good();
    vec![
        saved_model(
            "truncated_model",
            identity(),
            truncated[..truncated.len() - 9].to_vec(),
            &[
                "unable to load model 'truncated_model' from ",
                "/1/model.savedmodel/saved_model.pb: not a SavedModel: truncated message",
            ],
        ),
        saved_model(
            "no_tag",
            identity(),
            signed("train", "serving_default", ["a:0", "b:0"]),
            &[
                "unable to load model 'no_tag', expected 'serve' tag; ",
                "/1/model.savedmodel/saved_model.pb has graphs with the tags 'train'",
                "TF_GRAPH_TAG",
            ],
        ),
        saved_model(
            "two_of_them",
            identity(),
            two,
            &[
                "unable to load model 'two_of_them', expected 'serving_default' signature; ",
                "has the signatures 'first', 'second'",
                "TF_SIGNATURE_DEF",
            ],
        ),
        saved_model(
            "no_such_signature",
            format!("{}{parameter}", identity()),
            good(),
            &[
                "unable to load model 'no_such_signature', expected 'absent' signature; ",
                "has the signatures 'serving_default'",
            ],
        ),
        saved_model(
            "wrong_tensor",
            identity(),
            signed("serve", "s", ["a:0", "nowhere:0"]),
            &[
                "unable to load model 'wrong_tensor' from ",
                "the graph has no tensor 'nowhere:0' for output 'y'",
            ],
        ),
        saved_model(
            "surplus",
            config(&["x FP32 [ -1 ]", "w FP32 [ 1 ]"], &["y FP32 [ -1 ]"]),
            good(),
            &["unable to load model 'surplus', configuration expects 2 inputs, model provides 1"],
        ),
        saved_model(
            "wrong_dims",
            config(&["x FP32 [ 2, 3 ]"], &["y FP32 [ -1 ]"]),
            good(),
            &[
                "unable to load model 'wrong_dims', input 'x' dims [-1] don't match configuration dims [2,3]",
            ],
        ),
        saved_model(
            "function_calls_itself",
            identity(),
            meta_graph(&["serve"], &own, &["serving_default"]),
            &["saved_model.pb: cyclic function library: f -> f"],
        ),
    ]
}

impl Bad {
    fn add(&self, server: Server) -> Server {
        let Bad { name, platform, config, .. } = self;
        let file = if *platform == GRAPH_DEF {
            "model.graphdef"
        } else {
            "model.savedmodel/saved_model.pb"
        };
        server
            .model(name, format!("name: \"{name}\"\nplatform: \"{platform}\"\n{config}"))
            .file(&format!("{name}/1/{file}"), &self.file)
    }

    fn check(&self, index: &Value) {
        let reason = reason(index, self.name);
        for part in self.error {
            assert!(reason.contains(part), "model '{}': no {part:?} in {reason}", self.name);
        }
    }
}

/// Why a model is not served.
fn reason(index: &Value, model: &str) -> String {
    let entry = index.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == model));
    let entry = entry.unwrap_or_else(|| panic!("no '{model}' in {index}"));
    assert_eq!(entry["state"], "UNAVAILABLE", "{entry}");
    entry["reason"].as_str().unwrap_or_default().to_owned()
}

fn index(server: &Running) -> Value {
    server.post("/v2/repository/index", &[], "").json()
}

/// A server that starts in spite of models that fail; `good` is a TensorFlow model, `identity_fp32`
/// is not.
fn server() -> Server {
    let graph = fs::read(root().join("tests/models/graphdef/addsub_fp32/1/model.graphdef"));
    Server::new()
        .flag("--exit-on-error=false")
        .flag("--strict-readiness=false")
        .copy_model("tests/models/identity_fp32")
        .copy_model("tests/models/graphdef/addsub_fp32")
        .file("addsub_fp32/1/model.graphdef", graph.expect("a committed model"))
}

fn serves_the_others(server: &Running) {
    assert_eq!(server.infer("identity_fp32", "").status, 200);
    let values = vec!["1"; 16].join(",");
    let input =
        |name| format!(r#"{{"name":"{name}","datatype":"FP32","shape":[1,16],"data":[{values}]}}"#);
    let body = format!(r#"{{"inputs":[{},{}]}}"#, input("INPUT0"), input("INPUT1"));
    let response = server.post("/v2/models/addsub_fp32/infer", &[], body);
    assert_eq!((response.status, &response.json()["outputs"][0]["data"][0]), (200, &2.0.into()));
}

#[test]
fn models_that_cannot_be_loaded_are_named_with_both_sides() {
    let bad: Vec<Bad> = graph_defs().into_iter().chain(saved_models()).collect();
    let mut server = server();
    for model in &bad {
        server = model.add(server);
    }
    let server = server.start();
    let index = index(&server);
    for model in &bad {
        model.check(&index);
    }
    serves_the_others(&server);
    assert!(server.stop().success());
}

#[test]
fn files_that_are_missing_or_too_large_are_named() {
    let platform = |name: &str, platform| {
        format!("name: \"{name}\"\nplatform: \"{platform}\"\n{}", identity())
    };
    let server = server()
        .model("no_file", platform("no_file", GRAPH_DEF))
        .model("no_directory", platform("no_directory", SAVED_MODEL))
        .model("no_saved_model", platform("no_saved_model", SAVED_MODEL))
        .file("no_saved_model/1/model.savedmodel/other.txt", "")
        .model("large", platform("large", GRAPH_DEF))
        .copy_model("tests/models/tensorflow/scale")
        .copy_model("tests/models/tensorflow/table");
    // No disk space is used: the file is sparse.
    let large = File::create(server.models().join("large/1/model.graphdef")).expect("a file");
    large.set_len(1 << 31).expect("a sparse file");
    let variables = server.models().join("scale/1/model.savedmodel/variables/variables.index");
    fs::remove_file(variables).expect("the variables of the model");
    let asset = server.models().join("table/1/model.savedmodel/assets/words.txt");
    fs::remove_file(asset).expect("the asset of the model");
    let server = server.start();
    let index = index(&server);
    for (model, parts) in [
        (
            "no_file",
            ["unable to find model 'model.graphdef' for no_file", "/no_file/1/model.graphdef"],
        ),
        (
            "no_directory",
            ["unable to find model 'model.savedmodel' for no_directory", "savedmodel"],
        ),
        (
            "no_saved_model",
            ["unable to find model 'model.savedmodel' for no_saved_model", "saved_model.pb"],
        ),
        ("large", ["/large/1/model.graphdef has 2147483648 bytes, the limit", "2147483647"]),
        ("scale", ["the graph has variables, but there is no file ", "/variables/variables.index"]),
        ("table", ["unable to load model 'table' from ", "assets/words.txt; No such file"]),
    ] {
        let reason = reason(&index, model);
        assert!(parts.iter().all(|part| reason.contains(part)), "model '{model}': {reason}");
    }
    serves_the_others(&server);
    assert!(server.stop().success());
}

/// The error of a model on a server with this library; other models are served.
fn with_library(library: &Path) -> String {
    let setting = format!("--backend-config=tensorflow,library={}", library.display());
    let server = server().flag(setting).start();
    let reason = reason(&index(&server), "addsub_fp32");
    assert_eq!(server.infer("identity_fp32", "").status, 200);
    assert!(server.stop().success());
    let named = format!("TensorFlow library '{}' (named by", library.display());
    for part in [&named, "cannot be used: ", "cargo xtask runtimes --tensorflow"] {
        assert!(reason.contains(part), "no {part:?} in {reason}");
    }
    reason
}

#[test]
fn libraries_that_cannot_be_used_are_named_with_the_reason() {
    let dir = folder();
    let text = dir.path().join("libtensorflow.so");
    fs::write(&text, "not a library").expect("a file");
    let absent = dir.path().join("absent.so");
    let old = dir.path().join("old.c");
    fs::write(&old, "const char *TF_Version(void) { return \"1.2.0\"; }").expect("a file");
    for (library, reason) in [
        (text, "libtensorflow.so: "),
        (absent, "No such file or directory"),
        (dist().join("lib/libonnxruntime.so.1"), "TF_Version"),
        (
            compile_c(&old.to_string_lossy(), dir.path(), "old"),
            "it is TensorFlow 1.2.0, which lacks",
        ),
    ] {
        let error = with_library(&library);
        assert!(error.contains(reason), "no {reason:?} in {error}");
    }
}
