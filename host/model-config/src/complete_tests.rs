//! Unit tests of `complete.rs`.

use super::super::testing::{Installed, TwoRules, listing, parse};
use super::super::{ConfigFault, InstanceSupport, MachineFacts, normalise_config};
use super::*;

const TWO: Installed = Installed(&[
    ("onnxruntime", &[("onnxruntime_onnx", "model.onnx")]),
    (
        "tensorflow",
        &[("tensorflow_graphdef", "model.graphdef"), ("tensorflow_savedmodel", "model.savedmodel")],
    ),
    ("identity", &[]),
    ("python", &[("", "model.py")]),
]);

fn run(text: &str, dir: &str, files: &[&str]) -> Result<ModelConfig, ConfigError> {
    let mut config = parse(text);
    complete_config(&mut config, dir, &[listing(1, files)], &TWO, None).map(|()| config)
}

/// As [`run`], with the backends asked about the files of all versions.
fn run_probing(text: &str, versions: &[&[&str]]) -> Result<ModelConfig, ConfigError> {
    let versions: Vec<_> = (1..).zip(versions).map(|(number, v)| listing(number, v)).collect();
    let mut config = parse(text);
    complete_config(&mut config, "m", &versions, &TWO, Some(&TwoRules)).map(|()| config)
}

#[test]
fn platform_backend_and_file_are_derived_from_each_other() {
    // Configuration, files of version 1, then platform, backend and file.
    type Row = (&'static str, &'static [&'static str], [&'static str; 3]);
    let onnx = ["onnxruntime_onnx", "onnxruntime", "model.onnx"];
    let saved = ["tensorflow_savedmodel", "tensorflow", "model.savedmodel"];
    let rows: &[Row] = &[
        ("platform: 'onnxruntime_onnx'", &[], onnx),
        ("backend: 'onnxruntime'", &[], onnx),
        ("platform: 'onnxruntime_onnx' backend: 'onnxruntime'", &[], onnx),
        ("default_model_filename: 'model.onnx'", &[], onnx),
        ("", &["readme", "model.onnx"], onnx),
        ("platform: 'tensorflow_saved_model'", &[], saved),
        ("backend: 'tensorflow'", &["model.savedmodel"], saved),
        ("", &["model.savedmodel"], saved),
        ("backend: 'tensorflow'", &[], ["", "tensorflow", ""]),
        (
            "default_model_filename: 'resnet.onnx'",
            &["model.savedmodel"],
            ["onnxruntime_onnx", "onnxruntime", "resnet.onnx"],
        ),
        (
            "backend: 'tensorflow' default_model_filename: 'x.graphdef'",
            &["model.savedmodel"],
            ["tensorflow_graphdef", "tensorflow", "x.graphdef"],
        ),
        ("backend: 'identity'", &[], ["", "identity", ""]),
        ("backend: 'identity' platform: 'anything'", &[], ["anything", "identity", ""]),
        ("backend: 'python'", &[], ["", "python", "model.py"]),
        ("", &["model.py"], ["", "python", "model.py"]),
        // Several match: the first in the order of AutoFill.
        ("", &["model.py", "model.onnx"], onnx),
        ("platform: 'ensemble'", &["model.onnx"], ["ensemble", "", ""]),
    ];
    for (text, files, expected) in rows {
        let config = run(text, "m", files).unwrap();
        assert_eq!(config.name, "m");
        let got = [&*config.platform, &*config.backend, &*config.default_model_filename];
        assert_eq!(got, *expected, "{text:?} {files:?}");
    }
}

#[test]
fn platform_implies_a_backend_that_declares_none() {
    const OF_TRITON: Installed = Installed(&[
        ("pytorch", &[("", "model.pt")]),
        ("tensorrt", &[("", "model.plan")]),
        ("onnxruntime", &[("other", "model.other")]),
        ("mine", &[("", "")]),
    ]);
    for (text, expected) in [
        ("platform: 'pytorch_libtorch'", Ok(["pytorch_libtorch", "pytorch", "model.pt"])),
        ("platform: 'libtorch'", Ok(["pytorch_libtorch", "pytorch", "model.pt"])),
        ("platform: 'torch_aoti'", Ok(["torch_aoti", "pytorch", "model.pt2"])),
        ("platform: 'tensorrt_plan'", Ok(["tensorrt_plan", "tensorrt", "model.plan"])),
        (
            "platform: 'pytorch_libtorch' backend: 'tensorrt'",
            Err("unexpected 'platform' and 'backend' pair, got:pytorch_libtorch, tensorrt for m"),
        ),
        // A backend that Triton does not know serves each platform.
        ("platform: 'tensorrt_plan' backend: 'mine'", Ok(["tensorrt_plan", "mine", ""])),
        // It declares platforms, but not this one.
        ("platform: 'onnxruntime_onnx'", Err("it needs the backend 'onnxruntime'")),
        ("platform: 'caffe2_netdef'", Err("it needs the backend 'caffe2', which is not installed")),
    ] {
        let mut config = parse(text);
        let done = complete_config(&mut config, "m", &[listing(1, &[])], &OF_TRITON, None);
        let got = [&*config.platform, &*config.backend, &*config.default_model_filename];
        match (done, expected) {
            (Ok(()), Ok(expected)) => assert_eq!(got, expected, "{text}"),
            (Err(e), Err(part)) => assert!(e.message.contains(part), "{text}: {}", e.message),
            (done, _) => panic!("{text}: {done:?}"),
        }
    }
}

#[test]
fn model_name_may_contain_the_backend() {
    let config = run("", "m.identity", &[]).unwrap();
    assert_eq!(config.backend, "identity");
    assert_eq!(config.default_model_filename, "model.identity");
    let config = run("default_model_filename: 'x'", "m.identity", &[]).unwrap();
    assert_eq!(config.default_model_filename, "x");
}

#[test]
fn incomplete_or_contradictory_configurations_are_refused() {
    use ConfigFault::{Invalid, Unsupported};
    const THERE: &str = "installed backends: onnxruntime (onnxruntime_onnx), tensorflow \
                         (tensorflow_graphdef, tensorflow_savedmodel), identity, python; \
                         searched (--backend-dir): /backends";
    let unknown = "Invalid model name: Could not determine backend for model 'm' with no \
                   backend in model configuration. Expected model name of the form \
                   'model.<backend_name>'.";
    for (text, files, fault, message) in [
        (
            "name: 'n'",
            &[][..],
            Invalid,
            "unexpected directory name 'm' for model 'n', directory name must equal model name"
                .to_owned(),
        ),
        ("", &["readme"][..], Invalid, unknown.to_owned()),
        (
            "ensemble_scheduling {}",
            &[][..],
            Invalid,
            "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble: it \
             needs platform: \"ensemble\""
                .to_owned(),
        ),
        ("default_model_filename: 'm.bin'", &["model.onnx"][..], Invalid, unknown.to_owned()),
        (
            "",
            &["model.plan"][..],
            Unsupported,
            format!(
                "{unknown} Version 1 holds 'model.plan', which needs the backend 'tensorrt', \
                 which is not installed; {THERE}."
            ),
        ),
        (
            "platform: 'tensorrt_plan'",
            &[][..],
            Unsupported,
            format!(
                "unexpected platform type 'tensorrt_plan' for m: it needs the backend \
                 'tensorrt', which is not installed; {THERE}"
            ),
        ),
        (
            "platform: 'mxnet'",
            &[][..],
            Unsupported,
            format!(
                "unexpected platform type 'mxnet' for m: no installed backend serves it; \
                 {THERE}"
            ),
        ),
        (
            "backend: 'tensorrt' platform: 'tensorrt_plan'",
            &[][..],
            Invalid,
            format!(
                "unable to find backend library for backend 'tensorrt', try specifying runtime on the \
                 model configuration. Model 'm' needs it; {THERE}"
            ),
        ),
        (
            "backend: 'onnxruntime' platform: 'tensorflow_graphdef'",
            &[][..],
            Invalid,
            "unexpected 'platform' and 'backend' pair, got:tensorflow_graphdef, onnxruntime \
             for m"
                .to_owned(),
        ),
    ] {
        let error = run(text, "m", files).unwrap_err();
        assert_eq!((error.fault, error.message), (fault, message), "{text:?} {files:?}");
    }
}

#[test]
fn error_says_that_no_backend_is_installed() {
    let mut config = parse("platform: 'custom'");
    let error = complete_config(&mut config, "m", &[], &Installed(&[]), None).unwrap_err();
    assert_eq!(
        error.message,
        "unexpected platform type 'custom' for m: it needs the backend 'custom', which is not \
         installed; installed backends: none; searched (--backend-dir): /backends"
    );
}

#[test]
fn complete_normalise_and_check_in_sequence() {
    let mut config = parse("max_batch_size: 8");
    let versions = [listing(1, &[]), listing(2, &["model.onnx"])];
    complete_config(&mut config, "m", &versions, &TWO, None).unwrap();
    let support = InstanceSupport::every_kind();
    normalise_config(&mut config, &MachineFacts::default(), &support);
    let expected = "name: 'm' platform: 'onnxruntime_onnx' backend: 'onnxruntime' \
         default_model_filename: 'model.onnx' max_batch_size: 8 \
         version_policy { latest { num_versions: 1 } } \
         optimization { input_pinned_memory { enable: true } \
         output_pinned_memory { enable: true } } \
         instance_group { name: 'm' kind: KIND_CPU count: 1 }";
    assert_eq!(config, parse(expected));
    assert_eq!(
        super::super::check_config(&config, &MachineFacts::default(), &support, 1024),
        Ok(vec![])
    );
}

#[test]
fn probed_files_decide_platform_and_name() {
    // Configuration, files of the versions, then platform, backend and file.
    type Row = (&'static str, &'static [&'static [&'static str]], [&'static str; 3]);
    let saved = ["tensorflow_savedmodel", "tensorflow", "resnet"];
    let rows: &[Row] = &[
        ("", &[&["resnet/"]], saved),
        ("", &[&["resnet/", "model.graphdef", "model.onnx"]], saved),
        ("", &[&["model.graphdef"]], ["tensorflow_graphdef", "tensorflow", "model.graphdef"]),
        // A backend without rules of its own: its default file.
        ("", &[&["a/", "b/", "model.onnx"]], ["onnxruntime_onnx", "onnxruntime", "model.onnx"]),
        // An unknown platform is replaced by the detected one.
        ("platform: 'mxnet'", &[&["resnet/"]], saved),
        ("platform: 'tensorflow_saved_model'", &[&["resnet/"]], saved),
        ("platform: 'tensorflow_savedmodel'", &[&["resnet/", "model.onnx"]], saved),
        ("backend: 'tensorflow'", &[&["resnet/"]], saved),
        ("default_model_filename: 'resnet'", &[&["resnet/"]], saved),
        // The default file exists: no backend is asked.
        (
            "platform: 'tensorflow_savedmodel'",
            &[&["model.savedmodel/", "b/"]],
            ["tensorflow_savedmodel", "tensorflow", "model.savedmodel"],
        ),
        (
            "platform: 'tensorflow_graphdef' default_model_filename: 'x'",
            &[&["model.onnx"]],
            ["tensorflow_graphdef", "tensorflow", "x"],
        ),
        // Versions that the policy does not select do not matter, nor do those without a model.
        ("", &[&["old/"], &["resnet/"]], saved),
        ("version_policy { all { } }", &[&["resnet/"], &["readme"], &["resnet/"]], saved),
    ];
    for (text, versions, expected) in rows {
        let config = run_probing(text, versions).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        let got = [&*config.platform, &*config.backend, &*config.default_model_filename];
        assert_eq!(got, *expected, "{text:?} {versions:?}");
    }
}

#[test]
fn ambiguous_or_unrecognised_files_are_named() {
    let two = "expected one directory, found 2";
    for (text, versions, parts) in [
        (
            "",
            &[&["a/", "b/"][..]][..],
            &[
                "Could not determine backend for model 'm'",
                "'/models/m/1' (which contains 'a/', 'b/') holds",
                "no model of platform 'tensorflow_savedmodel': expected one directory, found 2",
                "no model of platform 'tensorflow_graphdef': expected the file 'model.graphdef' alone",
            ][..],
        ),
        (
            "platform: 'tensorflow_savedmodel'",
            &[&["a/", "b/"]],
            &["unable to autofill for 'm': '/models/m/1' (which contains 'a/', 'b/') holds", two],
        ),
        (
            "platform: 'mxnet'",
            &[&["a/", "b/"]],
            &["unexpected platform type 'mxnet' for m: no installed backend serves it", two],
        ),
        ("backend: 'tensorflow'", &[&[]], &["must specify platform for model 'm'", "nothing"]),
        ("platform: 'tensorflow_savedmodel'", &[&[]], &["(which contains nothing) holds"]),
        (
            "default_model_filename: 'other'",
            &[&["resnet/"]],
            &["'resnet' is one, but the configuration names the file 'other'"],
        ),
        (
            "version_policy { all { } }",
            &[&["a/"], &["b/"]],
            &["unable to autofill for 'm' due to multiple versions: version 1 holds 'a' of \
               platform 'tensorflow_savedmodel', version 2 holds 'b' of platform \
               'tensorflow_savedmodel'"],
        ),
        // A platform of a backend that is not installed is not replaced.
        ("platform: 'tensorrt_plan'", &[&["resnet/"]], &["it needs the backend 'tensorrt'"]),
    ] {
        let error = run_probing(text, versions).unwrap_err().message;
        for part in parts {
            assert!(error.contains(part), "{text:?} {versions:?}: no {part:?} in {error:?}");
        }
    }
}
