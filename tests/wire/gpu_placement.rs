//! Placement of instances on GPUs that a fake driver reports: kinds, GPU numbers, compute
//! capabilities, model files.

use serde_json::{Value, json};
use trtserver_tests::custom::{Custom, Generation, tensors};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Running, Server, backends, compile_c, folder, probe};

const TWO: &str = "Fake A/7.5/1024,Fake B/8.0/2048";

fn group(server: &Running, model: &str) -> [Value; 2] {
    let config = server.get(&format!("/v2/models/{model}/config")).json();
    let group = &config["instance_group"][0];
    [group["kind"].clone(), group["gpus"].clone()]
}

fn addsub(name: &str) -> Custom {
    let inputs = tensors("input", &[("INPUT0", "INT32", "1"), ("INPUT1", "INT32", "1")]);
    let outputs = tensors("output", &[("OUTPUT0", "INT32", "1"), ("OUTPUT1", "INT32", "1")]);
    Custom::new(name, &(inputs + &outputs)).library("addsub.c", Generation::B)
}

/// Checks the result of one request to a model of [`addsub`].
fn assert_adds(server: &Running, model: &str) {
    let body = json!({ "inputs": [
        { "name": "INPUT0", "datatype": "INT32", "shape": [1, 1], "data": [5] },
        { "name": "INPUT1", "datatype": "INT32", "shape": [1, 1], "data": [2] },
    ] });
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], body.to_string());
    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(response.json()["outputs"][0]["data"], json!([7]));
}

#[test]
fn instances_are_placed_on_every_usable_gpu() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .env("FAKE_CUDA_DEVICES", TWO)
        .custom(addsub("auto").more("instance_group [ { count: 2 } ]"))
        .custom(addsub("one").more("instance_group [ { gpus: 1 } ]"))
        .custom(addsub("cpu").more("instance_group [ { kind: KIND_CPU } ]"))
        .start();
    assert_eq!(group(&server, "auto"), [json!("KIND_GPU"), json!([0, 1])]);
    assert_eq!(group(&server, "one"), [json!("KIND_GPU"), json!([1])]);
    assert_eq!(group(&server, "cpu"), [json!("KIND_CPU"), json!([])]);
    for line in [
        "Creating instance auto_0_0_gpu0 on GPU 0 (7.5) using libcustom.so",
        "Creating instance auto_0_1_gpu0 on GPU 0 (7.5) using libcustom.so",
        "Creating instance auto_0_0_gpu1 on GPU 1 (8.0) using libcustom.so",
        "Creating instance auto_0_1_gpu1 on GPU 1 (8.0) using libcustom.so",
        "Creating instance one_0_0_gpu1 on GPU 1 (8.0) using libcustom.so",
        "Creating instance cpu_0_0_cpu on CPU using libcustom.so",
    ] {
        server.wait_for_log(line);
    }
    for model in ["auto", "one", "cpu"] {
        assert_adds(&server, model);
    }
    assert!(server.stop().success());
}

#[test]
fn backend_without_gpu_instances_is_served_on_the_cpu_of_a_machine_with_gpus() {
    let (fakes, plugins) = (Fakes::new(), folder());
    compile_c("tests/plugins/c-addsub/addsub.c", plugins.path(), "c_addsub");
    let tensor = |name: &str| format!("{{ name: \"{name}\" data_type: TYPE_FP32 dims: [ 1 ] }}");
    let config = |name: &str, more: &str| {
        format!(
            "name: \"{name}\"\nbackend: \"c_addsub\"\ninput [ {}, {} ]\noutput [ {}, {} ]\n{more}",
            tensor("INPUT0"),
            tensor("INPUT1"),
            tensor("OUTPUT0"),
            tensor("OUTPUT1"),
        )
    };
    let server = |models: &[(&str, &str)]| {
        let server = fakes.server().env("FAKE_CUDA_DEVICES", TWO).backend_dir(plugins.path());
        models.iter().fold(server, |server, (name, more)| server.model(name, config(name, more)))
    };
    let running = server(&[("none", ""), ("auto", "instance_group [ { count: 3 } ]\n")]).start();
    for model in ["none", "auto"] {
        assert_eq!(group(&running, model), [json!("KIND_CPU"), json!([])], "{model}");
        let input = |name: &str, value: f32| json!({ "name": name, "datatype": "FP32", "shape": [1], "data": [value] });
        let body = json!({ "inputs": [input("INPUT0", 5.0), input("INPUT1", 2.0)] }).to_string();
        let response = running.post(&format!("/v2/models/{model}/infer"), &[], body);
        assert_eq!(response.json()["outputs"][0]["data"], json!([7.0]), "{}", response.text());
    }
    assert!(running.stop().success());
    for more in ["instance_group [ { kind: KIND_GPU } ]\n", "instance_group [ { gpus: 0 } ]\n"] {
        let refused = server(&[("m", more)]).refuses_to_start();
        let text = "instance group m_0 of model m has kind KIND_GPU but backend 'c_addsub' opens \
                    only instances of KIND_CPU and KIND_MODEL";
        assert!(refused.stderr.contains(text), "{}", refused.stderr);
    }
}

#[test]
fn gpus_that_do_not_exist_are_refused_with_those_that_do() {
    let fakes = Fakes::new();
    let refused = |gpus: &str, more: fn(Server) -> Server| {
        let config = probe("m", &[])
            + &format!("instance_group [ {{ kind: KIND_GPU gpus: [ {gpus} ] }} ]\n");
        let server = fakes.server().env("FAKE_CUDA_DEVICES", TWO).backend_dir(backends());
        more(server.model("m", config)).refuses_to_start().stderr
    };
    let text = refused("1, 2", |server| server);
    let want = "instance group m_0 of model m specifies invalid or unsupported gpu id 2. GPUs with \
                at least the minimum required CUDA compute compatibility of 0.000000 are: 0, 1";
    assert!(text.contains(want), "{text}");
    let text = refused("0", |server| server.flag("--min-supported-compute-capability=8"));
    let want = "specifies invalid or unsupported gpu id 0. GPUs with at least the minimum required \
                CUDA compute compatibility of 8.000000 are: 1; GPU 0 (Fake A) has 7.5";
    assert!(text.contains(want), "{text}");
}

#[test]
fn gpus_below_the_minimum_compute_capability_are_named_and_not_used() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .env("FAKE_CUDA_DEVICES", TWO)
        .flag("--min-supported-compute-capability=8.0")
        .custom(addsub("auto").more("instance_group [ {} ]"))
        .start();
    server.wait_for_log(
        "GPU 0 (Fake A) is not used: its compute capability 7.5 is below 8, the value of \
         --min-supported-compute-capability",
    );
    assert_eq!(group(&server, "auto"), [json!("KIND_GPU"), json!([1])]);
    assert_adds(&server, "auto");
}

#[test]
fn model_file_is_chosen_by_the_compute_capability_of_each_gpu() {
    let fakes = Fakes::new();
    for isolation in ["none", "process"] {
        let library = trtserver_tests::custom::library("addsub.c", Generation::B, &[]);
        let files = r#"cc_model_filenames [ { key: "8.0" value: "ampere.so" } ]
                       cc_model_filenames [ { key: "9.0" value: "nowhere.so" } ]"#;
        let server = fakes
            .server()
            .env("FAKE_CUDA_DEVICES", TWO)
            .custom(
                addsub("m")
                    .parameter("isolation", isolation)
                    .more(files)
                    .more("instance_group [ { kind: KIND_GPU }, { kind: KIND_CPU } ]"),
            )
            .file("m/1/ampere.so", library.as_slice())
            .start();
        for (instance, file) in [
            ("m_0_0_gpu0", "libcustom.so"),
            ("m_0_0_gpu1", "ampere.so"),
            ("m_1_0_cpu", "libcustom.so"),
        ] {
            let loaded = format!("/m/1/{file} is treated as a library of generation B");
            server.wait_for_log_with(&[&format!("instance '{instance}': "), &loaded]);
        }
        for _ in 0..20 {
            assert_adds(&server, "m");
        }
        assert!(server.stop().success(), "{isolation}");
    }
}
