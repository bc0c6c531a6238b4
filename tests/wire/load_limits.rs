//! Limits of a model load: instances, memory, files, warm-up time; and loads that are broken off.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::isolated::{is_alive, isolated, process};
use trtserver_tests::{Running, Server, Signal, probe};

/// Far above what a refusal takes, far below what the load would take.
const SOON: Duration = Duration::from_secs(10);

fn warmup(fields: &str, dims: &str) -> String {
    format!(
        "model_warmup {{ name: \"s\" {fields} inputs {{ key: \"INPUT0\" value {{ \
         data_type: TYPE_FP32 dims: {dims} zero_data: true }} }} }}\n"
    )
}

/// Loads `model`, which must be refused soon with this text, and checks that the server serves
/// another.
#[track_caller]
fn is_refused(server: &Running, model: &str, text: &str) {
    let begin = Instant::now();
    let response = server.load(model);
    assert!(response.status >= 400, "{model} was loaded");
    assert!(response.error_text().contains(text), "{model}: {}", response.error_text());
    assert!(begin.elapsed() < SOON, "{model}: {:?}", begin.elapsed());
    assert!(server.serves("echo"));
}

/// The configuration cannot be read: the index has the reason, and the response that of Triton.
fn is_unreadable(server: &Running, model: &str, reason: &str) {
    is_refused(server, model, "failed to poll from model repository");
    let index = server.index();
    let mut entries = index.as_array().into_iter().flatten();
    let entry = entries.find(|entry| entry["name"] == model);
    let shown = entry.and_then(|entry| entry["reason"].as_str());
    assert!(shown.is_some_and(|shown| shown.contains(reason)), "{model}: {index}");
}

fn with_echo() -> Server {
    explicit().model("echo", probe("echo", &[])).flag("--load-model=echo")
}

#[test]
fn instances_are_limited_per_model_and_server() {
    let groups = |groups: usize, count: u32| {
        probe("m", &[]) + &format!("instance_group {{ count: {count} }}\n").repeat(groups)
    };
    let many = |name: &str| probe(name, &[]) + "instance_group { count: 30 }\n";
    let server = with_echo()
        .model("m", groups(20, 1024))
        .model("a", many("a"))
        .model("b", many("b"))
        .flag("--max-instances=50")
        .start();
    let text = "the instance groups of model m have 20480 instances, at most 1024 are allowed by \
                --max-instances-per-model";
    is_refused(&server, "m", text);
    assert_ok(server.load("a"));
    let text = "model 'b' version 1 has 30 instances and the server has 31 already, at most 50 are \
                allowed by --max-instances";
    is_refused(&server, "b", text);
    // Instances count until they are closed.
    assert_ok(server.unload("a"));
    server.wait_for_log("successfully unloaded 'a' version 1");
    server.poll_until("the instances of a are closed", |s| s.load("b").status == 200);
    assert!(server.stop().success());
}

#[test]
fn load_memory_is_limited() {
    let huge = warmup("batch_size: 1", "1099511627776");
    let batch = probe("batch", &[]).replace("max_batch_size: 8", "max_batch_size: 2000000000")
        + &warmup("batch_size: 2000000000", "1");
    let labels = |name: &str, file: &str| {
        let dims = "name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ]";
        probe(name, &[]).replace(dims, &format!("{dims} label_filename: \"{file}\""))
    };
    let server = with_echo()
        .model("huge", probe("huge", &[]) + &huge)
        .model("batch", batch)
        .model("lines", labels("lines", "lines"))
        .model("fine", labels("fine", "lines"))
        .file("lines/lines", vec![b'\n'; 4 << 20])
        .file("fine/lines", vec![b'\n'; 512 << 10])
        .flag("--max-load-memory=5000000")
        .start();
    let before = server.resident_kib();
    let limit = "more than the 5000000 left of --max-load-memory=5000000";
    is_refused(&server, "huge", "warmup data of shape [1,1099511627776] takes 4398046511104 bytes");
    is_refused(
        &server,
        "batch",
        &format!("a warmup batch of 2000000000 requests takes 4096000000000 bytes, {limit}"),
    );
    is_refused(&server, "lines", "takes 16777216 bytes, more than the 805696 left");
    assert_ok(server.load("fine"));
    let grown = server.resident_kib().saturating_sub(before);
    assert!(grown < 20 << 10, "{grown} KiB");
}

#[test]
fn only_regular_files_are_read() {
    let labels = |name: &str| {
        let dims = "name: \"OUTPUT0\" data_type: TYPE_FP32 dims: [ -1 ]";
        probe(name, &[]).replace(dims, &format!("{dims} label_filename: \"special\""))
    };
    let data = |name: &str| {
        let file = warmup("batch_size: 1", "2");
        probe(name, &[]) + &file.replace("zero_data: true", "input_data_file: \"special\"")
    };
    let server = with_echo()
        .model("labels", labels("labels"))
        .model("data", data("data"))
        .file("data/warmup/x", "")
        .model("config", "")
        .start();
    let models = server.models().path();
    let places = [
        ("labels", "labels/special"),
        ("data", "data/warmup/special"),
        ("config", "config/config.pbtxt"),
    ];
    for fifo in [false, true] {
        for (model, place) in places {
            let path = models.join(place);
            let _ = fs::remove_file(&path);
            if fifo {
                assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
            } else {
                symlink("/dev/zero", &path).unwrap();
            }
            let refused = if model == "config" { is_unreadable } else { is_refused };
            // A link to a device leads out of the repository.
            refused(
                &server,
                model,
                if fifo { "not a regular file" } else { "leads to '/dev/zero'" },
            );
        }
    }
}

#[test]
fn warmup_has_a_time_limit() {
    let endless = warmup("batch_size: 1 count: 4294967295", "2");
    let late = probe("late", &[("detach", "true"), ("delay_ms", "20")]) + &endless;
    let server = with_echo()
        .model("endless", probe("endless", &[]) + &endless)
        .model("late", late)
        .flag("--warmup-timeout-secs=1")
        .start();
    for model in ["endless", "late"] {
        is_refused(
            &server,
            model,
            &format!("the warmup of instance {model}_0_cpu exceeds --warmup-timeout-secs=1"),
        );
    }
    is_refused_by_parser(&server);
}

fn is_refused_by_parser(server: &Running) {
    let negative = probe("negative", &[]) + &warmup("batch_size: 1 count: -5", "2");
    server.models().model("negative", &negative);
    is_unreadable(server, "negative", "count");
}

/// A load by request of a model whose warm-up takes very long, begun on a connection of its own.
fn endless_load(server: &Running, model: &str) -> trtserver_tests::Connection {
    let mut loading = server.connect();
    let path = format!("/v2/repository/models/{model}/load");
    loading.send(trtserver_tests::http1::request("POST", &path, &[], b""));
    server.wait_for_log_with(&[
        &format!("model '{model}'"),
        "is running warmup sample 's' for iteration 2",
    ]);
    loading
}

fn slow_warmup(config: String) -> String {
    config + &warmup("batch_size: 1 count: 4294967295", "2")
}

#[test]
fn shutdown_breaks_off_a_load() {
    for config in [probe("m", &[("delay_ms", "20")]), isolated("m", &[("delay_ms", "20")])] {
        let server = with_echo().model("m", slow_warmup(config)).flag("--log-verbose=1").start();
        let mut loading = endless_load(&server, "m");
        let begin = Instant::now();
        server.signal(Signal::TERM);
        let response = loading.response();
        assert_eq!(response.status, 503, "{}", response.text());
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{}", ended.stderr);
        assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
    }
}

#[test]
fn shutdown_breaks_off_the_load_at_start() {
    let server = Server::new()
        .model("m", slow_warmup(probe("m", &[("delay_ms", "20")])))
        .flag("--log-verbose=1")
        .launch();
    server.wait_for_log("is running warmup sample 's' for iteration 2");
    let begin = Instant::now();
    server.signal(Signal::TERM);
    server.wait();
    assert!(begin.elapsed() < SOON, "{:?}", begin.elapsed());
}

#[test]
fn unload_breaks_off_a_load() {
    let config = slow_warmup(probe("m", &[("until_cancelled", "true")]));
    let server = with_echo().model("m", slow_warmup(probe("m", &[("delay_ms", "20")])));
    let server = server.flag("--log-verbose=1").start();
    let mut loading = endless_load(&server, "m");
    assert_ok(server.unload("m"));
    let response = loading.response();
    assert!(response.error_text().contains("was aborted"), "{}", response.text());
    // One execution that ends only when it is cancelled.
    server.models().model("m", &config);
    let mut loading = server.connect();
    loading.send(trtserver_tests::http1::request("POST", "/v2/repository/models/m/load", &[], b""));
    server.poll_until("the second load warms up", |s| {
        s.log().matches("for iteration 1").count() == 2
    });
    let begin = Instant::now();
    assert_ok(server.unload("m"));
    assert_eq!(loading.response().status, 400);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(server.serves("echo"));
}

/// Where a backend may hang while its model is loaded.
const HANGS: [&str; 3] = ["autocomplete", "model_open", "instance_open"];

/// A load of the model `m` that hangs in this entry of the backend.
fn hanging_load(server: &Running) -> trtserver_tests::Connection {
    let mut loading = server.connect();
    loading.send(trtserver_tests::http1::request("POST", "/v2/repository/models/m/load", &[], b""));
    server.wait_for_log("it hangs from here on");
    loading
}

fn hanging(entry: &str) -> [(&str, &str); 3] {
    [("die", "hang"), ("die_in", entry), ("say", "it hangs from here on")]
}

#[test]
fn load_of_isolated_model_that_hangs_is_broken_off() {
    for entry in HANGS {
        let server = with_echo()
            .model("m", isolated("m", &hanging(entry)))
            .flag("--strict-model-config=false")
            .start();
        let mut loading = hanging_load(&server);
        let begin = Instant::now();
        assert_ok(server.unload("m"));
        let response = loading.response();
        assert!(begin.elapsed() < SOON, "{entry}: {:?}", begin.elapsed());
        let text = response.error_text();
        assert_eq!(response.status, 400, "{entry}: {text}");
        assert!(text.contains("because the load of its model was broken off"), "{entry}: {text}");
        // The next load is not affected.
        server.models().model("m", &isolated("m", &[]));
        assert_ok(server.load("m"));
        assert!(server.serves("m"), "{entry}");
        server.models().model("m", &isolated("m", &hanging(entry)));
        let log = server.log().matches("it hangs from here on").count();
        let mut loading = server.connect();
        let load =
            trtserver_tests::http1::request("POST", "/v2/repository/models/m/load", &[], b"");
        loading.send(load);
        server.poll_until("the second load hangs", |server| {
            server.log().matches("it hangs from here on").count() > log
        });
        let begin = Instant::now();
        server.signal(Signal::TERM);
        assert_eq!(loading.response().status, 503, "{entry}");
        let ended = server.wait();
        assert_eq!(ended.code(), 0, "{entry}: {}", ended.stderr);
        assert!(begin.elapsed() < SOON, "{entry}: {:?}", begin.elapsed());
    }
}

#[test]
fn backend_that_hangs_in_the_server_does_not_delay_the_exit() {
    for entry in HANGS {
        let server = with_echo()
            .model("m", probe("m", &hanging(entry)))
            .flag("--strict-model-config=false")
            .flag("--exit-timeout-secs=1")
            .start();
        let _loading = hanging_load(&server);
        let begin = Instant::now();
        server.signal(Signal::TERM);
        server.wait_for_log_with(&["model 'm' cannot be broken off", "backend 'probe'"]);
        let ended = server.wait();
        assert_eq!(ended.code(), 1, "{entry}: {}", ended.stderr);
        assert!(begin.elapsed() < SOON, "{entry}: {:?}", begin.elapsed());
    }
}

#[test]
fn names_that_no_model_can_have_are_refused() {
    let server = with_echo().start();
    for act in ["load", "unload"] {
        let response = server.post(&format!("/v2/repository/models/../{act}"), &[], "");
        assert_eq!(response.status, 400, "{act}: {}", response.text());
        assert!(response.error_text().contains("invalid model name '..'"), "{}", response.text());
        assert_eq!(server.v1(act, "..").status, 400);
    }
    assert!(server.serves("echo"));
}

#[test]
fn child_is_killed_before_the_server_when_memory_is_exhausted() {
    let server = Server::new().model("m", isolated("m", &[])).start();
    let child = process(&server, "m");
    assert!(is_alive(child));
    let score = |pid: i32| {
        let path = format!("/proc/{pid}/oom_score_adj");
        let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        text.trim().parse::<i32>().unwrap()
    };
    let own = score(server.process().pid().as_raw_nonzero().get());
    assert_eq!(score(child.as_raw_nonzero().get()), (own + 500).min(1000));
}
