//! Copies of the next batch to a GPU while one runs, with test doubles of ONNX Runtime and of the
//! CUDA driver. Nothing here is a result on a GPU.

use crate::onnx_gpu::{OnnxModel, computes, parameter, server};
use std::fs::read_to_string;
use trtserver_tests::fakes::Fakes;

/// Copies that are queued on the stream for copies to the device (`in`) and kernels that begin, as
/// the fake driver logs them. The streams of an instance have one number after the other: compute,
/// copies to the device.
fn uploads_and_kernels(fakes: &Fakes) -> Vec<&'static str> {
    let log = read_to_string(fakes.path("calls")).unwrap_or_default();
    let event = |line: &str| match line.split(' ').collect::<Vec<_>>()[1..] {
        ["call", "cuMemcpyAsync", "2", _] => Some("in"),
        ["begin", "add", "1", _] => Some("add"),
        _ => None,
    };
    log.lines().filter_map(event).collect()
}

#[test]
fn next_batch_is_copied_while_one_runs_with_eager_batching() {
    let sizes = parameter("batch_buckets", "0");
    for (field, eager) in [("optimization { eager_batching: true }", true), ("", false)] {
        let fakes = Fakes::new();
        let more = format!("{field}\n{sizes}");
        let server = server(&fakes)
            .env("FAKE_CUDA_LOG", fakes.path("calls"))
            .env("FAKE_CUDA_DELAY_US", "10000")
            .onnx("gpu", "instance_group { kind: KIND_GPU }", &more)
            .onnx("cpu", "instance_group { kind: KIND_CPU }", field)
            .onnx(
                "isolated",
                "instance_group { kind: KIND_GPU }",
                &(more + &parameter("isolation", "process")),
            )
            .start();
        if eager {
            server.wait_for_log_with(&[
                "model 'isolated' instance isolated_0_0_gpu0: 'optimization.eager_batching'",
                "has no effect: it is executed by another process",
            ]);
            server.wait_for_log(
                "'optimization.eager_batching' has no effect: inputs are copied ahead to GPUs",
            );
        }
        // Two requests of five rows do not fit into one batch.
        std::thread::scope(|scope| {
            for caller in 0..6 {
                let server = &server;
                scope.spawn(move || {
                    (0..2).for_each(|i| computes(server, "gpu", 5, 10 * caller + i))
                });
            }
        });
        assert!(server.stop().success());
        let events = uploads_and_kernels(&fakes);
        assert!(events.contains(&"add"), "no kernel has run: {events:?}");
        // Two batches are copied before the first one runs.
        let ahead = events.windows(2).any(|two| two == ["in", "in"]);
        assert_eq!(ahead, eager, "{events:?}");
        for leak in ["device_blocks", "device_bytes", "streams", "double_frees", "bad_handles"] {
            assert_eq!(fakes.reported(leak), 0, "{leak}");
        }
    }
}
