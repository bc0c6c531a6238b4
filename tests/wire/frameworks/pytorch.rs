//! Packages of AOTInductor, with a fake torch: what the plugin adds to torch, and what it refuses.
//! `tests/python/torch_oracle.py` compares real packages with torch itself.

#![allow(clippy::expect_used)] // the functions here are parts of tests

use serde_json::{Value, json};
use std::fs;
use trtserver_tests::torch_packages::{FakeTorch, archive, code, package};
use trtserver_tests::{Response, Running, Server, backends, compile, dist, folder};

const CODE: &str = "p/data/aotinductor/model/c1.wrapper.cpp";

pub fn server(torch: &FakeTorch) -> Server {
    Server::new()
        .triton_start_line()
        .flag("--exit-on-error=false")
        .env("TRTSERVER_TORCH_LIBRARY", torch.library())
        .env("LD_LIBRARY_PATH", "")
}

/// An input of these rows and columns of three, counting from `first`.
pub fn input(name: &str, rows: usize, columns: usize, first: usize) -> Value {
    let count = rows * columns * 3;
    let data: Vec<usize> = (first..first + count).collect();
    json!({ "name": name, "datatype": "FP32", "shape": [rows, columns, 3], "data": data })
}

pub fn ask(server: &Running, model: &str, inputs: &[Value]) -> Response {
    let body = json!({ "inputs": inputs }).to_string();
    server.post(&format!("/v2/models/{model}/infer"), &[], body)
}

/// Data and shape of an output.
fn output<'a>(answer: &'a Value, name: &str) -> [&'a Value; 2] {
    let outputs = answer["outputs"].as_array().unwrap_or_else(|| panic!("no outputs in {answer}"));
    let found = outputs.iter().find(|output| output["name"] == name);
    let found = found.unwrap_or_else(|| panic!("no {name} in {answer}"));
    [&found["data"], &found["shape"]]
}

fn serves_packages(server: Server, torch: &FakeTorch) {
    let server = server.file("m/1/model.pt2", torch.package()).start();
    let config = server.get("/v2/models/m/config").json();
    assert_eq!(config["max_batch_size"], 4, "{config}");
    let tensors = |field: &str| {
        let list = config[field].as_array().expect("tensors");
        list.iter()
            .map(|one| json!([one["name"], one["data_type"], one["dims"]]))
            .collect::<Vec<_>>()
    };
    let inputs =
        [json!(["ARGS[0]", "TYPE_FP32", [-1, 3]]), json!(["KWARGS[bias]", "TYPE_FP32", [-1, 3]])];
    assert_eq!(tensors("input"), inputs);
    let outputs = [
        json!(["RESULT[total]", "TYPE_FP32", [-1, 3]]),
        json!(["RESULT[turned]", "TYPE_FP32", [3, -1]]),
        json!(["RESULT[same]", "TYPE_FP32", [-1, 3]]),
    ];
    assert_eq!(tensors("output"), outputs);

    let pair = [input("ARGS[0]", 1, 2, 0), input("KWARGS[bias]", 1, 2, 10)];
    // Twice: the model writes to its second input.
    for _ in 0..2 {
        let answer = ask(&server, "m", &pair).json();
        let total = json!([10.0, 12.0, 14.0, 16.0, 18.0, 20.0]);
        assert_eq!(output(&answer, "RESULT[total]"), [&total, &json!([1, 2, 3])]);
        let turned = json!([0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);
        assert_eq!(output(&answer, "RESULT[turned]"), [&turned, &json!([1, 3, 2])]);
        let same = json!([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(output(&answer, "RESULT[same]"), [&same, &json!([1, 2, 3])]);
    }
    // A client of v1.
    let header = "batch_size: 1 input { name: \"ARGS[0]\" dims: 2 dims: 3 } \
                  input { name: \"KWARGS[bias]\" dims: 2 dims: 3 } output { name: \"RESULT[total]\" }";
    let floats = |values: [f32; 6]| values.map(f32::to_le_bytes).concat();
    let raw = [floats([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), floats([1.0; 6])].concat();
    let v1 = server.post("/api/infer/m", &[("NV-InferRequest", header)], raw);
    assert_eq!(v1.status, 200, "{}", v1.error_text());
    assert!(v1.body.starts_with(&floats([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])), "{:?}", v1.body);
    // What the compiled model would read beyond its input.
    let shorter = [input("ARGS[0]", 1, 5, 0), input("KWARGS[bias]", 1, 4, 0)];
    let longest = [input("ARGS[0]", 1, 101, 0), input("KWARGS[bias]", 1, 101, 0)];
    for (inputs, part) in [
        (&shorter, "dimension 1 of input 'KWARGS[bias]' of shape [1,4,3] has another size than"),
        (&longest, "dimension 1 is 101, and the model was compiled for 0 to 100"),
    ] {
        let answer = ask(&server, "m", inputs);
        assert_eq!(answer.status, 400);
        assert!(answer.text().contains(part), "no {part:?} in {}", answer.text());
    }
    assert!(server.stop().success());
}

#[test]
fn packages_are_served_without_a_configuration() {
    let torch = FakeTorch::new();
    serves_packages(server(&torch), &torch);
}

#[test]
fn packages_are_served_in_a_process_of_their_own() {
    let torch = FakeTorch::new();
    serves_packages(server(&torch).flag("--backend-config=pytorch,isolation=process"), &torch);
}

/// A configuration for the fake model; `rows`: its batch.
pub fn config(head: &str, rows: u32) -> String {
    let tensor = |name: &str, dims: &str| {
        format!("{{ name: \"{name}\" data_type: TYPE_FP32 dims: [ {dims} ] }}")
    };
    format!(
        "{head} max_batch_size: {rows} input [ {}, {} ] output [ {}, {} ]",
        tensor("INPUT__0", "-1, 3"),
        tensor("INPUT__1", "-1, 3"),
        tensor("OUTPUT__0", "-1, 3"),
        tensor("OUTPUT__1", "3, -1"),
    )
}

const THREADS: &str = "parameters { key: 'INTRA_OP_THREAD_COUNT' value: { string_value: '1' } }";

#[test]
fn tensors_may_have_the_names_of_torchscript() {
    let torch = FakeTorch::new();
    let without_code = package(&torch.model(&[]), &[]);
    let server = server(&torch)
        .model("numbered", config(&format!("platform: 'torch_aoti' {THREADS}"), 8))
        .file("numbered/1/model.pt2", torch.package())
        .model("bare", config("backend: 'pytorch' default_model_filename: 'x.pt2'", 8))
        .file("bare/1/x.pt2", without_code)
        .model("large", config("backend: 'pytorch'", 9))
        .file("large/1/model.pt2", torch.package())
        .model("failing", config("backend: 'pytorch'", 8))
        .file("failing/1/model.pt2", package(&torch.model(&["-DFAILS"]), &[]))
        .start();
    for model in ["numbered", "bare"] {
        let pair = [input("INPUT__0", 2, 1, 0), input("INPUT__1", 2, 1, 1)];
        let answer = ask(&server, model, &pair).json();
        let total = json!([1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
        assert_eq!(output(&answer, "OUTPUT__0"), [&total, &json!([2, 1, 3])], "{model}");
        let turned = json!([0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(output(&answer, "OUTPUT__1"), [&turned, &json!([2, 3, 1])], "{model}");
    }
    let pair = [input("INPUT__0", 1, 1, 0), input("INPUT__1", 1, 1, 0)];
    let failed = ask(&server, "failing", &pair);
    assert!(failed.text().contains("AOTInductorModelContainerRun failed"), "{}", failed.text());
    let reason = reason(&server, "large");
    assert!(
        reason.contains("max_batch_size is 9, and the model was compiled for at most 8 rows"),
        "{reason}"
    );
    server.wait_for_log("model 'bare': the package lacks the generated code");
    assert!(server.stop().success());
}

/// Why a model is not served.
pub fn reason(server: &Running, model: &str) -> String {
    let index = server.post("/v2/repository/index", &[], "").json();
    let entry = index.as_array().and_then(|all| all.iter().find(|entry| entry["name"] == model));
    let entry = entry.unwrap_or_else(|| panic!("no {model} in {index}"));
    entry["reason"].as_str().unwrap_or_default().to_owned()
}

/// An archive with one directory in front.
fn entries(names: &[&str]) -> Vec<u8> {
    archive(&names.iter().map(|name| (*name, b"x".as_slice())).collect::<Vec<_>>())
}

/// A model that is linked with a library that goes away.
fn linked_with_missing(torch: &FakeTorch) -> Vec<u8> {
    let build = folder();
    let library = build.path().join("libmissing_kernels.so");
    compile(
        "tests/fakes/torch/stub.c",
        &library,
        &["-Wl,-soname,libmissing_kernels.so".to_owned()],
    );
    torch.model(&[&library.display().to_string()])
}

/// File of a version, and what the reason says beside the model and the path.
fn refusals(torch: &FakeTorch) -> Vec<(&'static str, Vec<u8>, &'static [&'static str])> {
    let good = torch.package();
    let model = torch.model(&[]);
    let text = code();
    let mut damaged = good.clone();
    damaged[4000] ^= 1;
    let mut other_machine = model.clone();
    other_machine[18] = if other_machine[18] == 0xb7 { 62 } else { 0xb7 };
    let with =
        |name: &str, bytes: &[u8]| package(&model, &[(CODE, text.as_bytes()), (name, bytes)]);
    let turned = text.replace(
        "unmatched stride value at 1, \"\n           << \"expected: 3",
        "unmatched stride value at 1, \"\n           << \"expected: 1",
    );
    vec![
        ("text", b"hello".to_vec(), &["not a zip archive", "aoti_compile_and_package"]),
        (
            "pointer",
            b"version https://git-lfs.github.com/spec/v1\n".to_vec(),
            &["a Git LFS pointer", "git lfs pull"],
        ),
        ("cut", good[..good.len() / 2].to_vec(), &["truncated or damaged", "download it again"]),
        ("damaged", damaged, &["c1.wrapper.so' cannot be extracted", "checksum"]),
        ("script", entries(&["m/data.pkl", "m/code/a.py", "m/constants.pkl"]), &["is TorchScript"]),
        ("program", entries(&["m/models/model.json"]), &["an exported program", "compiles it"]),
        ("weights", entries(&["m/data.pkl", "m/data/0"]), &["what torch.save wrote"]),
        ("other", entries(&["a/b.txt"]), &["no entry below data/aotinductor", "a/b.txt"]),
        (
            "cuda",
            package(
                &model,
                &[("p/data/aotinductor/model/k_metadata.json", br#"{"AOTI_DEVICE_KEY": "cuda"}"#)],
            ),
            &["compiled for the device 'cuda'", "expected 'cpu'"],
        ),
        ("outside", with("p/data/weights/weight_0", b"x"), &["weights are beside", "weight_0"]),
        (
            "operators",
            with(
                "p/data/aotinductor/model/c1.wrapper.json",
                br#"{"nodes": [{"name": "buf0", "node": {"target": "mine::op"}}]}"#,
            ),
            &["operators that have no C function in torch: 'mine::op'"],
        ),
        ("source", entries(&["p/data/aotinductor/model/c1.wrapper.cpp"]), &["package_cpp_only"]),
        (
            "two",
            entries(&["p/data/aotinductor/a/x.so", "p/data/aotinductor/b/x.so"]),
            &["the models 'a', 'b'", "expected one model"],
        ),
        ("machine", package(&other_machine, &[]), &["built for another machine"]),
        (
            "gone",
            package(&torch.model(&["-DGONE"]), &[]),
            &["aoti_torch_cpu_gone", "another release of torch", "PyTorch 2.9.1"],
        ),
        (
            "missing",
            package(&linked_with_missing(torch), &[]),
            &["libmissing_kernels.so", "install the library"],
        ),
        (
            "strides",
            package(&model, &[(CODE, turned.as_bytes())]),
            &["input 'ARGS[0]'", "a stride of 1 in dimension 1"],
        ),
        ("bare", package(&model, &[]), &["lacks the generated code", "into the configuration"]),
    ]
}

#[test]
fn other_files_are_refused_in_words() {
    let torch = FakeTorch::new();
    let all = refusals(&torch);
    let start = server(&torch)
        .model("torchscript", config("platform: 'pytorch_libtorch'", 8))
        .file("torchscript/1/model.pt", "x")
        .file("detected/1/model.pt", "x");
    let start = all.iter().fold(start, |server, (name, bytes, _)| {
        server.model(name, "platform: 'torch_aoti'").file(&format!("{name}/1/model.pt2"), bytes)
    });
    let server = start.start();
    for (name, _, parts) in &all {
        let reason = reason(&server, name);
        for part in parts.iter().chain([&format!("'{name}'").as_str()]) {
            assert!(reason.contains(part), "{name}: no {part:?} in {reason}");
        }
    }
    for model in ["torchscript", "detected"] {
        let reason = reason(&server, model);
        for part in ["is TorchScript", "torch.export.export(module.eval()", "INPUT__0"] {
            assert!(reason.contains(part), "{model}: no {part:?} in {reason}");
        }
    }
    assert!(server.stop().success());
}

#[test]
fn a_missing_library_is_named() {
    let torch = FakeTorch::new();
    let dir = folder();
    let plugin = "backends/pytorch/libtrtserver_pytorch.so";
    let to = dir.path().join(plugin);
    fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
    fs::copy(backends().join("pytorch/libtrtserver_pytorch.so"), to).expect("the plugin");
    let other = dist().join("lib/libonnxruntime.so.1");
    let cases: [(_, &[&str]); 2] = [
        ("".into(), &["PyTorch library not found", "libtorch_cpu.so", "pip install torch"]),
        (
            other.as_os_str().to_owned(),
            &[
                "named by the environment variable TRTSERVER_TORCH_LIBRARY",
                "lacks functions that torch has since 2.9",
            ],
        ),
    ];
    for (library, parts) in cases {
        let server = server(&torch)
            .backend_dir(dir.path().join("backends"))
            .env("TRTSERVER_TORCH_LIBRARY", library)
            .file("m/1/model.pt2", torch.package())
            .start();
        let reason = reason(&server, "m");
        for part in parts {
            assert!(reason.contains(part), "no {part:?} in {reason}");
        }
        assert!(server.stop().success());
    }
}
