//! GPUs, with fake libraries of the driver and of NVML in place of the machine's: what is found,
//! metrics, lost devices.

use trtserver_tests::control::{Control, assert_ok};
use trtserver_tests::custom::{Custom, Generation, Mode};
use trtserver_tests::fakes::Fakes;
use trtserver_tests::probe;

const THREE: &str = "Fake A/7.5/1024,Fake B/8.0/2048,Fake C/9.0/4096";
/// UUIDs of the first and the third.
const UUID_A: &str = "GPU-f0f7fe05-0c13-1a21-282f-363d444b5259";
const UUID_C: &str = "GPU-f6fd040b-1219-2027-2e35-3c434a51585f";

/// A library of the legacy interface, which opens on GPUs and takes CPU memory.
fn instances_on_gpu(name: &str, gpu: u32, count: u32, mode: Mode) -> Custom {
    let tensors = "input [ { name: \"INPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ] } ]";
    let group = format!("instance_group [ {{ kind: KIND_GPU gpus: [ {gpu} ] count: {count} }} ]");
    Custom::new(name, tensors).library("identity.c", Generation::V2b).mode(mode).more(&group)
}

/// One instance.
fn on_gpu(name: &str, gpu: u32, mode: Mode) -> Custom {
    instances_on_gpu(name, gpu, 1, mode)
}

#[test]
fn visible_gpus_are_logged_and_measured_by_uuid() {
    let fakes = Fakes::new();
    std::fs::write(fakes.path("energy"), "5000").unwrap();
    let server = fakes
        .server()
        .model("echo", probe("echo", &[]))
        .env("FAKE_CUDA_DEVICES", THREE)
        .env("FAKE_NVML_DEVICES", "3")
        .env("FAKE_NVML_ENERGY", fakes.path("energy"))
        // NVML numbers them the other way round.
        .env("FAKE_CUDA_VISIBLE", "2,0")
        .flag("--metrics-interval-ms=1")
        .start();
    server.wait_for_log("found 2 GPUs supporting NVML metrics");
    server.wait_for_log("  GPU 0: Fake NVML GPU 2");
    server.wait_for_log("  GPU 1: Fake NVML GPU 0");
    let facts = "compute capability 9.0, 4096 MiB, PCI 0000:3D:00.0";
    server.wait_for_log(&format!("found GPU 0: Fake C, {UUID_C}, {facts}"));
    server
        .wait_for_log(&format!("found GPU 1: Fake A, {UUID_A}, compute capability 7.5, 1024 MiB"));
    std::fs::write(fakes.path("energy"), "7500").unwrap();
    for (name, c, a) in [
        ("nv_gpu_utilization", 0.27, 0.25),
        ("nv_gpu_memory_total_bytes", 1073741824.0, 1073741824.0),
        ("nv_gpu_memory_used_bytes", 106954752.0, 104857600.0),
        ("nv_gpu_power_usage", 70.502, 70.5),
        ("nv_gpu_power_limit", 250.0, 250.0),
        ("nv_energy_consumption", 2.5, 2.5),
    ] {
        let value = |uuid: &str| server.metrics(&format!(r#"{name}{{gpu_uuid="{uuid}"}}"#));
        assert_eq!((value(UUID_C), value(UUID_A)), (Some(c), Some(a)), "{name}");
        let rows =
            server.metrics_text().lines().filter(|l| l.starts_with(&format!("{name}{{"))).count();
        assert_eq!(rows, 2, "{name}");
    }
    assert!(server.stop().success());
}

#[test]
fn quantity_that_fails_is_missing_and_the_others_are_there() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .env("FAKE_NVML_FAIL", "nvmlDeviceGetPowerUsage,nvmlDeviceGetTotalEnergyConsumption")
        .flag("--metrics-interval-ms=1")
        .start();
    let warnings = |server: &trtserver_tests::Running| {
        server.process().stderr().matches("GPU 0: cannot read nv_gpu_power_usage: ").count()
    };
    server.poll_until("it is read three times", |server| {
        let text = server.metrics_text();
        assert!(!text.contains("nv_gpu_power_usage") && !text.contains("nv_energy"), "{text}");
        let limit = format!("nv_gpu_power_limit{{gpu_uuid=\"{UUID_A}\"}} 250\n");
        assert!(text.contains(&limit), "{text}");
        warnings(server) == 3
    });
    for _ in 0..5 {
        server.metrics_text();
    }
    assert_eq!(warnings(&server), 3);
}

#[test]
fn missing_or_unusable_libraries_cost_a_log_line() {
    let absent = [
        (Fakes::unusable(), vec![], "GPUs are not used: the CUDA driver cannot be used: "),
        (
            Fakes::new(),
            vec![("FAKE_CUDA_DEVICES", "")],
            "GPUs are not used: the CUDA driver finds no GPU",
        ),
        (
            Fakes::new(),
            vec![("FAKE_CUDA_VISIBLE", ""), ("CUDA_VISIBLE_DEVICES", "")],
            "GPUs are not used: the CUDA driver finds no GPU; the environment has CUDA_VISIBLE_DEVICES=''",
        ),
        (
            Fakes::new(),
            vec![("FAKE_CUDA_VERSION", "9020")],
            "GPUs are not used: the CUDA driver is too old: it supports CUDA 9.2, at least 10.0 is needed",
        ),
        (
            Fakes::new(),
            vec![("FAKE_CUDA_FAIL", "cuInit:0:803")],
            "GPUs are not used: cuInit failed: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        ),
        (
            Fakes::new(),
            vec![("TRITON_SERVER_CPU_ONLY", "1")],
            "GPUs are not used: disabled by the environment",
        ),
    ];
    for (fakes, environment, line) in absent {
        let add = |server: trtserver_tests::Server| {
            environment.iter().fold(server, |server, (name, value)| server.env(name, *value))
        };
        let server = add(fakes.server().model("echo", probe("echo", &[]))).start();
        server.wait_for_log(line);
        assert_eq!(server.infer("echo", "").status, 200);
        assert!(!server.metrics_text().contains("nv_gpu_"));
        assert!(server.stop().success());
        let refused =
            add(fakes.server().custom(on_gpu("graphic", 0, Mode::Local))).refuses_to_start();
        assert!(
            refused.stderr.contains("KIND_GPU but no GPUs are available"),
            "{}",
            refused.stderr
        );
    }
}

#[test]
fn missing_nvml_leaves_out_the_metrics_of_gpus() {
    let fakes = Fakes::without_nvml();
    let server = fakes.server().custom(on_gpu("graphic", 0, Mode::Local)).start();
    server.wait_for_log("GPU metrics are not available: ");
    assert_eq!(server.infer("graphic", "").status, 200);
    assert!(!server.metrics_text().contains("nv_gpu_"));
}

#[test]
fn gpu_instances_have_streams_of_their_own_and_leak_nothing() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .custom(on_gpu("graphic", 0, Mode::Local).more("optimization { priority: PRIORITY_MAX }"))
        .custom(on_gpu("isolated", 0, Mode::Isolated))
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .flag("--cuda-memory-pool-byte-size=0:1048576")
        .start();
    server.wait_for_log_with(&[
        "model 'graphic' instance graphic_0_0_gpu0: ",
        ", stream priority -5",
    ]);
    assert_eq!(server.infer("graphic", "").status, 200);
    assert_eq!(server.infer("isolated", "").status, 200);
    for model in ["graphic", "isolated"] {
        let labels = format!(r#"{{gpu_uuid="{UUID_A}",model="{model}",version="1"}}"#);
        for name in ["nv_inference_count", "nv_inference_load_ratio_count"] {
            assert_eq!(server.metrics(&format!("{name}{labels}")), Some(1.0), "{name}{labels}");
        }
        let without = format!(r#"nv_inference_count{{model="{model}",version="1"}}"#);
        assert_eq!(server.metrics(&without), None);
    }
    assert!(server.stop().success());
    let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
    // Three by the server, three by the child.
    assert_eq!(calls.matches(" call cuStreamCreateWithPriority ").count(), 6, "{calls}");
    for leak in ["device_bytes", "streams", "ipc_open", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

#[test]
fn lost_device_takes_its_models_out_of_service_and_no_others() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .flag("--model-control-mode=explicit")
        .custom(on_gpu("first", 0, Mode::Local))
        .custom(on_gpu("second", 1, Mode::Local))
        .custom(on_gpu("late", 0, Mode::Local))
        .model("cpu", probe("cpu", &[]) + "instance_group [ { kind: KIND_CPU } ]\n")
        .env("FAKE_CUDA_DEVICES", THREE)
        // Each instance creates three streams.
        .env("FAKE_CUDA_FAIL", "cuStreamCreateWithPriority:7:700")
        .start();
    for name in ["first", "second", "cpu"] {
        assert_ok(server.load(name));
        assert_eq!(server.infer(name, "").status, 200, "{name}");
    }
    let lost = "GPU 0 is lost: cuStreamCreateWithPriority failed: CUDA_ERROR_ILLEGAL_ADDRESS";
    let refused = server.load("late");
    assert!(refused.status >= 400 && refused.text().contains(lost), "{}", refused.text());
    server.wait_for_log(lost);
    assert_eq!(server.get("/v2/models/first/ready").status, 400);
    let failed = server.infer("first", "");
    assert_eq!(failed.status, 503, "{}", failed.text());
    assert!(failed.text().contains(lost), "{}", failed.text());
    let index = server.index().to_string();
    assert!(index.contains(lost), "{index}");
    for name in ["second", "cpu"] {
        assert_eq!(server.infer(name, "").status, 200, "{name}");
        assert_eq!(server.get(&format!("/v2/models/{name}/ready")).status, 200, "{name}");
    }
    // Nothing more can be opened there, and nothing hangs.
    let again = server.load("late");
    assert!(again.text().contains("GPU 0 is lost"), "{}", again.text());
    assert!(server.stop().success());
}

#[test]
fn process_of_an_isolated_model_ends_when_its_device_is_lost() {
    let fakes = Fakes::new();
    let server = fakes
        .server()
        .flag("--model-control-mode=explicit")
        .custom(instances_on_gpu("twice", 0, 2, Mode::Isolated))
        .custom(on_gpu("once", 0, Mode::Isolated))
        // In each process: of the second instance.
        .env("FAKE_CUDA_FAIL", "cuStreamCreateWithPriority:4:700")
        .start();
    let refused = server.load("twice");
    assert!(refused.status >= 400, "{}", refused.text());
    let text = refused.text();
    // From the instance, or from the end of the process, whichever the server reads first.
    assert!(text.contains("GPU 0 is lost: "), "{text}");
    // The device of the other processes is not lost.
    assert_ok(server.load("once"));
    assert_eq!(server.infer("once", "").status, 200);
    assert!(server.stop().success());
}
