//! `--host-policy`: the cores of the threads that execute a model, in the server and in the process
//! of an isolated model. `--model-load-gpu-limit`: loads on a GPU that a fake driver reports.

use rustix::process::Pid;
use std::collections::BTreeSet;
use std::fs;
use trtserver_tests::fakes::Fakes;
use trtserver_tests::isolated::{isolated, process};
use trtserver_tests::{Server, probe};

/// The fields of each thread of a process: name, `Cpus_allowed_list`.
fn threads(process: Pid) -> Vec<(String, String)> {
    let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
    let tasks = fs::read_dir(&tasks).unwrap_or_else(|e| panic!("{tasks}: {e}"));
    let statuses =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {status}")).trim().to_owned()
    };
    statuses.map(|s| (field(&s, "Name"), field(&s, "Cpus_allowed_list"))).collect()
}

/// The cores of all threads with this name.
fn cores(process: Pid, name: &str) -> BTreeSet<String> {
    let of = threads(process).into_iter().filter(|(thread, _)| thread == name);
    of.map(|(_, cores)| cores).collect()
}

#[test]
fn instances_run_on_the_cores_of_their_policy() {
    let own = threads(rustix::process::getpid());
    let all = own[0].1.clone();
    let last = all.rsplit([',', '-']).next().unwrap();
    let group = |policy: &str| {
        format!("instance_group {{ kind: KIND_CPU count: 2 host_policy: \"{policy}\" }}\n")
    };
    let server = Server::new()
        .model("named", probe("named", &[]) + &group("mine"))
        .model("apart", isolated("apart", &[]) + &group("mine"))
        .model("free", probe("free", &[]) + &group("other"))
        .model("plain", probe("plain", &[]) + "instance_group { kind: KIND_MODEL count: 1 }\n")
        .flag(format!("--host-policy=mine,cpu-cores={last}"))
        .flag(format!("--host-policy=model,cpu-cores={last}"))
        .start();
    let (host, child) = (server.process().pid(), process(&server, "apart"));
    for (process, thread, want) in [
        (host, "named/1#0", last),
        (host, "named/1#1", last),
        (child, "apart/1#0", last),
        (child, "apart/1#1", last),
        (host, "plain/1#0", last),
        (host, "free/1#0", &*all),
    ] {
        assert_eq!(cores(process, thread), [want.to_owned()].into(), "{thread}");
    }
    // Those of the network among them.
    let is_bound = |name: &str| ["named/", "plain/"].iter().any(|model| name.starts_with(model));
    for (name, cores) in threads(host).into_iter().filter(|(name, _)| !is_bound(name)) {
        assert_eq!(cores, all, "{name}");
    }
    for model in ["named", "apart", "free", "plain"] {
        assert_eq!(server.infer(model, "").status, 200, "{model}");
    }
    server.wait_for_log(&format!(", host policy 'mine' (cpu-cores={last})"));
    server.wait_for_log("model 'free': its host policy 'other' has no settings");
    assert!(server.stop().success());
}

/// Every model here has bound instances, so one of those starts each thread that is started late.
#[test]
fn threads_for_all_models_run_on_all_cores() {
    let all = threads(rustix::process::getpid())[0].1.clone();
    let last = all.rsplit([',', '-']).next().unwrap();
    let server = Server::new()
        .model(
            "m",
            probe("m", &[]) + "instance_group { kind: KIND_CPU count: 1 host_policy: \"p\" }\n",
        )
        .flag(format!("--host-policy=p,cpu-cores={last}"))
        .start();
    let threads = threads(server.process().pid());
    let bound: Vec<_> = threads.iter().filter(|(_, cores)| *cores != all).collect();
    assert_eq!(bound, [&("m/1#0".to_owned(), last.to_owned())]);
    assert!(threads.iter().any(|(name, _)| name == "cancellations"), "{threads:?}");
    assert!(server.stop().success());
}

#[test]
fn policies_that_the_machine_cannot_have_refuse_the_start() {
    for (flag, want) in [
        (
            "cpu,cpu-cores=1023",
            "host policy 'cpu' (cpu-cores=1023): CPU core 1023 is not one that this process may use: those are ",
        ),
        (
            "cpu,numa-node=1023",
            "host policy 'cpu' (numa-node=1023): memory cannot be bound to node 1023: ",
        ),
    ] {
        let server = Server::new().model("echo", probe("echo", &[]));
        let ended = server.flag(format!("--host-policy={flag}")).refuses_to_start();
        assert_eq!(ended.code(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(want), "no {want:?} in\n{}", ended.stderr);
    }
}

#[test]
fn gpu_with_too_little_free_memory_opens_no_instance() {
    let fakes = Fakes::new();
    let group = |gpu: u32| format!("instance_group {{ kind: KIND_GPU gpus: [ {gpu} ] }}\n");
    let server = fakes
        .server()
        .env("FAKE_CUDA_DEVICES", "Fake A/7.5/1024,Fake B/8.0/1024")
        .env("FAKE_CUDA_TAKEN", "600")
        .model("here", probe("here", &[]) + &group(0))
        .model("apart", isolated("apart", &[]) + &group(0))
        .model("other", probe("other", &[]) + &group(1))
        .flag("--model-load-gpu-limit=0:0.5")
        .flag("--model-load-gpu-limit=1:0.75")
        .flag("--model-load-gpu-limit=7:0.5")
        .flag("--exit-on-error=false")
        .start();
    for model in ["here", "apart"] {
        let response = server.infer(model, "");
        assert_ne!(response.status, 200, "{model}: {}", response.text());
        server.wait_for_log(&format!("instance '{model}_0_0_gpu0' is not opened: "));
    }
    assert_eq!(server.infer("other", "").status, 200);
    for line in [
        "of 1073741824 bytes of GPU 0 are in use, more than --model-load-gpu-limit=0:0.5 allows",
        "--model-load-gpu-limit has no effect for GPU 7, which is not there or not used",
    ] {
        server.wait_for_log(line);
    }
    assert!(server.stop().success());
}
