//! Completion, formats, parameters, and what cannot be loaded.

use super::*;
use std::fs;

#[track_caller]
fn refusal(backend: &Backend, spec: &ModelSpec) -> String {
    match load(backend, spec) {
        Ok(_) => panic!("{} was loaded", spec.file),
        Err(failure) => failure.text,
    }
}

fn completed(backend: &Backend, spec: &ModelSpec) -> String {
    let patches = backend.autocomplete(spec).unwrap().unwrap();
    patches.into_iter().map(|(_, patch)| String::from_utf8(patch).unwrap()).collect()
}

#[test]
fn configurations_are_completed_from_every_format() {
    let (session, backend) = start(&[]);
    let four = "max_batch_size: 4\ndynamic_batching { }\n\
                input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 4 ] }\n\
                output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 4 ] }\n";
    let row = "input { name: \"x\" data_type: TYPE_FP32 dims: [ 1, 4 ] }\n\
               output { name: \"y\" data_type: TYPE_FP32 dims: [ 1, 3 ] }\n";
    let reshape = "max_batch_size: 4\ndynamic_batching { }\n\
                   input { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ 6 ] }\n\
                   output { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ 6 ] }\n";
    let node = reshape.replace("PUT0", "PUT0:0");
    for (folder, file, expected) in [
        ("openvino/lite", "model.xml", four),
        ("openvino/paddle", "", four),
        ("openvino/one_row", "", row),
        ("reshape", "model.onnx", reshape),
        ("savedmodel/reshape", "model.xml", reshape),
        ("savedmodel/reshape/1/model.savedmodel", "saved_model.pb", reshape),
        ("graphdef/reshape", "model.graphdef", &node),
    ] {
        let mut spec = model(folder, file);
        if file == "saved_model.pb" {
            spec.version_dir.clone_from(&spec.dir);
        }
        assert_eq!(completed(&backend, &spec), expected, "{folder}");
    }
    // Its rows are not those of its output.
    let text = completed(&backend, &model("completion/detector", "model.onnx"));
    assert!(!text.contains("max_batch_size") && text.contains("dims: [ -1, 8 ]"), "{text}");
    assert!(session.logged("max_batch_size is completed as 0: a run of 2 rows of zeros returned"));
}

#[test]
fn a_network_of_the_completion_is_used_again() {
    let (session, backend) = start(&[]);
    let spec = model("openvino/lite", "").max_batch_size(4).input("INPUT0", dtype::FP32, &[4]);
    let model = backend.open_completed_model(&spec).unwrap();
    drop(model);
    assert!(session.logged("OpenVINO 20"));
}

/// Names of TensorFlow's nodes, without the number of their output.
#[test]
fn other_names_of_a_tensor() {
    let (_session, backend) = start(&[]);
    for end in ["", ":0"] {
        let spec = model("graphdef/reshape", "model.graphdef")
            .max_batch_size(8)
            .input(&format!("INPUT0{end}"), dtype::FP32, &[6])
            .output(&format!("OUTPUT0{end}"), dtype::FP32, &[6]);
        load(&backend, &spec).unwrap_or_else(|failure| panic!("{end}: {failure:?}"));
    }
}

#[test]
fn parameters_reach_the_library() {
    let (session, backend) = start(&[]);
    let mut spec = addsub();
    (spec.threads, spec.instances) = (1, 1);
    load(&backend, &spec).unwrap();
    assert!(session.logged("device CPU, 1 streams, 2 threads, precision f32"));
    let spec = addsub().parameter("HINT_BF16", "YES").parameter("ENABLE_BATCH_PADDING", "YES");
    // Processors without bfloat16 refuse it, with the library's words.
    if let Err(failure) = load(&backend, &spec) {
        assert!(failure.text.contains("INFERENCE_PRECISION_HINT"), "{failure:?}");
    }
    assert!(session.logged("'ENABLE_BATCH_PADDING' has no effect"));
    let spec = addsub().parameter("PERFORMANCE_HINT", "throughput").parameter("device", "AUTO:CPU");
    load(&backend, &spec).unwrap();
    assert!(session.logged("device AUTO:CPU"));
}

#[test]
fn compiled_models_are_cached() {
    let dir = tempfile::tempdir().unwrap();
    let (_session, backend) = start(&[("cache-dir", dir.path().to_str().unwrap())]);
    load(&backend, &addsub().parameter("CACHE_DIR", "NO")).unwrap();
    let count = |dir: &Path| fs::read_dir(dir).map_or(0, Iterator::count);
    assert_eq!(count(dir.path()), 0);
    for _ in 0..2 {
        let model = load(&backend, &addsub().parameter("CACHE_DIR", "own")).unwrap();
        let (request, all) = rows(1.0, 2);
        let found = floats(&model.one(request.request_output("OUTPUT1")), "OUTPUT1");
        assert_eq!(found[5], all[5] / 2.0);
        assert_eq!(count(&dir.path().join("own")), 1);
    }
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    let (_session, backend) = start(&[]);
    let own = |key: &str, value: &str| addsub().parameter(key, value);
    let baked = model("openvino/baked", "model.xml")
        .max_batch_size(8)
        .input("x", dtype::FP32, &[4])
        .output("y", dtype::FP32, &[2, 2]);
    let narrow = model("addsub_fp32", "model.onnx")
        .max_batch_size(8)
        .input("INPUT0", dtype::FP32, &[15])
        .input("INPUT1", dtype::FP32, &[16]);
    for (spec, expected) in [
        (
            own("device", "GPU"),
            "model.onnx: device 'GPU' is not present; the devices that OpenVINO finds here are: CPU",
        ),
        (own("TARGET_DEVICE", "NPU"), "device 'NPU' is not present"),
        (own("NUM_STREAMS", "x"), "unable to load model 'M': parameter 'NUM_STREAMS' is 'x'"),
        (own("INFERENCE_PRECISION_HINT", "f17"), "device 'CPU': OpenVINO: "),
        (own("CPU_EXTENSION_PATH", "../x.so"), "parameter 'CPU_EXTENSION_PATH' is '../x.so': "),
        (
            own("CPU_EXTENSION_PATH", "model.onnx"),
            "parameter 'CPU_EXTENSION_PATH' is 'model.onnx': OpenVINO: ",
        ),
        (baked, "first dimension must be -1; but shape expected by the model is [1,2,2]"),
        (one_row().parameter("SKIP_OV_DYNAMIC_BATCHSIZE", "YES"), "first dimension must be -1"),
        (narrow, "the model expects 2 dimensions (shape [-1,16])"),
        (
            addsub().parameter("RESHAPE_IO_LAYERS", "YES").output("none", dtype::FP32, &[16]),
            "output 'none'",
        ),
    ] {
        let refused = refusal(&backend, &spec);
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn files_that_are_no_models_are_explained() {
    let (_session, backend) = start(&[]);
    let dir = tempfile::tempdir().unwrap();
    let read = |path: &str| fs::read(Path::new(MODELS).join(path)).unwrap();
    let xml = read("openvino/one_row/1/model.xml");
    let onnx = read("addsub_fp32/1/model.onnx");
    let lite = read("openvino/lite/1/model.tflite");
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n";
    fs::write(dir.path().join("half.bin"), [0; 48]).unwrap();
    let cases: [(&str, &[u8], &str); 8] = [
        ("alone.xml", &xml, "the weights are missing: there is no file"),
        ("half.xml", &xml[..xml.len() / 2], "OpenVINO: "),
        ("a.xml", pointer, "the file is a Git LFS pointer"),
        ("b.onnx", b"<!DOCTYPE html>", "the file is an HTML page"),
        ("c.onnx", &onnx[..onnx.len() / 2], "the file is truncated"),
        ("d.tflite", b"tflite", "the file is not a TensorFlow Lite model"),
        ("e.tflite", &lite[..200], "OpenVINO: "),
        ("f.pdmodel", b"", "the file is empty"),
    ];
    for (name, contents, expected) in cases {
        let path = dir.path().join(name);
        fs::write(&path, contents).unwrap();
        let refused = refusal(&backend, &at(dir.path(), dir.path(), name));
        let head = format!("unable to load model 'M' from {}: ", path.display());
        assert!(refused.starts_with(&head) && refused.contains(expected), "{refused}");
        assert!(!refused.contains("Exception from"), "{refused}");
    }
    let refused = refusal(&backend, &at(dir.path(), dir.path(), "absent.xml"));
    assert!(refused.contains("absent.xml; expected 'model.xml', 'model.onnx', "), "{refused}");
    let refused = refusal(&backend, &at(dir.path(), dir.path(), "../model.onnx"));
    assert!(refused.contains("unable to load model 'M': "), "{refused}");
}

#[test]
fn a_missing_library_is_explained() {
    let _session = Session::start();
    for (path, expected) in [
        (
            "/nowhere/lib.so",
            "OpenVINO library '/nowhere/lib.so' (named by --backend-config=openvino,library=…)",
        ),
        ("/lib", "the directory contains no libopenvino_c.so*"),
        ("libc.so.6", "not OpenVINO at all"),
    ] {
        let refused = refusal(&backend(&[("library", path)]), &addsub());
        assert!(
            refused.contains(expected) && refused.contains("pip install openvino"),
            "{refused}"
        );
    }
}
