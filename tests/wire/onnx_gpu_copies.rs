//! Copies of the next batch to a GPU while one runs, with test doubles of ONNX Runtime and of the
//! CUDA driver. Nothing here is a result on a GPU.

use crate::onnx_gpu::{OnnxModel, computes, parameter, send, server};
use std::fs::read_to_string;
use std::thread::{Scope, ScopedJoinHandle};
use trtserver_tests::control::Control;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::{Response, Running, Server, Signal};

/// Copies that are queued on the stream for copies to the device (`in`), and kernels that begin
/// (`add`) and end (`added`), as the fake driver logs them. The streams of an instance have one number
/// after the other: compute, copies to the device.
fn uploads_and_kernels(fakes: &Fakes) -> Vec<&'static str> {
    let log = read_to_string(fakes.path("calls")).unwrap_or_default();
    let event = |line: &str| match line.split(' ').collect::<Vec<_>>()[1..] {
        ["call", "cuMemcpyAsync", "2", _] => Some("in"),
        ["begin", "add", "1", _] => Some("add"),
        ["end", "add", "1", _] => Some("added"),
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
        nothing_leaks(&fakes);
    }
}

fn nothing_leaks(fakes: &Fakes) {
    for leak in ["device_blocks", "device_bytes", "streams", "double_frees", "bad_handles"] {
        assert_eq!(fakes.reported(leak), 0, "{leak}");
    }
}

/// A server with a driver whose kernels do not end before [`release_kernels`].
fn holding(fakes: &Fakes, field: &str) -> Server {
    fakes.write("hold", "");
    server(fakes)
        .env("FAKE_CUDA_LOG", fakes.path("calls"))
        .env("FAKE_CUDA_HOLD", fakes.path("hold"))
        .flag("--model-control-mode=explicit")
        .flag("--load-model=gpu")
        .onnx(
            "gpu",
            "instance_group { kind: KIND_GPU }",
            &format!("{field}\n{}", parameter("batch_buckets", "0")),
        )
}

const EAGER: &str = "optimization { eager_batching: true }";

fn release_kernels(fakes: &Fakes) {
    std::fs::remove_file(fakes.path("hold")).unwrap_or_else(|e| panic!("hold: {e}"));
}

fn wait_for_events(server: &Running, fakes: &Fakes, event: &str, count: usize) {
    server.poll_until(&format!("{count} times {event}"), |_| {
        uploads_and_kernels(fakes).iter().filter(|found| **found == event).count() >= count
    });
}

/// A request whose kernel is held.
fn start_run<'s>(
    scope: &'s Scope<'s, '_>,
    server: &'s Running,
    fakes: &Fakes,
) -> ScopedJoinHandle<'s, Response> {
    let first = scope.spawn(|| send(server, "gpu", 5, 1));
    wait_for_events(server, fakes, "add", 1);
    first
}

/// A request that arrives during the run, and is copied.
fn copy_during_run<'s>(
    scope: &'s Scope<'s, '_>,
    server: &'s Running,
    fakes: &Fakes,
) -> ScopedJoinHandle<'s, Response> {
    let second = scope.spawn(|| send(server, "gpu", 5, 2));
    wait_for_events(server, fakes, "in", 2);
    second
}

#[test]
fn request_that_arrives_during_a_run_is_copied_before_its_end() {
    for (field, eager) in [(EAGER, true), ("", false)] {
        let fakes = Fakes::new();
        let server = holding(&fakes, field).start();
        std::thread::scope(|scope| {
            let first = start_run(scope, &server, &fakes);
            let second = scope.spawn(|| computes(&server, "gpu", 5, 2));
            match eager {
                true => wait_for_events(&server, &fakes, "in", 2),
                false => server.poll_until("a request that waits", |server| {
                    server.metrics_text().lines().any(|line| {
                        line.starts_with("nv_inference_pending_request_count{")
                            && line.ends_with(" 1")
                    })
                }),
            }
            release_kernels(&fakes);
            assert_eq!(first.join().unwrap().status, 200);
            second.join().unwrap();
        });
        // And when the thread of the instance has waited for a request.
        computes(&server, "gpu", 5, 3);
        assert!(server.stop().success());
        let events = uploads_and_kernels(&fakes);
        let copies = events.iter().enumerate().filter(|(_, event)| **event == "in");
        let second = copies.map(|(position, _)| position).nth(1).unwrap();
        let ended = events.iter().position(|event| *event == "added").unwrap();
        assert_eq!(second < ended, eager, "{events:?}");
        nothing_leaks(&fakes);
    }
}

#[test]
fn model_is_unloaded_and_the_server_stops_during_a_run_with_and_without_a_copied_batch() {
    for (unload, copied) in [(true, true), (true, false), (false, true), (false, false)] {
        let fakes = Fakes::new();
        let server = holding(&fakes, EAGER).start();
        std::thread::scope(|scope| {
            let first = start_run(scope, &server, &fakes);
            let second = copied.then(|| copy_during_run(scope, &server, &fakes));
            if unload {
                scope.spawn(|| assert_eq!(server.unload("gpu").status, 200));
                server.wait_for_log("unloading: gpu:1");
            } else {
                server.signal(Signal::TERM);
            }
            release_kernels(&fakes);
            for request in [Some(first), second].into_iter().flatten() {
                assert_eq!(request.join().unwrap().status, 200, "{unload} {copied}");
            }
        });
        // A second signal would end it at once.
        let ended = if unload { server.stop() } else { server.wait().status };
        assert!(ended.success(), "{unload} {copied}");
        nothing_leaks(&fakes);
    }
}

#[test]
fn copied_batch_fails_with_the_reason_when_the_device_is_lost() {
    let fakes = Fakes::new();
    // The copy of the second request: after those of the weights and of the first one.
    let server = holding(&fakes, EAGER).env("FAKE_CUDA_FAIL", "cuMemcpyAsync:3:700").start();
    std::thread::scope(|scope| {
        let first = start_run(scope, &server, &fakes);
        let second = send(&server, "gpu", 5, 2);
        release_kernels(&fakes);
        for response in [first.join().unwrap(), second, send(&server, "gpu", 5, 3)] {
            assert_eq!(response.status, 503, "{}", response.text());
            assert!(response.text().contains("GPU 0 is lost: "), "{}", response.text());
        }
    });
    assert!(server.stop().success());
    assert_eq!((fakes.reported("double_frees"), fakes.reported("bad_handles")), (0, 0));
}
