//! Models in processes of their own: they answer as in the server's, and die alone.

use rustix::process::kill_process;
use std::fs;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trtserver_tests::isolated::{is_alive, isolated, process, processes, wait_until_served};
use trtserver_tests::scheduled::{NEVER, accumulator, flag, sequences};
use trtserver_tests::{
    Caller, ENDPOINTS, Running, Server, Signal, folder, parameters, probe, python_v2, root,
};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    Server::new()
        .model("within", probe("within", &[]))
        .model("apart", isolated("apart", &[]))
        .model("mortal", isolated("mortal", &[]))
        .start_shared()
});

#[test]
fn answers_are_the_same() {
    for parameters in [
        "",
        r#""fail":"out of ink""#,
        r#""fail":"not there","fail_code":5"#,
        r#""fail":"""#,
        r#""fail_in":"execute","fail":"out of paper""#,
        r#""panic_in":"execute""#,
        r#""garbage":"wrong_dtype""#,
        r#""garbage":"wrong_shape""#,
        r#""garbage":"unknown_output""#,
        r#""garbage":"missing_output""#,
        r#""garbage":"short""#,
        r#""garbage":"twice""#,
        r#""garbage":"never""#,
        r#""garbage":"never","detach":true"#,
        r#""responses":0"#,
        r#""responses":3"#,
        r#""detach":true"#,
        r#""adopt":true"#,
        r#""merge":true"#,
        r#""delay_ms":5"#,
    ] {
        let [within, apart] = ["within", "apart"].map(|model| {
            let response = SERVER.infer(model, parameters);
            (response.status, response.text().replace(model, "M"))
        });
        assert_eq!(within, apart, "{parameters}");
    }
    assert!(!processes(&SERVER, "apart:").is_empty());
    assert!(processes(&SERVER, "within:").is_empty());
}

#[test]
fn a_tensor_of_any_size_comes_back_as_it_was() {
    for elements in [0usize, 1, 63, 64, 1000, 300_000] {
        let data: Vec<u8> = (0..elements).flat_map(|i| (i as f32).to_le_bytes()).collect();
        let json = format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,{elements}],"parameters":{{"binary_data_size":{}}}}}],"outputs":[{{"name":"OUTPUT0","parameters":{{"binary_data":true}}}}]}}"#,
            data.len()
        );
        let length = json.len().to_string();
        let body = [json.as_bytes(), &data].concat();
        let headers = [("Inference-Header-Content-Length", &*length)];
        let response = SERVER.post("/v2/models/apart/infer", &headers, &body);
        assert_eq!(response.status, 200, "{elements}: {}", response.text());
        assert!(response.body.ends_with(&data), "{elements}");
    }
}

#[test]
fn a_death_is_told_with_its_reason() {
    for (die, what) in [
        ("crash", "was killed by signal 11 (SIGSEGV)"),
        ("abort", "was killed by signal 6 (SIGABRT)"),
        ("exit", "ended with exit code 7"),
    ] {
        wait_until_served(&SERVER, "mortal");
        let response = SERVER.infer("mortal", &format!(r#""die":"{die}","say":"farewell {die}""#));
        let says = response.error_text();
        assert_eq!(response.status, 500, "{says}");
        for part in ["model 'mortal'", "'probe'", what, &format!("farewell {die}")] {
            assert!(says.contains(part), "no {part:?} in {says:?}");
        }
        assert_eq!(SERVER.infer("apart", "").status, 200);
        // The first start after an answer is waited for.
        assert_eq!(SERVER.infer("mortal", "").status, 200, "{}", SERVER.process());
    }
}

#[test]
fn a_model_that_hangs_is_killed_after_its_time() {
    let slow = [("isolation_deadline_seconds", "0.3")];
    let server = Server::new().model("stuck", isolated("stuck", &slow)).start();
    // The time is that between answers.
    assert_eq!(server.infer("stuck", r#""delay_ms":100"#).status, 200);
    let response = server.infer("stuck", r#""die":"hang""#);
    let says = response.error_text();
    assert_eq!(response.status, 500, "{says}");
    assert!(says.contains("did not answer within 0.3 s and was killed"), "{says}");
    assert_eq!(server.infer("stuck", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn a_hundred_kills_cost_nobody_else_a_request() {
    let server = Server::new()
        .model("victim", isolated("victim", &[]))
        .model("apart", isolated("apart", &[]))
        .model("here", probe("here", &[]))
        .start();
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for model in ["apart", "here"] {
            let (server, over, answered) = (&server, &over, &answered);
            scope.spawn(move || {
                let mut connection = server.connect();
                while !over.load(Ordering::Relaxed) {
                    let response =
                        connection.send(trtserver_tests::inference(model, "")).response();
                    assert_eq!(response.status, 200, "{model}: {}", response.text());
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Also when this fails, so that it is told.
        let _end = End(&over);
        for kill in 0..100 {
            let pid = process(&server, "victim");
            kill_process(pid, Signal::KILL).unwrap();
            let response = server.infer("victim", "");
            // It may have been on its way to the process that was killed.
            if response.status != 200 {
                let says = response.error_text();
                assert!(says.contains("(SIGKILL)"), "{kill}: {says}");
                let again = server.infer("victim", "");
                assert_eq!(again.status, 200, "{kill}: {}", again.text());
            }
        }
    });
    assert!(answered.load(Ordering::Relaxed) > 100);
    assert!(server.stop().success());
}

struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Open files, mappings, threads and children of the server.
fn holdings(server: &Running) -> [usize; 4] {
    let proc = format!("/proc/{}", server.process().pid().as_raw_nonzero());
    let count = |dir: &str| fs::read_dir(format!("{proc}/{dir}")).map_or(0, Iterator::count);
    let maps = fs::read_to_string(format!("{proc}/maps")).unwrap_or_default();
    let shared = maps.lines().filter(|line| line.contains("memfd:")).count();
    [count("fd"), shared, count("task"), processes(server, "").len()]
}

#[test]
fn what_a_process_had_is_given_back() {
    let server = Server::new().model("victim", isolated("victim", &[])).start();
    let die = || {
        kill_process(process(&server, "victim"), Signal::KILL).unwrap();
        wait_until_served(&server, "victim");
    };
    die();
    let before = holdings(&server);
    (0..10).for_each(|_| die());
    // What connections of this test still hold at the one moment may be gone at the other.
    let all = |now: [usize; 4]| now.iter().zip(before).all(|(now, before)| *now <= before);
    server.poll_until(&format!("all is given back: {before:?}"), |server| all(holdings(server)));
    let pids = processes(&server, "");
    assert!(server.stop().success());
    assert!(!pids.into_iter().any(is_alive));
}

#[test]
fn a_killed_server_leaves_no_process() {
    let server =
        Server::new().model("a", isolated("a", &[])).model("b", isolated("b", &[])).start();
    let pids = processes(&server, "");
    assert_eq!(pids.len(), 2);
    server.signal(Signal::KILL);
    server.wait();
    let begin = std::time::Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(begin.elapsed() < trtserver_tests::TIMEOUT, "they live on");
        std::thread::yield_now();
    }
}

#[test]
fn what_cannot_be_opened_is_not_loaded() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("refuses", isolated("refuses", &[("fail_in", "model_open"), ("fail", "no paper")]))
        .model("one", isolated("one", &[("fail_in", "instance_open"), ("fail", "no ink")]))
        .model(
            "dies",
            isolated("dies", &[("die", "crash"), ("die_in", "model_open"), ("say", "oh")]),
        )
        .model("dies_late", isolated("dies_late", &[("die", "abort"), ("die_in", "instance_open")]))
        .model(
            "hangs",
            isolated(
                "hangs",
                &[
                    ("die", "hang"),
                    ("die_in", "model_open"),
                    ("isolation_open_deadline_seconds", "0.3"),
                ],
            ),
        )
        .model("nonsense", probe("nonsense", &[("isolation", "a cage")]))
        .model("soon", isolated("soon", &[("isolation_deadline_seconds", "soon")]))
        .flag("--exit-on-error=false")
        .start();
    for (model, parts) in [
        ("refuses", &["no paper"][..]),
        ("one", &["no ink"]),
        ("dies", &["SIGSEGV", "its last lines: oh"]),
        ("dies_late", &["SIGABRT"]),
        ("hangs", &["did not answer within 0.3 s"]),
        ("nonsense", &["'isolation'", "'a cage'"]),
        ("soon", &["'isolation_deadline_seconds'", "'soon'"]),
    ] {
        let line = server.wait_for_log(&format!("failed to load '{model}' version 1"));
        for part in parts {
            assert!(line.contains(part), "{model}: no {part:?} in {line:?}");
        }
        assert_eq!(server.get(&format!("/v2/models/{model}/ready")).status, 400, "{model}");
    }
    assert_eq!(server.infer("echo", "").status, 200);
    assert_eq!(processes(&server, ""), []);
    assert!(server.stop().success());
}

#[test]
fn a_model_that_keeps_dying_is_refused_between_its_starts() {
    let server = Server::new().model("weak", isolated("weak", &[])).start();
    let ready = |server: &Running| server.get("/v2/models/weak/ready").status == 200;
    assert!(ready(&server));
    let dies = |server: &Running| server.infer("weak", r#""die":"exit""#).status == 500;
    // Started again at once, and the next request waits for that.
    assert!(dies(&server) && dies(&server));
    // From here on there are pauses, each twice as long: 0.1 s, 0.2 s, 0.4 s, 0.8 s.
    for _ in 0..3 {
        server.poll_until("it dies again", dies);
    }
    let response = server.infer("weak", "");
    let says = response.error_text();
    assert_eq!(response.status, 503, "{says}");
    assert!(says.contains("exit code 7") && says.contains("started again"), "{says}");
    assert!(!ready(&server));
    let index = server.post("/v2/repository/index", &[], "");
    assert!(index.text().contains("exit code 7"), "{}", index.text());
    server.poll_until("it is ready again", ready);
    assert_eq!(server.infer("weak", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn what_is_printed_and_counted_is_shown() {
    let server = Server::new()
        .model("noisy", isolated("noisy", &[("count", "probe_calls")]))
        .flag("--log-verbose=1")
        .start();
    let sample = r#"probe_calls{at="noisy_0_cpu"}"#;
    server.wait_for_log_with(&["probe instance noisy_0_cpu is open", "process=\"model noisy:1\""]);
    for _ in 0..3 {
        assert_eq!(server.infer("noisy", r#""say":"so it goes""#).status, 200);
    }
    server.wait_for_log_with(&["so it goes", "process=\"model noisy:1\""]);
    server.poll_until("they are counted", |server| server.metrics(sample) == Some(3.0));
    kill_process(process(&server, "noisy"), Signal::KILL).unwrap();
    wait_until_served(&server, "noisy");
    server.poll_until("they are counted anew", |s| s.metrics(sample).is_some_and(|n| n < 3.0));
    assert!(server.stop().success());
}

#[test]
fn a_caller_who_leaves_is_noticed_in_the_process() {
    let server =
        Server::new().model("stuck", isolated("stuck", &[("until_cancelled", "true")])).start();
    let waits = |s: &Running| s.log().matches("the probe waits to be cancelled").count();
    let sample = r#"trtserver_request_cancelled_total{model="stuck",version="1",when="executing"}"#;
    for (n, endpoint) in ENDPOINTS.into_iter().enumerate() {
        let caller = Caller::send(&server, endpoint, "stuck", [1.0, 2.0]);
        server.poll_until("it waits", |s| waits(s) == n + 1);
        drop(caller);
        let cancelled = Some(n as f64 + 1.0);
        server.poll_until(&format!("{endpoint:?}"), |s| s.metrics(sample) == cancelled);
        assert_eq!(server.infer("stuck", r#""until_cancelled":false"#).status, 200);
    }
    assert!(server.stop().success());
}

/// A step of a sequence: the sum, or what was said.
fn step(server: &Running, model: &str, id: u64, flags: &str, more: &str) -> Result<i64, String> {
    let json = format!(
        r#"{{"parameters":{{"sequence_id":{id}{flags}{more}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[1]}}],"outputs":[{{"name":"OUTPUT0"}}]}}"#
    );
    let response = server.post(&format!("/v2/models/{model}/infer"), &[], json);
    match response.status {
        200 => Ok(response.json()["outputs"][0]["data"][0].as_i64().unwrap_or(-1)),
        _ => Err(response.error_text()),
    }
}

#[test]
fn a_sequence_that_was_lost_does_not_begin_anew() {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let config = accumulator("sums", 4, "slot", &sequences(NEVER, "direct { }", &controls));
    let config = config + &parameters(&[("isolation", "process")]);
    let server = Server::new().model("sums", config).start();
    let start = r#","sequence_start":true"#;
    let ends = r#","sequence_end":true"#;
    let go = |id, flags, more| step(&server, "sums", id, flags, more);
    for id in [1, 2] {
        assert_eq!(go(id, start, ""), Ok(1));
        assert_eq!(go(id, "", ""), Ok(2));
    }
    let says = go(1, "", r#","die":"crash""#).unwrap_err();
    assert!(says.contains("SIGSEGV"), "{says}");
    for id in [1, 2] {
        for flags in ["", "", ends] {
            let says = go(id, flags, "").unwrap_err();
            let lost = format!("sequence {id} of model 'sums' cannot go on");
            assert!(says.contains(&lost), "{says}");
        }
    }
    // A new one begins, and goes on.
    assert_eq!([go(2, start, ""), go(2, "", ""), go(3, start, "")], [Ok(1), Ok(2), Ok(1)]);
    assert_eq!([go(2, ends, ""), go(3, "", "")], [Ok(3), Ok(2)]);
    let says = go(2, "", "").unwrap_err();
    assert!(says.contains("START"), "{says}");
    assert_eq!(go(3, ends, ""), Ok(3));
    assert!(server.stop().success());
}

#[test]
fn a_state_that_the_server_keeps_is_not_lost() {
    let state = r#"  state [ { input_name: "S_IN" output_name: "S_OUT" data_type: TYPE_INT32 dims: [ 1 ] } ]"#;
    let scheduling = sequences(NEVER, "oldest { }", &[flag("START", "int32"), state.to_owned()]);
    let config = accumulator("kept", 4, "state", &scheduling);
    let config = config + &parameters(&[("isolation", "process")]);
    let server = Server::new().model("kept", config).start();
    let start = r#","sequence_start":true"#;
    assert_eq!(step(&server, "kept", 1, start, ""), Ok(1));
    for sum in 2..5 {
        kill_process(process(&server, "kept"), Signal::KILL).unwrap();
        let mut answer = step(&server, "kept", 1, "", "");
        if answer.as_ref().is_err_and(|says| says.contains("SIGKILL")) {
            answer = step(&server, "kept", 1, "", "");
        }
        assert_eq!(answer, Ok(sum));
    }
    assert_eq!(step(&server, "kept", 1, r#","sequence_end":true"#, ""), Ok(5));
    assert!(server.stop().success());
}

#[test]
fn a_process_that_is_stopped_is_killed_too() {
    let server = Server::new()
        .model("frozen", isolated("frozen", &[("isolation_deadline_seconds", "0.2")]))
        .model("echo", isolated("echo", &[]))
        .start();
    kill_process(process(&server, "frozen"), Signal::STOP).unwrap();
    let says = server.infer("frozen", "").error_text();
    assert!(says.contains("did not answer within 0.2 s"), "{says}");
    assert_eq!(server.infer("frozen", "").status, 200);
    // Nor does one hold the server up that is stopped while nothing runs, or exits when it is closed.
    assert_eq!(server.infer("echo", "").status, 200);
    assert!(server.stop().success());
}

#[test]
fn an_onnx_model_in_a_process_of_its_own() {
    let model = root().join("examples/models/digits/config.pbtxt");
    let config = fs::read_to_string(model).unwrap() + &parameters(&[("isolation", "process")]);
    let server = Server::new().copy_models("examples/models").file("digits/config.pbtxt", config);
    let server = server.start();
    assert_eq!(processes(&server, "digits:").len(), 1);
    python_v2(&server, "run_docs.py", &["docs/requests.md"]);
    assert!(server.stop().success());
}

#[test]
fn a_backend_that_is_kept_apart_is_not_in_the_server() {
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model("in", probe("in", &[("isolation", "none")]))
        .flag("--backend-config=probe,isolation=process")
        .flag("--backend-config=probe,isolation-deadline-seconds=20");
    let server = server.without("in").start();
    assert_eq!(server.infer("echo", "").status, 200);
    let maps = format!("/proc/{}/maps", server.process().pid().as_raw_nonzero());
    let maps = fs::read_to_string(maps).unwrap();
    assert!(!maps.contains("trtserver_probe"), "{maps}");
    assert!(server.stop().success());
    let dir = folder();
    let dead = dir.path().join("libtrtserver_dead.so");
    fs::write(&dead, "no library").unwrap();
    let server = Server::new().backend_dir(dir.path());
    let server = server.flag("--backend-config=dead,isolation=process").start();
    server.wait_for_log_with(&["libtrtserver_dead.so", "not a loadable library"]);
    assert!(server.stop().success());
}

#[test]
fn a_request_of_many_words_is_refused_and_serves_nobody_ill() {
    let words = |n: usize| format!(r#""note":"{}""#, "x".repeat(n));
    let response = SERVER.infer("apart", &words(2 << 20));
    let says = response.error_text();
    assert_eq!(response.status, 400, "{says}");
    assert!(says.contains("model 'apart'") && says.contains("at most 1048576"), "{says}");
    assert_eq!(SERVER.infer("apart", &words(900_000)).status, 200);
    assert_eq!(SERVER.infer("within", &words(2 << 20)).status, 200);
}

#[test]
fn sequences_go_on_beside_and_after_a_step_of_many_words() {
    let controls = [flag("START", "int32"), flag("READY", "int32")];
    let config = accumulator("sums", 4, "slot", &sequences(NEVER, "direct { }", &controls));
    let isolated = parameters(&[("isolation", "process")]);
    let server = Server::new().model("sums", config + &isolated).start();
    for id in [1, 2] {
        assert_eq!(step(&server, "sums", id, r#","sequence_start":true"#, ""), Ok(1));
    }
    let long = format!(r#","note":"{}""#, "x".repeat(2 << 20));
    let says = step(&server, "sums", 1, "", &long).unwrap_err();
    assert!(says.contains("at most 1048576"), "{says}");
    for id in [1, 2] {
        assert_eq!(step(&server, "sums", id, r#","sequence_end":true"#, ""), Ok(2));
    }
    assert!(server.stop().success());
}

/// What does not fit between the two processes is not waited for longer than an answer.
#[test]
fn a_stopped_process_that_takes_no_request_is_killed_after_its_time() {
    let slow = [("isolation_deadline_seconds", "0.5")];
    let server = Server::new().model("stopped", isolated("stopped", &slow)).start();
    assert_eq!(server.infer("stopped", "").status, 200);
    let before = process(&server, "stopped");
    kill_process(before, Signal::STOP).unwrap();
    let response = server.infer("stopped", &format!(r#""note":"{}""#, "x".repeat(1_000_000)));
    // Nothing of it was executed, so the next process is given it.
    assert_eq!(response.status, 200, "{}", response.text());
    assert_ne!(process(&server, "stopped"), before);
    assert!(server.stop().success());
}
