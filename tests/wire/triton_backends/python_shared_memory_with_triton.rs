//! Shared-memory objects of Triton's Python backend, and who removes them.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::kill;
use trtserver_tests::triton::Triton;
use trtserver_tests::{Running, Server};

fn server(isolation: &str) -> Server {
    explicit()
        .triton_start_line()
        .backend_dir(Triton::backends())
        .copy_model("tests/triton/models/metrics")
        .flag(format!("--backend-config=python,isolation={isolation}"))
}

/// Names in the folder of shared memory that begin like this.
fn objects(prefix: &str) -> Vec<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// Objects of the processes of this server, without the lock by which it is known to live.
fn objects_of(server: &Running) -> Vec<String> {
    let all = objects(&format!("trtserver_{}_", server.process().pid().as_raw_nonzero()));
    all.into_iter().filter(|name| !name.ends_with("_lock")).collect()
}

/// A process and what descends from it, the youngest generation last.
fn family(pid: Pid) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<(Pid, Pid)> = entries
        .filter_map(|entry| {
            let pid = Pid::from_raw(entry.file_name().to_str()?.parse().ok()?)?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, Pid::from_raw(parent)?))
        })
        .collect();
    let mut family = vec![pid];
    let mut at = 0;
    while let Some(&parent) = family.get(at) {
        family.extend(all.iter().filter(|(_, of)| *of == parent).map(|(child, _)| *child));
        at += 1;
    }
    family
}

#[test]
fn objects_of_a_killed_process_are_removed() {
    let server = server("process").start();
    assert_ok(server.load("metrics"));
    let before = objects_of(&server);
    assert!(!before.is_empty(), "the backend has no shared memory");
    kill(&server, "metrics");
    server.wait_for_log("shared-memory objects that it has left behind");
    server.poll_until("it is removed", |server| {
        objects_of(server).iter().all(|name| !before.contains(name))
    });
    server.poll_until("it is served again", |s| s.get("/v2/models/metrics/ready").status == 200);
    assert_ok(server.unload("metrics"));
    server.poll_until("it leaves none", |server| objects_of(server).is_empty());
    let prefix = format!("trtserver_{}_", server.process().pid().as_raw_nonzero());
    assert!(server.stop().success());
    assert_eq!(objects(&prefix), [""; 0], "not even a lock");
}

/// A server that was killed with all its processes cannot remove them. The next one does, and
/// leaves those of a live one.
#[test]
fn objects_of_a_killed_server_are_removed_by_the_next() {
    let alive = server("process").start();
    assert_ok(alive.load("metrics"));
    let kept = objects_of(&alive);
    assert!(!kept.is_empty());
    for isolation in ["process", "none"] {
        let killed = server(isolation).start();
        assert_ok(killed.load("metrics"));
        let left = objects_of(&killed);
        assert!(!left.is_empty(), "{isolation}: the names of its objects have no prefix");
        // Stopped first, it sees nothing of the end of the others.
        killed.signal(Signal::STOP);
        for pid in family(killed.process().pid()).into_iter().rev() {
            let _ = kill_process(pid, Signal::KILL);
        }
        killed.wait();
        // A server of another test may be the next.
        let next = server("process").start();
        next.poll_until("they are removed", |_| objects_of(&killed).is_empty());
        assert!(next.stop().success());
    }
    assert_eq!(objects_of(&alive), kept);
    assert!(alive.stop().success());
}

/// A response of as many bytes as COUNT says. The limit of the process stands for a full
/// `/dev/shm`.
const LARGE: &str = "import resource

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, 4 << 20))

    def execute(self, requests):
        counts = [int(pb_utils.get_input_tensor_by_name(r, 'COUNT').as_numpy()[0]) for r in requests]
        tensors = [pb_utils.Tensor('BYTES', np.zeros(count, np.uint8)) for count in counts]
        return [pb_utils.InferenceResponse([tensor]) for tensor in tensors]
";

#[test]
fn response_without_room_in_shared_memory_is_an_error() {
    let config = "backend: \"python\"\nmax_batch_size: 0\n\
        input [ { name: \"COUNT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n\
        output [ { name: \"BYTES\" data_type: TYPE_UINT8 dims: [ -1 ] } ]\n\
        instance_group [ { kind: KIND_CPU count: 1 } ]\n";
    for isolation in ["process", "none"] {
        let server = server(isolation).model("large", config).file("large/1/model.py", LARGE);
        let server = server.start();
        assert_ok(server.load("large"));
        for (count, fits) in [(10, true), (100_000_000, false), (100_000, true), (5_000_000, false)]
        {
            let given = serde_json::json!({"name": "COUNT", "datatype": "INT32", "shape": [1], "data": [count]});
            let body = serde_json::json!({"inputs": [given]}).to_string();
            let response = server.post("/v2/models/large/infer", &[], body);
            assert_eq!(response.status == 200, fits, "{isolation}, {count}: {}", response.text());
            if !fits {
                let says = response.error_text();
                assert!(says.contains("large") && says.contains("shared memory"), "{says}");
            }
        }
        assert!(server.stop().success(), "{isolation}");
    }
}
