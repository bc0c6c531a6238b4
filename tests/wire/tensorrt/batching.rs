//! Batches: dynamic batching, the implicit batch dimension of TensorRT 8, several instances.

use super::*;

fn executions(fakes: &Fakes, major: u32) -> u64 {
    fakes.reported(&format!("nvinfer_executions_{major}"))
}

#[test]
fn requests_that_wait_together_are_one_execution() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let batching = "dynamic_batching { preferred_batch_size: [ 8 ] }";
        let server = scaling(&fakes, major, batching).env("TRTSERVER_DELAY_SCHEDULER", "4").start();
        std::thread::scope(|scope| {
            for rows in [1, 2, 3, 2] {
                let server = &server;
                scope.spawn(move || scales(server, "m", rows));
            }
        });
        stops(server, &fakes);
        assert_eq!(executions(&fakes, major), 1);
    }
}

/// Y = X * 2.5 of an engine that does not name its batch dimension.
fn implicit(largest: u32) -> Plan {
    Plan::new(8)
        .line(&format!("implicit {largest}"))
        .line("input X FP32 4")
        .line("output Y FP32 4")
        .line("Y = scale X 2.5")
}

#[test]
fn implicit_batch_dimension_is_served_and_completed() {
    let fakes = Fakes::with_tensorrt(&[8]);
    let server = model(fakes.server(), "m", scale_config("m", ""), &implicit(8))
        .file("bare/1/model.plan", implicit(6).bytes())
        .flag("--strict-model-config=false")
        .start();
    for rows in [1, 8, 3] {
        scales(&server, "m", rows);
    }
    let config = server.get("/v2/models/bare/config").json();
    assert_eq!(config["max_batch_size"], 6, "{config}");
    assert_eq!(config["input"][0]["dims"], json!([4]), "{config}");
    scales(&server, "bare", 6);
    stops(server, &fakes);
}

#[test]
fn batch_size_beyond_that_of_the_plan_is_refused_at_load() {
    for (major, plan) in [(8, implicit(4)), (10, Plan::scale(10))] {
        let fakes = Fakes::with_tensorrt(&[major]);
        let config = scale_config("m", "").replace("max_batch_size: 8", "max_batch_size: 16");
        let refused = model(fakes.server(), "m", config, &plan).refuses_to_start().stderr;
        let largest = if major == 8 { "4" } else { "8" };
        for part in ["m/1/model.plan", "16", largest] {
            assert!(refused.contains(part), "no {part:?} in {refused}");
        }
        leaks_nothing(&fakes);
    }
}

#[test]
fn instances_execute_at_the_same_time_on_streams_of_their_own() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::scale(major).line("shared-profiles").line("sleep 200000");
        let group = "instance_group { kind: KIND_GPU count: 3 }\ndynamic_batching { }";
        // Six batches, of which an instance takes two at a time.
        let server = model(fakes.server(), "m", scale_config("m", group), &plan)
            .env("FAKE_CUDA_LOG", fakes.path("calls"))
            .env("TRTSERVER_DELAY_SCHEDULER", "6")
            .start();
        std::thread::scope(|scope| {
            for _ in 0..6 {
                let server = &server;
                scope.spawn(move || scales(server, "m", 8));
            }
        });
        stops(server, &fakes);
        let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
        let begun = calls.lines().filter(|line| line.contains(" begin nvinfer "));
        let streams: std::collections::HashSet<_> =
            begun.filter_map(|line| line.split(' ').nth(3)).collect();
        assert_eq!(streams.len(), 3, "{streams:?}");
    }
}

/// A profile of TensorRT 8 belongs to one context, unless the engine was built to share it.
#[test]
fn second_instance_on_a_profile_that_cannot_be_shared_is_refused_or_has_its_own_engine() {
    let fakes = Fakes::with_tensorrt(&[8]);
    let group = "instance_group { kind: KIND_GPU count: 2 }";
    let server = scaling(&fakes, 8, group).flag("--exit-on-error=false").start();
    if server.get("/v2/models/m/ready").status == 200 {
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| scales(&server, "m", 2));
            }
        });
    } else {
        let index = server.post("/v2/repository/index", &[], "").text();
        assert!(index.contains("Profile 0 has been chosen by another"), "{index}");
    }
    stops(server, &fakes);
}

#[test]
fn sequence_of_ensemble_steps_keeps_tensors_on_the_gpu() {
    let fakes = Fakes::with_tensorrt(&[10, 11]);
    let map = |kind: &str, key: &str, value: &str| {
        format!("{kind}_map {{ key: \"{key}\" value: \"{value}\" }} ")
    };
    let step = |name: &str, from: &str, to: &str| {
        format!(
            "step {{ model_name: \"{name}\" model_version: -1 {}{}}}",
            map("input", "X", from),
            map("output", "Y", to)
        )
    };
    let ensemble = scale_config("both", "").replace("tensorrt_plan", "ensemble")
        + &format!("ensemble_scheduling {{ {} {} }}", step("a", "X", "mid"), step("b", "mid", "Y"));
    let server = model(fakes.server(), "a", scale_config("a", ""), &Plan::scale(10));
    let server = model(server, "b", scale_config("b", ""), &Plan::scale(11))
        .model("both", ensemble)
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .start();
    let outputs = outputs(&send_rows(&server, "both", 2));
    assert_eq!(outputs["Y"]["data"][7].as_f64(), Some(7.0 * 6.25));
    stops(server, &fakes);
    let calls = std::fs::read_to_string(fakes.path("calls")).unwrap();
    // The input of the first step, the output of the second.
    assert_eq!(calls.lines().filter(|line| line.contains(" begin copy ")).count(), 2, "{calls}");
}
