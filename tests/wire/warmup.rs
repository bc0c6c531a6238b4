//! Model warm-up before readiness, how it is reported, and the niceness of instance threads.

use rustix::process::Pid;
use std::fs;
use std::path::PathBuf;
use trtserver_tests::control::explicit;
use trtserver_tests::http1::request;
use trtserver_tests::isolated::process;
use trtserver_tests::{LoadGate, Running, Server, dist, probe, root};

const INPUT: &str = "data_type: TYPE_FP32 dims: 2";

/// A sample of one FP32 input with two elements.
fn sample(name: &str, fields: &str, data: &str) -> String {
    let input = format!("inputs {{ key: \"INPUT0\" value {{ {INPUT} {data} }} }}");
    format!("model_warmup {{ name: \"{name}\" {fields} {input} }}\n")
}

fn zeros(name: &str, fields: &str) -> String {
    sample(name, fields, "zero_data: true")
}

#[test]
fn live_and_not_ready_during_warmup() {
    let config = probe("slow", &[("delay_ms", "1000")])
        + &zeros("first", "batch_size: 8 count: 2")
        + "instance_group { count: 2 }\n";
    let server = Server::new().model("slow", config).flag("--log-verbose=1").launch();
    let running = "is running warmup sample 'first'";
    server.wait_for_log_with(&["model 'slow'", "slow_0_1_cpu", running, "for iteration 1"]);
    assert!(!server.has_reported_ready());
    for (path, status) in [
        ("/v2/health/live", 200),
        ("/api/health/live", 200),
        ("/v2/health/ready", 400),
        ("/api/health/ready", 400),
        ("/v2/models/slow/ready", 400),
    ] {
        assert_eq!(server.get(path).status, status, "{path}");
    }
    server.wait_until_ready();
    for path in ["/v2/health/ready", "/v2/models/slow/ready"] {
        assert_eq!(server.get(path).status, 200, "{path}");
    }
    // The log and the line `ready` arrive through different pipes.
    server.wait_for_log("model versions loaded");
    let log = server.log();
    for (text, times) in
        [(running, 4), ("for iteration 2", 2), ("was warmed up in", 2), ("failed to run warmup", 0)]
    {
        assert_eq!(log.matches(text).count(), times, "{text}\n{log}");
    }
    // The eight requests of a run were one execution: the probe sleeps once in it.
    let ns = duration(&server, "slow", "first");
    assert!((2_000_000_000..6_000_000_000).contains(&ns), "{ns}");
}

/// The statistics of a model, without times.
fn statistics(server: &Running, model: &str) -> serde_json::Value {
    let text = server.get(&format!("/v2/models/{model}/stats")).text();
    let all: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    all["model_stats"][0].clone()
}

fn duration(server: &Running, model: &str, sample: &str) -> u64 {
    statistics(server, model)["warmup_stats"][sample]["ns"].as_u64().unwrap_or_default()
}

#[test]
fn warmup_is_logged_and_not_counted() {
    let config = probe("warm", &[]) + &zeros("s", "batch_size: 2 count: 3") + &zeros("none", "");
    let server = Server::new().model("warm", config).model("cold", probe("cold", &[])).start();

    let stats = statistics(&server, "warm");
    for key in ["inference_count", "execution_count", "last_inference"] {
        assert_eq!(stats[key], 0, "{stats}");
    }
    assert_eq!(stats["inference_stats"]["success"]["count"], 0, "{stats}");
    assert_eq!(stats["batch_stats"], serde_json::json!([]));
    let warmup = &stats["warmup_stats"];
    assert_eq!(warmup.as_object().map(|o| o.len()), Some(1), "{warmup}");
    assert_eq!(warmup["s"]["count"], 3, "{warmup}");
    let ns = duration(&server, "warm", "s");
    assert!(ns > 0);
    assert!(statistics(&server, "cold")["warmup_stats"].is_null());

    let status = server.get("/api/status/warm?format=json").json();
    let stats = &status["model_status"]["warm"]["version_status"]["1"]["warmup_stats"];
    let want = serde_json::json!({ "s": { "count": "3", "total_time_ns": ns.to_string() } });
    assert_eq!(*stats, want, "{status}");
    // The text has no field that no release of TRTIS had.
    for model in ["warm", "cold"] {
        assert!(!server.get(&format!("/api/status/{model}")).text().contains("warmup_stats"));
    }

    let labels = r#"model="warm",sample="s",version="1""#;
    let us = server.metrics(&format!("trtserver_model_warmup_duration_us{{{labels}}}"));
    assert_eq!(us, Some((ns / 1000) as f64));
    assert_eq!(server.metrics_text().matches("trtserver_model_warmup_duration_us{").count(), 1);
    for name in ["nv_inference_count", "nv_inference_exec_count", "nv_inference_request_success"] {
        let value = server.metrics(&format!(r#"{name}{{model="warm",version="1"}}"#));
        assert!(matches!(value, None | Some(0.0)), "{name} {value:?}");
    }
    assert_eq!(server.infer("warm", "").status, 200);
    assert_eq!(statistics(&server, "warm")["inference_count"], 1);
}

#[test]
fn warmup_data_sources() {
    let read = |model: &str| {
        let path = trtserver_tests::root().join(format!("tests/models/{model}/config.pbtxt"));
        fs::read_to_string(path).expect("a configuration")
    };
    let text = |data: &str| format!("data_type: TYPE_STRING dims: 2 {data}");
    let one = |name: &str, inputs: &[(&str, String)]| {
        let inputs: String = inputs
            .iter()
            .map(|(input, value)| format!("inputs {{ key: \"{input}\" value {{ {value} }} }} "))
            .collect();
        format!("model_warmup {{ name: \"{name}\" batch_size: 1 {inputs} }}\n")
    };
    let strings = read("identity_string")
        + &one("zero", &[("INPUT0", text("zero_data: true"))])
        + &one("random", &[("INPUT0", text("random_data: true"))])
        + &one("file", &[("INPUT0", text("input_data_file: \"texts\""))]);
    let numbers = |data: &str| format!("data_type: TYPE_FP32 dims: 16 {data}");
    let (random, file) = (numbers("random_data: true"), numbers("input_data_file: \"sub/raw\""));
    let sums = read("addsub_fp32") + &one("sums", &[("INPUT0", random), ("INPUT1", file)]);
    let server = Server::new()
        .copy_model("tests/models/identity_string")
        .file("identity_string/config.pbtxt", strings)
        .file("identity_string/warmup/texts", b"\x02\0\0\0ab\0\0\0\0")
        .copy_model("tests/models/addsub_fp32")
        .file("addsub_fp32/config.pbtxt", sums)
        .file("addsub_fp32/warmup/sub/raw", [0; 64])
        .start();
    for (model, samples) in
        [("identity_string", &["zero", "random", "file"][..]), ("addsub_fp32", &["sums"])]
    {
        for sample in samples {
            assert!(duration(&server, model, sample) > 0, "{model} {sample}");
        }
    }
}

#[test]
fn warmup_waits_for_late_responses() {
    let config = probe("later", &[("detach", "true")]) + &zeros("s", "batch_size: 3 count: 20");
    let server = Server::new().model("later", config).start();
    // The probe takes 5 ms for each response.
    assert!(duration(&server, "later", "s") >= 100_000_000);
    assert_eq!(server.infer("later", "").status, 200);
}

#[test]
fn failed_sample_fails_the_load() {
    let failing = |name: &str, commands: &[(&str, &str)]| {
        let fields = "batch_size: 2";
        probe(name, commands) + &zeros("good", "batch_size: 0") + &zeros("bad", fields)
    };
    let rows = [
        ("fails", &[("fail", "no such weights")][..], "no such weights"),
        ("throws", &[("fail_in", "execute"), ("fail", "all of it")], "all of it"),
        ("later", &[("fail", "late"), ("detach", "true")], "late"),
        ("never", &[("garbage", "never")], "without responding to the request"),
        ("panics", &[("panic_in", "execute")], "panic"),
    ];
    let mut server = Server::new().model("fine", probe("fine", &[])).flag("--exit-on-error=false");
    for (name, commands, _) in &rows {
        server = server.model(name, failing(name, commands));
    }
    let server = server.start();
    assert_eq!(server.infer("fine", "").status, 200);
    for (name, _, text) in &rows {
        assert_eq!(server.get(&format!("/v2/models/{name}/ready")).status, 400, "{name}");
        let status = server.get(&format!("/api/status/{name}")).text();
        let want = "failed to run warmup sample \\'bad\\': ";
        let reason = status.split_once(want).map_or("", |(_, reason)| reason);
        assert!(reason.contains(text), "{name}: {status}");
        assert!(status.contains("MODEL_UNAVAILABLE"), "{status}");
    }
    assert!(server.stop().success());

    let ended = Server::new().model("fails", failing("fails", rows[0].1)).refuses_to_start();
    assert_eq!(ended.code(), 1);
    let text = "failed to run warmup sample 'bad': no such weights";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}

#[test]
fn failed_instance_cancels_warmup_of_others() {
    let commands = [("delay_ms", "100"), ("fail_in", "instance_open half_0_1_cpu")];
    let config = probe("half", &commands)
        + &zeros("long", "count: 4000000000")
        + "instance_group { count: 2 }\n";
    let ended = Server::new().model("half", config).refuses_to_start();
    assert_eq!(ended.code(), 1);
    let text =
        "failed to load 'half' version 1: Internal: told to fail in instance_open half_0_1_cpu";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
}

/// As in Triton, which loads such models.
#[test]
fn what_a_sample_has_too_much_is_left_out_with_a_warning() {
    let other = "inputs { key: \"X\" value { data_type: TYPE_FP32 dims: 2 zero_data: true } } }";
    let with_other =
        zeros("s", "batch_size: 1").trim_end().trim_end_matches('}').to_owned() + other;
    let unbatched = probe("unbatched", &[]).replace("max_batch_size: 8", "max_batch_size: 0");
    let server = Server::new()
        .model(
            "longer",
            probe("longer", &[]) + &sample("s", "batch_size: 1", "input_data_file: \"nine\""),
        )
        .file("longer/warmup/nine", [0; 9])
        .model("larger", probe("larger", &[]) + &zeros("s", "batch_size: 9"))
        .model("unbatched", unbatched + &zeros("s", "batch_size: 2"))
        .model("other", probe("other", &[]) + &with_other)
        .start();
    for (model, text) in [
        ("longer", "data of input 'INPUT0': 'nine' has 9 bytes, of which the first 8 are used"),
        ("larger", "batch_size 9 exceeds the model's max_batch_size 8, with which it runs"),
        ("unbatched", "batch_size 2 has no effect, since the model does not support batching"),
        ("other", "input 'X' is not used: the model's inputs are: INPUT0"),
    ] {
        let head = format!("model '{model}', warmup sample 's': ");
        server.wait_for_log_with(&[&head, text]);
        let stats = server.get(&format!("/v2/models/{model}/stats")).json();
        assert_eq!(stats["model_stats"][0]["warmup_stats"]["s"]["count"], 1, "{stats}");
    }
    assert!(server.stop().success());
}

#[test]
fn samples_are_checked_against_the_model() {
    let file = |name: &str| format!("input_data_file: \"{name}\"");
    let of_s = "for input 'INPUT0' of warmup sample 's' for m";
    let one = "batch_size: 1";
    for (warmup, want) in [
        (
            sample("s", one, &file("seven")),
            format!(
                "warmup setting expects 8 bytes, but the data provided from sevenonly has 7 bytes {of_s}"
            ),
        ),
        (sample("s", one, &file("absent")), "m/warmup/absent': No such file".to_owned()),
        (
            sample("s", one, &file("../config.pbtxt")),
            "leaves the model's 'warmup' directory".to_owned(),
        ),
        (format!("model_warmup {{ name: \"s\" {one} }}"), "input 'INPUT0' is missing".to_owned()),
        (
            zeros("s", one).replace("dims: 2", "dims: -1"),
            "warmup setting expects all variable-size dimensions are specified for input 'INPUT0'"
                .to_owned(),
        ),
        (
            zeros("s", one).replace("zero_data: true", ""),
            "warmup setting expects input 'INPUT0' to have input_data_type set".to_owned(),
        ),
    ] {
        let ended = Server::new()
            .model("m", probe("m", &[]) + &warmup)
            .file("m/warmup/seven", [0; 7])
            .refuses_to_start();
        assert!(ended.stderr.contains(&want), "{want}\n{}", ended.stderr);
    }
}

/// Niceness of the process, or of one of its threads.
fn nice(path: &str) -> i32 {
    let stat = fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    // The thread name in parentheses may contain anything; the niceness is the 17th word after it.
    let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
    fields.split(' ').nth(16).and_then(|n| n.parse().ok()).unwrap_or_else(|| panic!("{stat}"))
}

/// Name and niceness of the threads of a process.
fn threads(process: Pid) -> Vec<(String, i32)> {
    let tasks = format!("/proc/{}/task", process.as_raw_nonzero());
    let entries = fs::read_dir(&tasks).unwrap_or_else(|e| panic!("{tasks}: {e}"));
    let of = |task: PathBuf| {
        let name = fs::read_to_string(task.join("comm")).ok()?;
        Some((name.trim_end().to_owned(), nice(&task.join("stat").to_string_lossy())))
    };
    entries.flatten().filter_map(|entry| of(entry.path())).collect()
}

/// Niceness of the thread with this name.
fn nice_of(process: Pid, thread: &str) -> i32 {
    let found = threads(process).into_iter().find(|(name, _)| name == thread);
    found.unwrap_or_else(|| panic!("no thread {thread}")).1
}

/// The niceness that threads of the server get which was started with niceness `own`, if they ask
/// for `wanted`.
fn granted(server: &Running, own: i32, wanted: i32) -> i32 {
    let pid = server.process().pid().as_raw_nonzero();
    let read = |file: &str| {
        let path = format!("/proc/{pid}/{file}");
        fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
    };
    let (status, limits) = (read("status"), read("limits"));
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    let limit = limits.lines().find_map(|line| line.strip_prefix("Max nice priority"));
    let limit = limit.and_then(|limit| limit.split_whitespace().next());
    // CAP_SYS_NICE; the resource limit is 20 minus the lowest niceness.
    let any = capabilities.unwrap_or_else(|| panic!("{status}")) & (1 << 23) != 0;
    let lowest = match limit.unwrap_or_else(|| panic!("{limits}")) {
        "unlimited" => -20,
        limit => 20 - limit.parse::<i32>().unwrap_or_else(|e| panic!("{limit}: {e}")),
    };
    if any || wanted >= own || wanted >= lowest { wanted } else { own }
}

/// Niceness of the server's first thread.
fn own_niceness(server: &Running) -> i32 {
    nice(&format!("/proc/{}/stat", server.process().pid().as_raw_nonzero()))
}

/// A server that is started with a niceness of this much more.
fn started_under_nice(more: &str) -> Server {
    let program = format!("{}/bin/trtserver", dist().display());
    Server::new().program(["nice", "-n", more, &program])
}

#[test]
fn instance_threads_have_niceness_of_model_priority() {
    for more in ["0", "3", "15"] {
        niceness_of_model_priority(more);
    }
}

fn niceness_of_model_priority(more: &str) {
    let started = || started_under_nice(more);
    let config = |name: &str, priority: &str| {
        let priority = format!("optimization {{ priority: PRIORITY_{priority} }}\n");
        probe(name, &[]) + if priority.contains("NONE") { "" } else { &priority }
    };
    let rows =
        [("none", "NONE", 5), ("default", "DEFAULT", 5), ("max", "MAX", 0), ("min", "MIN", 19)];
    let all = rows
        .iter()
        .fold(started(), |server, (name, priority, _)| server.model(name, config(name, priority)));
    let server = all.start();
    for (name, _, added) in rows {
        let got = nice_of(server.process().pid(), &format!("{name}/1#0"));
        assert_eq!(got, (own_niceness(&server) + added).min(19), "{name}, nice -n {more}");
        server.wait_for_log_with(&[
            &format!("model '{name}' instance {name}_0_cpu"),
            &format!("nice value {got}"),
        ]);
    }
    let log = server.log();
    assert!(!log.contains("is not supported yet"), "{log}");

    // No model has a lower priority.
    let server = started().model("none", config("none", "NONE")).start();
    assert_eq!(nice_of(server.process().pid(), "none/1#0"), own_niceness(&server));
}

#[test]
fn all_threads_of_a_model_have_one_niceness() {
    // The tests may run under `nice`, too; 19 is the niceness of PRIORITY_MIN.
    let most = (18 - nice("/proc/self/stat")).min(10);
    for more in [0, most] {
        one_niceness_of_a_model(&more.to_string());
    }
}

/// The pools of ONNX Runtime have two threads beside those of the instances.
fn one_niceness_of_a_model(more: &str) {
    let graph = root().join("tests/models/completion/label/1/model.onnx");
    let graph = fs::read(&graph).unwrap_or_else(|e| panic!("{}: {e}", graph.display()));
    let text = |key: &str, value: &str| {
        format!("parameters {{ key: \"{key}\" value {{ string_value: \"{value}\" }} }}\n")
    };
    let (pool, apart) = (text("intra_op_thread_count", "3"), text("isolation", "process"));
    let low = "optimization { priority: PRIORITY_MIN }\n";
    let models = [
        ("plain", pool.clone()),
        ("low", pool.clone() + low),
        ("plain_apart", pool.clone() + &apart),
        ("low_apart", pool.clone() + &apart + low),
    ];
    let server = started_under_nice(more)
        .flag("--strict-model-config=false")
        .flag("--model-control-mode=explicit");
    let add = |server: Server, (name, config): &(&str, String)| {
        let server = server.model(name, config).file(&format!("{name}/1/model.onnx"), &graph);
        if name.starts_with("plain") { server } else { server.flag(format!("--load-model={name}")) }
    };
    let server = models.iter().fold(server, add).start();
    // Loaded while others serve.
    for name in ["plain", "plain_apart"] {
        let response = server.post(&format!("/v2/repository/models/{name}/load"), &[], "");
        assert_eq!(response.status, 200, "{}", response.text());
    }
    let (own, pid) = (own_niceness(&server), server.process().pid());
    for (name, wanted) in [("plain_apart", own), ("low_apart", 19)] {
        let all = threads(process(&server, name));
        // Two of the pool, the instance and the process's own.
        assert!(all.len() > 3, "{name}: {all:?}");
        assert!(all.iter().all(|(_, nice)| *nice == wanted), "{name}, nice -n {more}: {all:?}");
    }
    let all = threads(pid);
    // The pool's threads have the name of the one that opened the model.
    let opened: Vec<_> = all.iter().filter(|(thread, _)| thread == "open").collect();
    assert_eq!(opened.len(), 2, "{all:?}");
    assert!(opened.iter().all(|(_, nice)| *nice == 19), "{all:?}");
    assert_eq!(nice_of(pid, "low/1#0"), 19);
    assert_eq!(nice_of(pid, "plain/1#0"), own);
    // None has the niceness of loads, or less than the server.
    assert!(all.iter().all(|(_, nice)| *nice >= own && *nice != own + 7), "{own}: {all:?}");
    let refused = "models are loaded at normal priority";
    let can_restore = granted(&server, own + 1, own) == own && own < 12;
    assert_eq!(!can_restore, server.log().contains(refused), "{own}: {}", server.log());
    assert!(server.stop().success());
}

#[test]
fn isolated_model_is_loaded_at_low_priority() {
    let server = explicit().gated_model().flag("--backend-config=probe,isolation=process").start();
    let mut waiting = server.connect();
    waiting.send(request("POST", "/v2/repository/models/gated/load", &[], b""));
    let gate = LoadGate::reach(&server);
    let child = process(&server, "gated");
    // A niceness that could not be taken back is not set.
    let own = own_niceness(&server);
    let restorable = granted(&server, own + 1, own) == own && own < 12;
    assert_eq!(nice_of(child, "gated/1#0"), if restorable { own + 7 } else { own });
    gate.open();
    assert_eq!(waiting.response().status, 200);
    let all = threads(child);
    assert!(all.iter().all(|(_, nice)| *nice == own), "{all:?}");
    assert!(server.stop().success());
}

#[test]
fn sequence_model_warmup() {
    let sequence = r#"sequence_batching {
  control_input { name: "START" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
  control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
  state { input_name: "IN" output_name: "OUT" data_type: TYPE_FP32 dims: 3 }
}
"#;
    let start =
        "inputs { key: \"START\" value { data_type: TYPE_INT32 dims: 1 random_data: true } }";
    let state = "inputs { key: \"IN\" value { data_type: TYPE_FP32 dims: 3 random_data: true } }";
    let config = probe("steps", &[])
        + sequence
        + &zeros("without", "batch_size: 8")
        + &zeros("with", &format!("batch_size: 2 {start} {state}"));
    let server = Server::new().model("steps", config).start();
    for sample in ["without", "with"] {
        assert!(duration(&server, "steps", sample) > 0, "{sample}");
    }
    assert_eq!(statistics(&server, "steps")["execution_count"], 0);
    let response = server.infer("steps", r#""sequence_id":1,"sequence_start":true"#);
    assert_eq!(response.status, 200, "{}", response.text());
}
