//! Device memory of TensorRT in the ledger, and its exhaustion at load and at run.

use super::*;
use trtserver_tests::control::{Control, assert_ok};

const WEIGHTS: u64 = 3 << 20;
const SCRATCH: u64 = 1 << 20;

fn weighty(major: u32, weights: u64, scratch: u64) -> Plan {
    Plan::scale(major).line(&format!("weights {weights}")).line(&format!("scratch {scratch}"))
}

/// Bytes on GPUs that the ledger shows.
fn on_gpu(server: &Running) -> u64 {
    let report = server.get("/v2/trtserver/memory").json();
    let totals = report["totals"].as_array().into_iter().flatten();
    totals.filter(|e| e["type"] == "GPU").filter_map(|e| e["byte_size"].as_u64()).sum()
}

#[test]
fn memory_of_engine_and_contexts_is_in_the_ledger_and_given_back() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let group = "instance_group { kind: KIND_GPU count: 2 }";
        let plan = weighty(major, WEIGHTS, SCRATCH).line("shared-profiles");
        let server = model(fakes.server(), "m", scale_config("m", group), &plan)
            .flag("--model-control-mode=explicit")
            .start();
        for _ in 0..3 {
            assert_ok(server.load("m"));
            scales(&server, "m", 4);
            let held = on_gpu(&server);
            let expected = WEIGHTS + 2 * SCRATCH;
            // What the loads before have held is used again.
            assert!((expected..expected + (1 << 20)).contains(&held), "{major}: {held}");
            assert_ok(server.unload("m"));
        }
        stops(server, &fakes);
    }
}

#[test]
fn plan_that_does_not_fit_is_refused_and_others_serve() {
    for (weights, scratch) in [(100 << 20, 0), (0, 100 << 20)] {
        for major in MAJORS {
            let fakes = Fakes::with_tensorrt(&[major]);
            let server = model(
                fakes.server(),
                "huge",
                scale_config("huge", ""),
                &weighty(major, weights, scratch),
            );
            let server = model(server, "m", scale_config("m", ""), &Plan::scale(major))
                .env("FAKE_CUDA_DEVICES", "Small/7.5/64")
                .flag("--exit-on-error=false")
                .start();
            let index = server.post("/v2/repository/index", &[], "").text();
            for part in ["huge/1/model.plan", "GPU 0 is out of memory", "104857600"] {
                assert!(index.contains(part), "{major}: no {part:?} in {index}");
            }
            scales(&server, "m", 2);
            stops(server, &fakes);
        }
    }
}

#[test]
fn output_that_does_not_fit_fails_its_own_request() {
    for major in MAJORS {
        let fakes = Fakes::with_tensorrt(&[major]);
        let plan = Plan::new(major)
            .line("input X FP32 4")
            .line("input SHAPE INT32 2 shape")
            .line("output Y FP32 -1x-1")
            .line("profile 0 SHAPE 1,1 2,2 100000,100000")
            .line("Y = resize X SHAPE");
        let config = "name: \"m\" platform: \"tensorrt_plan\"
            input [ { name: \"X\" data_type: TYPE_FP32 dims: [ 4 ] },
                    { name: \"SHAPE\" data_type: TYPE_INT32 dims: [ 2 ] is_shape_tensor: true } ]
            output { name: \"Y\" data_type: TYPE_FP32 dims: [ -1, -1 ] }";
        let server = model(fakes.server(), "m", config, &plan)
            .env("FAKE_CUDA_DEVICES", "Small/7.5/16")
            .start();
        let send = |shape: [usize; 2]| {
            let x = tensor("X", "FP32", &[4], json!([1.0, 2.0, 3.0, 4.0]));
            infer(&server, "m", &[x, tensor("SHAPE", "INT32", &[2], json!(shape))])
        };
        outputs(&send([2, 3]));
        let refused = send([10_000, 10_000]);
        assert_eq!(refused.status, 429, "{}", refused.text());
        assert!(refused.text().contains("GPU 0 is out of memory"), "{}", refused.text());
        outputs(&send([3, 2]));
        assert_eq!(server.get("/v2/models/m/ready").status, 200);
        stops(server, &fakes);
    }
}
