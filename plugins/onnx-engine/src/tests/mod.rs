//! A whole plugin with ONNX Runtime and small models, on the test host.
//!
//! Without a library (see [`library`]) these tests fail.

mod cached_runs;
mod harness;
mod merge;

use crate::{ModelFormat, ModelGraph};
use harness::{TYPES, decl, load, load_on, model, types_model};
use std::path::{Path, PathBuf};
use trtserver_framework::config::Config;
use trtserver_framework::fault::PluginFault;
use trtserver_plugin_api::abi::descriptors::instance_kind;
use trtserver_plugin_api::abi::types::{code, dtype};
use trtserver_plugin_api::author::{BackendInfo, ModelContext};
use trtserver_plugin_testkit::{
    Backend, ModelSpec, Outcome, Output, Request, Session, TensorSpec, bytes, counts, table, values,
};

/// Models that are ONNX files.
struct Files;

impl ModelFormat for Files {
    const INFO: BackendInfo = BackendInfo::new("onnxruntime", "1");

    fn graph(context: &ModelContext, _: &Config) -> Result<ModelGraph, PluginFault> {
        Ok(ModelGraph { file: Path::new(context.version_dir()).join(context.file()), bytes: None })
    }
}

pub fn library() -> PathBuf {
    let variable = crate::runtime::VARIABLE;
    if let Some(path) = std::env::var_os(variable) {
        return path.into();
    }
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dist/lib");
    let built = built.join("libonnxruntime.so.1");
    assert!(
        built.exists(),
        "no ONNX Runtime in target/dist/lib: `cargo xtask runtimes` installs it, {variable} names another"
    );
    built
}

fn start() -> (Session, Backend) {
    let (session, path) = (Session::start(), library());
    let (name, dir) = ("onnxruntime", "/nowhere/backends/onnxruntime");
    let settings = [("library", path.to_str().unwrap())];
    let table = table::<crate::Engine<Files>>();
    (session, Backend::open(table, name, dir, &settings).unwrap())
}

fn bytes_of(values: &[f32]) -> Vec<u8> {
    bytes(values)
}

fn floats(outcome: &Outcome, name: &str) -> Vec<f32> {
    let output = output(outcome, name);
    assert_eq!(output.dtype, dtype::FP32);
    values(&output.data)
}

/// The outputs of the only response, if there is one.
fn outputs(outcome: &Outcome) -> &[Output] {
    assert!(outcome.responses.len() <= 1);
    outcome.responses.first().map_or(&[], |response| &response.outputs)
}

fn output<'a>(outcome: &'a Outcome, name: &str) -> &'a Output {
    assert_eq!(outcome.result, Ok(()));
    outputs(outcome).iter().find(|output| output.name == name).unwrap()
}

fn expect_error(outcome: &Outcome, text: &str) -> u32 {
    assert!(outputs(outcome).is_empty());
    let failure = outcome.result.as_ref().unwrap_err();
    assert!(failure.text.contains(text), "{failure}");
    failure.code
}

fn addsub(max: i32) -> ModelSpec {
    let dims: &[i64] = if max > 0 { &[16] } else { &[-1, 16] };
    let tensors = |names: [&str; 2]| names.iter().map(|n| decl(n, dtype::FP32, dims)).collect();
    model("addsub.onnx", max, tensors(["INPUT0", "INPUT1"]), tensors(["OUTPUT0", "OUTPUT1"]))
}

fn ramp(rows: usize) -> Vec<f32> {
    (0..rows * 16).map(|i| i as f32).collect()
}

fn addsub_request(rows: usize) -> Request {
    let shape = [rows as i64, 16];
    Request::new(rows as u32)
        .input("INPUT0", dtype::FP32, &shape, &bytes_of(&ramp(rows)))
        .input("INPUT1", dtype::FP32, &shape, &bytes_of(&vec![1.0; rows * 16]))
        .request_output("OUTPUT0")
        .request_output("OUTPUT1")
}

#[test]
fn requests_of_a_batch_get_their_own_responses() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(8)).unwrap();
    let mut cancelled = addsub_request(1);
    cancelled.cancelled = true;
    let mut bad = addsub_request(2);
    bad.inputs.pop();
    let mut pieces = addsub_request(2);
    pieces.inputs.pop();
    let ones = bytes_of(&[1.0; 32]);
    let pieces = pieces.input_parts(
        "INPUT1",
        dtype::FP32,
        &[2, 16],
        &[&ones[..5], &ones[5..64], &ones[64..]],
    );
    let mut one_output = addsub_request(1);
    one_output.requested_outputs.remove(0);
    let requests = [addsub_request(3), bad, cancelled, pieces, one_output, addsub_request(0)];
    let outcomes = loaded.run(&requests);

    let sums: Vec<f32> = ramp(3).iter().map(|x| x + 1.0).collect();
    assert_eq!(floats(&outcomes[0], "OUTPUT0"), sums);
    assert_eq!(output(&outcomes[0], "OUTPUT1").shape, [3, 16]);
    assert!(!output(&outcomes[0], "OUTPUT0").adopted, "a known shape is written in place");
    let code_of_bad = expect_error(&outcomes[1], "input 'INPUT1' is required by model 'M'");
    assert_eq!(code_of_bad, code::INVALID);
    assert_eq!(expect_error(&outcomes[2], "cancelled"), code::CANCELLED);
    assert_eq!(floats(&outcomes[3], "OUTPUT0"), sums[..32]);
    assert_eq!(outputs(&outcomes[4]).len(), 1);
    assert_eq!(floats(&outcomes[4], "OUTPUT1")[5], 4.0);
    assert_eq!(output(&outcomes[5], "OUTPUT0").shape, [0, 16]);
}

#[test]
fn invalid_inputs_are_refused_before_the_run() {
    let (_session, handle) = start();
    let loaded = load(&handle, addsub(0)).unwrap();
    let with = |dtype, shape: &[i64], bytes: &[u8]| {
        let mut request = addsub_request(2);
        request.inputs.remove(0);
        request.input("INPUT0", dtype, shape, bytes)
    };
    let cases = [
        (
            with(dtype::FP64, &[2, 16], &[0; 256]),
            "data-type is 'TYPE_FP64', model 'M' expects 'TYPE_FP32'",
        ),
        (with(dtype::FP32, &[2, 15], &[0; 120]), "Expected [-1,16], got [2,15]"),
        (with(dtype::FP32, &[32], &[0; 128]), "Expected [-1,16], got [32]"),
        (with(dtype::FP32, &[2, 16], &[0; 124]), "unexpected total byte size 124"),
        (with(dtype::FP32, &[-2, 16], &[0; 128]), "got [-2,16]"),
        (addsub_request(2).input("INPUT0", dtype::FP32, &[2, 16], &[0; 128]), "given twice"),
        (
            addsub_request(2).input("q", dtype::FP32, &[2, 16], &[0; 128]),
            "unexpected inference input 'q'",
        ),
        (addsub_request(2).request_output("q"), "unexpected inference output 'q'"),
        // Each input is valid, but not together with the other: only the library detects it.
        (with(dtype::FP32, &[3, 16], &[0; 192]), "model 'M': onnx runtime error"),
    ];
    for (request, requested) in cases {
        expect_error(&loaded.run(&[request])[0], requested);
    }
    assert_eq!(floats(&loaded.run(&[addsub_request(1)])[0], "OUTPUT0")[3], 4.0);
}

#[test]
fn every_type_round_trips() {
    let (_session, handle) = start();
    let loaded = load(&handle, types_model(0, &[-1])).unwrap();
    let strings: [&[u8]; 3] = [b"nul\0inside", b"", "höher".as_bytes()];
    let framed = |strings: &[&[u8]]| -> Vec<u8> {
        strings.iter().flat_map(|s| [&(s.len() as u32).to_le_bytes()[..], s].concat()).collect()
    };
    for count in [3, 0] {
        let mut request = Request::new(1);
        let mut sent = Vec::new();
        for (name, kind) in TYPES.iter().zip(1..) {
            let bytes: Vec<u8> = match kind {
                dtype::STRING => framed(&strings[..count]),
                dtype::BOOL => [1, 0, 1][..count].to_vec(),
                _ => (0..count * trtserver_framework::types::type_size(kind))
                    .map(|i| i as u8)
                    .collect(),
            };
            request = request.input(&format!("in_{name}"), kind, &[count as i64], &bytes);
            request = request.request_output(&format!("out_{name}"));
            sent.push(bytes);
        }
        let outcome = &loaded.run(&[request])[0];
        for ((name, kind), bytes) in TYPES.iter().zip(1..).zip(&sent) {
            let output = output(outcome, &format!("out_{name}"));
            assert_eq!((output.dtype, &output.data), (kind, bytes), "{name}");
            assert_eq!(output.shape, [count as i64]);
        }
    }
    // The framing of strings is checked.
    let broken = |bytes: &[u8]| {
        let request = Request::new(1)
            .input("in_string", dtype::STRING, &[2], bytes)
            .request_output("out_string");
        let rest = TYPES.iter().zip(1..).filter(|(name, _)| **name != "string");
        rest.fold(request, |request, (name, kind)| {
            request.input(&format!("in_{name}"), kind, &[0], &[])
        })
    };
    let outcomes = loaded.run(&[broken(&framed(&strings)), broken(&framed(&strings)[..9])]);
    expect_error(
        &outcomes[0],
        "unexpected number of string elements 3 for inference input 'in_string'",
    );
    expect_error(&outcomes[1], "incomplete string data for inference input 'in_string'");
}

fn shapes() -> ModelSpec {
    let f = |name, dims: &[i64]| decl(name, dtype::FP32, dims);
    let inputs = vec![f("x", &[-1]), f("s", &[1])];
    let outputs = vec![
        decl("where", dtype::INT64, &[1, -1]),
        f("sum", &[1]),
        f("scaled", &[-1]),
        f("square", &[1]),
        f("x", &[-1]),
    ];
    model("shapes.onnx", 0, inputs, outputs)
}

#[test]
fn dynamic_output_shapes_are_returned() {
    let (_session, handle) = start();
    let loaded = load(&handle, shapes()).unwrap();
    let request = |x: &[f32]| {
        let request = Request::new(1)
            .input("x", dtype::FP32, &[x.len() as i64], &bytes_of(x))
            .input("s", dtype::FP32, &[1], &bytes_of(&[3.0]));
        ["where", "sum", "scaled", "square", "x"]
            .iter()
            .fold(request, |request, name| request.request_output(name))
    };
    let before = counts().adopted;
    let with_default = request(&[0.0, 1.0, 0.0, 5.0]);
    let replaced = request(&[1.0]).input("factor", dtype::FP32, &[1], &bytes_of(&[10.0]));
    let outcomes = loaded.run(&[with_default, replaced, request(&[])]);
    let found = output(&outcomes[0], "where");
    assert_eq!((&found.shape[..], found.adopted), (&[1, 2][..], true));
    assert_eq!(found.data[8], 3);
    assert_eq!(output(&outcomes[0], "sum").shape, [1], "a scalar is one element");
    assert_eq!(floats(&outcomes[0], "sum"), [6.0]);
    assert_eq!(floats(&outcomes[0], "scaled"), [0.0, 2.0, 0.0, 10.0]);
    assert_eq!(floats(&outcomes[0], "square"), [9.0]);
    assert_eq!(floats(&outcomes[0], "x"), [0.0, 1.0, 0.0, 5.0]);
    assert!(
        !output(&outcomes[0], "x").adopted,
        "the library does not own an input that is passed through"
    );
    assert_eq!(floats(&outcomes[1], "scaled"), [10.0]);
    assert_eq!(output(&outcomes[2], "where").shape, [1, 0]);
    assert!(counts().adopted > before);
}

#[test]
fn wrong_declared_shape_disables_preallocation() {
    let (session, handle) = start();
    let f = |name, dims: &[i64]| decl(name, dtype::FP32, dims);
    let loaded =
        load(&handle, model("undeclared_width.onnx", 4, vec![f("x", &[-1])], vec![f("y", &[4])]))
            .unwrap();
    let request = |n: i64| {
        Request::new(2)
            .input("x", dtype::FP32, &[2, n], &bytes_of(&vec![1.0; 2 * n as usize]))
            .request_output("y")
    };
    let outcomes = loaded.run(&[request(4), request(3), request(4)]);
    assert!(!output(&outcomes[0], "y").adopted);
    assert_eq!(output(&outcomes[1], "y").shape, [2, 3]);
    assert_eq!(floats(&outcomes[1], "y"), [-1.0; 6]);
    assert!(output(&outcomes[2], "y").adopted);
    assert!(session.logged("the file declares shape [-1,4] and a run returned [2,3]"));
}

#[test]
fn reshape_is_applied_for_the_model() {
    let (_session, handle) = start();
    let mut desc = addsub(8);
    let tensor = |name| TensorSpec::reshaped(name, dtype::FP32, &[4, 4], &[16]);
    desc.inputs = vec![tensor("INPUT0"), tensor("INPUT1")];
    let loaded = load(&handle, desc).unwrap();
    let ones = bytes_of(&[1.0; 16]);
    let request = Request::new(1)
        .input("INPUT0", dtype::FP32, &[1, 4, 4], &ones)
        .input("INPUT1", dtype::FP32, &[1, 16], &ones)
        .request_output("OUTPUT0");
    assert_eq!(floats(&loaded.run(&[request])[0], "OUTPUT0"), [2.0; 16]);
}

#[test]
fn load_errors_name_the_cause() {
    let (_session, handle) = start();
    let split = |loaded: Result<harness::Loaded, trtserver_plugin_testkit::Failure>| {
        let failure = loaded.err().unwrap();
        (failure.code, failure.text)
    };
    let failure = |desc| split(load(&handle, desc));
    let (_, text) = failure(model("make_models.py", 0, vec![], vec![]));
    assert!(text.starts_with("unable to load model 'M' from /"), "{text}");

    let desc = addsub(8);
    let desc = desc.parameter("intra_op_thread_count", "lots");
    assert!(failure(desc).1.contains("'intra_op_thread_count' must be a number of threads"));
    let mut desc = addsub(8);
    desc.inputs.truncate(1);
    assert!(failure(desc).1.contains("configuration expects 1 inputs, model provides 2"));

    // instance_group.kind
    let on_gpu = nested(&[7], &[4 << 3, 1]);
    let (code, text) = failure(ModelSpec { config_pb: on_gpu.clone(), ..addsub(8) });
    assert_eq!(code, code::UNSUPPORTED);
    assert!(text.contains("KIND_GPU of model 'M' need the CUDAExecutionProvider"), "{text}");
    assert!(text.contains("libonnxruntime") && text.contains("CPUExecutionProvider"), "{text}");
    // optimization.execution_accelerators.cpu_execution_accelerator.name, of an instance_group on
    // the CPU
    let on_cpu = nested(&[7], &[4 << 3, 2]);
    for (name, expected) in [
        ("magics", "'magics' requested for model 'M': unknown execution accelerator"),
        ("openvino", "need the OpenVINOExecutionProvider, which ONNX Runtime "),
    ] {
        let accelerator = nested(&[1, 2, 4, 12], name.as_bytes());
        let config_pb = [on_cpu.clone(), accelerator].concat();
        let (code, text) = failure(ModelSpec { config_pb, ..addsub(8) });
        assert!(code == code::UNSUPPORTED && text.contains(expected), "{text}");
    }
    let (code, text) = split(load_on(&handle, &addsub(8), instance_kind::GPU));
    assert!(code == code::UNSUPPORTED && text.contains("is of KIND_GPU"), "{text}");
}

#[test]
fn options_reach_the_session() {
    let (_session, handle) = start();
    for graph_level in [-1, 0, 1, 2, 3] {
        let mut desc = addsub(8);
        desc.graph_level = graph_level;
        desc.threads = 2;
        let parameters = [
            ("execution_mode", "1"),
            ("inter_op_thread_count", "2"),
            ("enable_mem_arena", "0"),
            ("enable_mem_pattern", "0"),
            ("session.set_denormal_as_zero", "1"),
        ];
        let desc = parameters.iter().fold(desc, |desc, (key, value)| desc.parameter(key, value));
        let loaded = load(&handle, desc).unwrap();
        assert_eq!(floats(&loaded.run(&[addsub_request(8)])[0], "OUTPUT1")[127], 126.0);
    }
}

#[test]
fn autocomplete_adds_missing_fields() {
    let (_session, handle) = start();
    let complete =
        |file, max, inputs| harness::complete(&handle, &model(file, max, inputs, vec![]));
    let io = |dims: &str, field: &str, names: [&str; 2]| -> String {
        let line = |name| {
            format!("{field} {{ name: \"{name}\" data_type: TYPE_FP32 dims: [ {dims} ] }}\n")
        };
        names.map(line).concat()
    };
    let outputs = io("16", "output", ["OUTPUT0", "OUTPUT1"]);
    let inputs = io("16", "input", ["INPUT0", "INPUT1"]);
    let all = format!("max_batch_size: 4\ndynamic_batching {{ }}\n{inputs}{outputs}");
    assert_eq!(complete("addsub.onnx", 0, vec![]).unwrap(), all);
    let batching = format!("dynamic_batching {{ }}\n{inputs}{outputs}");
    assert_eq!(complete("addsub.onnx", 2, vec![]).unwrap(), batching);
    let unbatched = vec![decl("INPUT0", dtype::FP32, &[-1, 16])];
    let patch = complete("addsub.onnx", 0, unbatched).unwrap();
    assert_eq!(patch, io("-1, 16", "output", ["OUTPUT0", "OUTPUT1"]));
    let patch = complete("shapes.onnx", 0, vec![]).unwrap();
    assert!(patch.contains("input { name: \"s\" data_type: TYPE_FP32 dims: [ 1 ] }"), "{patch}");
    assert!(
        patch.contains("output { name: \"where\" data_type: TYPE_INT64 dims: [ 1, -1 ] }"),
        "{patch}"
    );
    assert!(
        complete("shapes.onnx", 4, vec![]).unwrap_err().text.contains("does not support batching")
    );
    assert_eq!(harness::complete(&handle, &addsub(0)).unwrap(), "");
}

#[test]
fn one_session_serves_several_threads() {
    let (_session, handle) = start();
    let first = load(&handle, addsub(8)).unwrap();
    let loaded = [first.sibling(), first.sibling(), first];
    std::thread::scope(|scope| {
        for instance in loaded {
            scope.spawn(move || {
                let instance = instance;
                for rows in 1..200 {
                    let outcome = &instance.run(&[addsub_request(1 + rows % 8)])[0];
                    assert_eq!(floats(outcome, "OUTPUT0")[9], 10.0);
                }
            });
        }
    });
}

/// A field of a message in fields of messages: the numbers, innermost first.
fn nested(numbers: &[u32], contents: &[u8]) -> Vec<u8> {
    numbers.iter().fold(contents.to_vec(), |inner, number| {
        let mut outer = Vec::new();
        trtserver_proto_wire::put_bytes(&mut outer, *number, &inner);
        outer
    })
}

fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn memory_does_not_grow() {
    let (_session, handle) = start();
    let loaded = load(&handle, shapes()).unwrap();
    let many = bytes_of(&[1.5; 1000]);
    let good = Request::new(1)
        .input("x", dtype::FP32, &[1000], &many)
        .input("s", dtype::FP32, &[1], &bytes_of(&[3.0]))
        .request_output("where")
        .request_output("sum");
    let bad = Request::new(1).input("x", dtype::FP32, &[1000], &many).request_output("where");
    let requests = [good, bad];
    let mut before = 0;
    for round in 0..5000 {
        if round == 1000 {
            before = resident_kib();
        }
        drop(loaded.run(&requests));
    }
    let grown = resident_kib().saturating_sub(before);
    // One leaked output of 8 kB per call would be 32 MB.
    assert!(grown < 4096, "{grown} KiB more after 4000 requests");
}
