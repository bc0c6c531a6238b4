//! Loading: libraries, files, signatures, custom operations.

use super::*;
use std::fs;
use std::path::Path;
use trtserver_plugin_api::abi::descriptors::instance_kind;
use trtserver_plugin_api::abi::types::code;
use trtserver_plugin_api::author::{Backend as _, Kind};

const SCALAR_IN: Tensors = &[("INPUT0", dtype::FP32, &[-1])];
const SCALAR_OUT: Tensors = &[("OUTPUT0", dtype::FP32, &[-1])];

#[test]
fn missing_library_is_named_with_advice() {
    let _session = Session::start();
    for (settings, parts) in [
        (
            vec![("library", "/nowhere/libtensorflow_cc.so.2")],
            ["/nowhere/libtensorflow_cc.so.2", "library="],
        ),
        (vec![("library", "libm.so.6")], ["no symbol TF_Version", "it is not TensorFlow"]),
        (vec![("library", DATA)], ["contains no libtensorflow_cc.so*", "libtensorflow.so*"]),
    ] {
        let error = backend(&settings).open_model(&addsub(crate::GRAPH_DEF, 8)).err().unwrap();
        assert_eq!(error.code, code::UNAVAILABLE);
        let advice = ["`cargo xtask runtimes --tensorflow`", "pip install tensorflow-cpu"];
        for part in parts.iter().chain(&advice) {
            assert!(error.text.contains(part), "no {part:?} in {error}");
        }
    }
    let mut spec = addsub(crate::GRAPH_DEF, 8);
    spec.parameters.push(("TF_LIBRARY".into(), "old".into()));
    let error = backend(&[]).open_model(&spec).err().unwrap();
    assert!(error.text.contains("--backend-config=tensorflow,library-old=PATH"), "{error}");
}

#[test]
fn saved_models_restore_variables_and_tables() {
    let (session, handle) = start();
    let scale = load(&handle, &saved_model("tensorflow/scale", 8, SCALAR_IN, SCALAR_OUT)).unwrap();
    let request = |value: f32| {
        let request = Request::new(1).input("INPUT0", dtype::FP32, &[1, 2], &bytes(&[value, 1.0]));
        request.request_output("OUTPUT0")
    };
    let scaled = floats(&scale.run(request(0.0)), "OUTPUT0");
    assert_ne!(floats(&scale.run(request(8.0)), "OUTPUT0")[0], scaled[0]);
    let inputs: Tensors = &[("INPUT0", dtype::STRING, &[-1])];
    let outputs: Tensors = &[("OUTPUT0", dtype::INT64, &[-1])];
    let table = load(&handle, &saved_model("tensorflow/table", 8, inputs, outputs)).unwrap();
    let words = std::fs::read_to_string(
        Path::new(MODELS).join("tensorflow/table/1/model.savedmodel/assets/words.txt"),
    )
    .unwrap();
    let words: Vec<&str> = words.lines().collect();
    let request = Request::new(1)
        .input("INPUT0", dtype::STRING, &[1, 3], &text(&[words[2], "absent", words[0]]))
        .request_output("OUTPUT0");
    let found: Vec<i64> = values(&output(&table.run(request), "OUTPUT0").data);
    assert_eq!((found[0], found[2]), (2, 0));
    assert!(!words.contains(&"absent") && !(0..3).contains(&found[1]));
    drop((scale, table));
    assert!(session.logged("MiB resident before"));
}

#[test]
fn errors_name_file_and_tensor() {
    let (_session, handle) = start();
    let refusal = |spec: &ModelSpec| handle.open_model(spec).err().unwrap().text;
    let mut spec = addsub(crate::GRAPH_DEF, 8);
    spec.file = "absent.graphdef".into();
    let error = refusal(&spec);
    assert!(error.contains("unable to find model 'absent.graphdef' for M"), "{error}");
    for (dir, part) in [
        ("tensorflow/no_serve_tag", "unable to load model 'M', expected 'serve' tag"),
        (
            "tensorflow/two_signatures",
            "unable to load model 'M', expected 'serving_default' signature",
        ),
    ] {
        let error = refusal(&saved_model(dir, 8, SCALAR_IN, SCALAR_OUT));
        assert!(error.contains(part) && error.contains(dir), "{error}");
    }
    let mut spec = addsub(crate::SAVED_MODEL, 8);
    spec.inputs[1].dtype = dtype::INT32;
    let error = refusal(&spec);
    assert!(
        ["INPUT1", "TYPE_FP32", "TYPE_INT32"].iter().all(|part| error.contains(part)),
        "{error}"
    );
    let mut spec = addsub(crate::GRAPH_DEF, 8);
    put_bytes(&mut spec.config_pb, 18, &[&[0x0a, 11][..], b"custom.so.1"].concat());
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    fs::create_dir_all(dir.join("1")).unwrap();
    let file = Path::new(&spec.version_dir).join(&spec.file);
    fs::copy(file, dir.join("1").join(&spec.file)).unwrap();
    spec.version_dir = dir.join("1").to_str().unwrap().to_owned();
    spec.dir = dir.to_str().unwrap().to_owned();
    let error = refusal(&spec);
    assert!(error.contains("custom operations") && error.contains("data/custom.so.1"), "{error}");
    let mut spec = addsub(crate::GRAPH_DEF, 8);
    // optimization.execution_accelerators.gpu_execution_accelerator.name
    let mut nested = b"tensorrt".to_vec();
    for number in [1, 1, 4, 12] {
        let inner = std::mem::take(&mut nested);
        put_bytes(&mut nested, number, &inner);
    }
    spec.config_pb.extend(nested);
    let error = refusal(&spec);
    assert!(
        error.contains("'tensorrt' requested for model 'M'") && error.contains("CPU"),
        "{error}"
    );
}

#[test]
fn instances_run_on_the_cpu() {
    let (_session, handle) = start();
    assert_eq!(TensorFlow::INFO.preferred[0].kind, Kind::Cpu, "KIND_AUTO on a machine with GPUs");
    let model = handle.open_model(&addsub(crate::GRAPH_DEF, 8)).unwrap();
    let on = |kind| model.open_instance(&InstanceSpec { kind, ..InstanceSpec::default() });
    let error = on(instance_kind::GPU).err().unwrap();
    assert!(error.text.contains("KIND_GPU") && error.text.contains("devices are CPU"), "{error}");
    let instance = on(instance_kind::MODEL).unwrap();
    assert_eq!(instance.execute(&[addsub_request(1)])[0].result, Ok(()));
}

#[test]
fn configurations_are_completed_from_file() {
    let (_session, handle) = start();
    for platform in [crate::GRAPH_DEF, crate::SAVED_MODEL] {
        let mut spec = addsub(platform, 0);
        (spec.inputs, spec.outputs) = (Vec::new(), Vec::new());
        let patches = handle.autocomplete(&spec).unwrap().unwrap();
        let patch: String =
            patches.into_iter().map(|(_, patch)| String::from_utf8(patch).unwrap()).collect();
        for part in ["max_batch_size: 1", "\"INPUT1\"", "\"OUTPUT0\"", "TYPE_FP32", "dims: [ 16 ]"]
        {
            assert!(patch.contains(part), "{platform}: no {part} in {patch}");
        }
    }
}
