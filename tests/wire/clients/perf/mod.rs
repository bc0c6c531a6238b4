//! trtserver-perf and perf_client against the real server. No test depends on how fast either is:
//! windows are short, any difference between them is accepted, and only counts and exit codes are
//! checked.

mod chunked;
mod misbehaving;

use serde_json::{Value, json};
use std::process::Command;
use std::sync::LazyLock;
use std::thread;
use tempfile::TempDir;
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Ended, Process, Running, Server, Signal, TIMEOUT, dist, folder, probe};

static SERVER: LazyLock<Running> = LazyLock::new(|| {
    let controls = [flag("START", "int32"), flag("END", "int32"), correlation("UINT64")];
    let sequence = sequences(NEVER, "oldest { max_candidate_sequences: 64 }", &controls);
    let decoupled = "model_transaction_policy { decoupled: true }\n";
    Server::new()
        .flag("--allow-client-shm=true")
        .model("echo", probe("echo", &[]) + "dynamic_batching { }\n")
        .model("fixed", probe("fixed", &[]).replace("-1", "4"))
        .model("many", probe("many", &[("responses", "3")]) + decoupled)
        .model("failing", probe("failing", &[("fail", "out of paper")]))
        .model("slow", probe("slow", &[("delay_ms", "40")]))
        .model("sum", accumulator("sum", 8, "corrid", &sequence))
        .model("chain", CHAIN)
        .start_shared()
});

const CHAIN: &str = r#"
name: "chain"
platform: "ensemble"
max_batch_size: 8
input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] } ]
ensemble_scheduling {
  step [
    { model_name: "echo" model_version: -1
      input_map { key: "INPUT0" value: "INPUT0" } output_map { key: "OUTPUT0" value: "between" } },
    { model_name: "fixed" model_version: 1
      input_map { key: "INPUT0" value: "between" } output_map { key: "OUTPUT0" value: "OUTPUT0" } }
  ]
}
"#;

/// Windows of 100 ms; the first three count, whatever their difference.
const QUICK: [&str; 4] = ["-p100", "-s100000", "--max-trials=100", "--no-progress"];

/// All generations and protocols.
const WIRES: [[&str; 2]; 4] = [
    ["--generation=v1", "-iHTTP"],
    ["--generation=v1", "-igRPC"],
    ["--generation=v2", "-iHTTP"],
    ["--generation=v2", "-igRPC"],
];

fn program(name: &str, flags: &[&str]) -> Process {
    let mut command = Command::new(dist().join("bin").join(name));
    command.args(QUICK).args(flags);
    Process::spawn(command)
}

/// Runs trtserver-perf to its end.
fn perf(flags: &[&str]) -> Ended {
    program("trtserver-perf", flags).wait(TIMEOUT)
}

fn url(protocol: &str) -> String {
    let address = if protocol == "-iHTTP" { SERVER.http() } else { SERVER.grpc() };
    format!("-u{address}")
}

/// Runs trtserver-perf, which must succeed, and returns its output and its results.
#[track_caller]
fn measured(wire: [&str; 2], flags: &[&str]) -> (String, Value) {
    let folder = folder();
    let file = folder.path().join("results.json");
    let (url, json) = (url(wire[1]), format!("--json={}", file.display()));
    let ended = perf(&[&wire[..], &[&url, &json], flags].concat());
    assert!(ended.status.success(), "{wire:?} {flags:?}\n{ended:?}");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let results = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
    (ended.stdout, results)
}

fn point(results: &Value) -> &Value {
    &results["results"][0]["points"][0]
}

#[track_caller]
fn check(results: &Value) {
    let point = point(results);
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    assert!(number(&point["requests"]) > 0.0 && number(&point["throughput"]) > 0.0, "{point:#}");
    assert_eq!(point["failures"], 0, "{point:#}");
    assert!(number(&point["latency_us"]["p99.99"]) > 0.0, "{point:#}");
    assert!(number(&point["server"]["requests"]) > 0.0, "{point:#}");
}

/// All wires at the same time: they mostly wait for their windows.
fn on_every_wire(test: impl Fn([&'static str; 2]) + Sync) {
    thread::scope(|scope| {
        for wire in WIRES {
            let test = &test;
            scope.spawn(move || test(wire));
        }
    });
}

#[test]
fn closed_loop_on_every_wire() {
    on_every_wire(|wire| {
        let flags = ["-mecho", "--shape=INPUT0:16", "-b2", "--concurrency-range=1:5:4", "-v"];
        let (output, results) = measured(wire, &flags);
        check(&results);
        assert_eq!(results["results"][0]["points"][1]["load"], json!({ "concurrency": 5 }));
        for text in
            ["Request concurrency: 5\n", "  Pass [3] throughput: ", "Concurrency: 1, throughput: "]
        {
            assert!(output.contains(text), "{text}: {output}");
        }
    });
}

#[test]
fn open_loop_on_every_wire() {
    let folder = folder();
    let gaps = folder.path().join("gaps");
    std::fs::write(&gaps, "8000\n24000\n").expect("a file");
    let intervals = format!("--request-intervals={}", gaps.display());
    on_every_wire(|wire| {
        // Fewer than the slowest machine answers: windows of a client that falls behind end without
        // a request of their own.
        for load in ["--request-rate-range=60", intervals.as_str()] {
            let poisson = "--request-distribution=poisson";
            check(&measured(wire, &["-mfixed", "-z", load, poisson, "-p300"]).1);
        }
    });
}

/// A model that serves 25 requests a second gets 100: latency counts from when a request was due,
/// so it grows although each request is answered within 40 ms of being sent.
#[test]
fn requests_that_wait_for_a_connection_are_timed_from_when_they_were_due() {
    let flags =
        ["-mslow", "--shape=INPUT0:1", "--request-rate-range=100", "--max-connections=1", "-p500"];
    let (_, results) = measured(WIRES[2], &flags);
    let latency = &point(&results)["latency_us"];
    // After one second, at most 25 of 100 requests are done: the last was due at least half a
    // second before.
    assert!(latency["max"].as_f64().is_some_and(|us| us > 500_000.0), "{latency}");
    assert!(point(&results)["delayed"].as_u64().is_some_and(|count| count > 0));
}

#[test]
fn streams_of_both_generations() {
    thread::scope(|scope| {
        for wire in [WIRES[1], WIRES[3]] {
            scope.spawn(move || {
                let flags = ["-mfixed", "--streaming", "--concurrency-range=3"];
                check(&measured(wire, &flags).1);
                check(&measured(wire, &["-msum", "--streaming", "--concurrency-range=3"]).1);
            });
        }
        scope.spawn(|| {
            let (output, results) =
                measured(WIRES[3], &["-mmany", "--shape=INPUT0:4", "--streaming"]);
            check(&results);
            let count = |name: &str| point(&results)[name].as_u64().unwrap_or(0);
            assert_eq!(count("responses"), 3 * count("requests"));
            assert!(output.contains("Detected decoupled model"), "{output}");
        });
    });
}

#[test]
fn sequences_on_every_wire() {
    let folder = folder();
    let file = folder.path().join("steps.json");
    let step = |value: i32| json!({ "INPUT0": [value] });
    let streams = json!({ "data": [[step(1), step(2)], [step(3), step(4), step(5)]] });
    std::fs::write(&file, streams.to_string()).expect("a file");
    let data = format!("--input-data={}", file.display());
    on_every_wire(|wire| {
        // The server refuses a sequence that does not begin or that begins twice.
        let (output, results) = measured(wire, &["-msum", &data, "--concurrency-range=3"]);
        check(&results);
        assert!(output.contains("    Sequence count: "), "{output}");
        let rate = ["-msum", "--sequence-length=5", "--request-rate-range=60", "-p300"];
        check(&measured(wire, &rate).1);
    });
}

#[test]
fn input_data_of_every_kind() {
    let folder = folder();
    let values: Vec<u8> = [1_f32, 2.0, 3.0, 4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
    std::fs::write(folder.path().join("INPUT0"), values).expect("a file");
    let json = folder.path().join("data.json");
    std::fs::write(&json, json!({ "data": [{ "INPUT0": [1, 2, 3, 4] }] }).to_string())
        .expect("a file");
    for data in
        ["zero", "random", &folder.path().display().to_string(), &json.display().to_string()]
    {
        let data = format!("--input-data={data}");
        check(&measured(WIRES[2], &["-mfixed", &data, "-HX-Test:yes"]).1);
    }
}

#[test]
fn shared_memory_on_every_wire() {
    on_every_wire(|wire| {
        check(&measured(wire, &["-mfixed", "-b4", "--shared-memory=system"]).1);
    });
    let left = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let ours =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with("trtserver-perf-"));
    // Other tests that run at the same time have no such regions.
    assert_eq!(ours.count(), 0, "regions are removed");
}

#[test]
fn steps_of_an_ensemble_are_reported() {
    let folder = folder();
    let csv = folder.path().join("out.csv");
    let file = format!("-f{}", csv.display());
    on_every_wire(|wire| {
        let (output, results) = measured(wire, &["-mchain"]);
        // Both generations count executions.
        let step = &point(&results)["server"]["composing"][0];
        assert!(step["executions"].as_u64().is_some_and(|count| count > 0), "{step}");
        assert!(output.contains("      Execution count: "), "{output}");
        assert!(output.contains("  Composing models: \n  echo, version: 1\n"), "{output}");
    });
    measured(WIRES[0], &["-mchain", &file]);
    for name in ["out.csv", "echo_v1.out.csv", "fixed_v1.out.csv"] {
        let text = std::fs::read_to_string(folder.path().join(name)).expect(name);
        assert!(text.starts_with("Concurrency,Inferences/Second,Client Send,"), "{text}");
        assert_eq!(text.lines().count(), 2, "{name}: {text}");
    }
}

#[test]
fn binary_search_ends_at_the_limit() {
    // Each request takes 40 ms: with two at a time, 80.
    let flags = [
        "-mslow",
        "--shape=INPUT0:1",
        "--concurrency-range=1:9",
        "--binary-search",
        "-l60000",
        "-p200",
    ];
    let (output, results) = measured(WIRES[2], &flags);
    assert!(output.contains("  Using Binary Search algorithm\n"), "{output}");
    // Both ends are within a limit of a minute.
    assert_eq!(results["results"][0]["points"].as_array().map(Vec::len), Some(2));
    let over = perf(&[&WIRES[2][..], &[&url("-iHTTP")], &flags[..4], &["-l20", "-p200"]].concat());
    assert!(
        over.stderr.contains("Measured latency went over the set limit of 20 msec. "),
        "{over:?}"
    );
    assert!(!over.stdout.contains("Request concurrency: 9"), "{over:?}");
}

#[test]
fn perf_client_speaks_v1_and_prints_the_lines_of_the_original() {
    let folder = folder();
    let csv = folder.path().join("out.csv");
    let csv_path = csv.display().to_string();
    let url = url("-iHTTP");
    // A window without a response is an error; on a busy machine, a short one may have none.
    let flags = ["-mfixed", &url, "-d", "-c2", "-l60000", "-z", "-p300", "-f", &csv_path];
    let ended = program("perf_client", &flags).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
    let digits = |text: &str| {
        let mut shape = String::new();
        for c in text.chars() {
            match c {
                '0'..='9' | '.' if shape.ends_with('#') => {}
                '0'..='9' => shape.push('#'),
                c => shape.push(c),
            }
        }
        shape.replace("#e+#", "#")
    };
    let block = "Request concurrency: #\n  Client: \n    Request count: #\n    Throughput: # infer/sec\n    Avg latency: # usec (standard deviation # usec)\n    p# latency: # usec\n    p# latency: # usec\n    p# latency: # usec\n    p# latency: # usec\n    Avg HTTP time: # usec (send/recv # usec + response wait # usec)\n  Server: \n    Request count: #\n    Avg request latency: # usec (overhead # usec + queue # usec + compute # usec)\n\n";
    let expected = format!(
        "*** Measurement Settings ***\n  Batch size: #\n  Measurement window: # msec\n  Latency limit: # msec\n  Concurrency limit: # concurrent requests\n  Using synchronous calls for inference\n  Stabilizing using average latency\n\n{block}{block}Inferences/Second vs. Client Average Batch Latency\nConcurrency: #, throughput: # infer/sec, latency # usec\nConcurrency: #, throughput: # infer/sec, latency # usec\n"
    );
    assert_eq!(digits(&ended.stdout), expected, "{}", ended.stdout);
    let table = std::fs::read_to_string(csv).expect("CSV");
    assert!(table.starts_with("Concurrency,Inferences/Second,Client Send,Network+Server Send/Recv,Server Queue,Server Compute,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n"), "{table}");
    assert_eq!(table.lines().count(), 3);
}

#[test]
fn the_profiler_runs_during_the_windows() {
    let server = Server::new().flag("--allow-profiling").model("echo", probe("echo", &[])).start();
    for (protocol, address) in [("-iHTTP", server.http()), ("-igRPC", server.grpc())] {
        let flags = ["-n", "-mecho", "--shape=INPUT0:1", protocol, "-u", address];
        let ended = program("perf_client", &flags).wait(TIMEOUT);
        assert!(ended.status.success(), "{ended:?}");
    }
    let count = |text: &str| server.log().matches(text).count();
    assert!(count("profile start:") >= 6, "{}", server.log());
    assert_eq!(count("profile start:"), count("profile stop:"));
    let ended = program("perf_client", &["-n", "-mfixed", &url("-iHTTP")]).wait(TIMEOUT);
    assert_eq!(ended.code(), 1);
    assert!(ended.stderr.contains("Profile API not enabled"), "{ended:?}");
}

#[test]
fn failed_requests_are_never_a_success() {
    on_every_wire(|wire| {
        let flags = ["-mfailing", "--shape=INPUT0:1", &url(wire[1])];
        let ended = perf(&[&wire[..], &flags].concat());
        assert_eq!(ended.code(), 2, "{ended:?}");
        assert!(ended.stderr.contains("out of paper"), "{ended:?}");
    });
    let ended =
        program("perf_client", &["-mfailing", "--shape=INPUT0:1", &url("-iHTTP")]).wait(TIMEOUT);
    assert_eq!(ended.code(), 1);
    assert!(
        ended.stderr.contains("INTERNAL - ") && ended.stderr.contains("out of paper"),
        "{ended:?}"
    );
}

#[test]
fn what_cannot_be_measured_is_refused_with_its_reason() {
    let folder = folder();
    let streams = folder.path().join("streams.json");
    let step = json!([{ "INPUT0": [1, 2, 3, 4] }]);
    std::fs::write(&streams, json!({ "data": [step, step] }).to_string()).expect("a file");
    let streams = format!("--input-data={}", streams.display());
    let cases: [(&[&str], &str); 9] = [
        (&["-munknown"], "unknown"),
        (&["-mecho"], "input INPUT0 contains dynamic shape, provide shapes"),
        (&["-mfixed", "-b9"], "expecting batch size <= 8 for model 'fixed'"),
        (&["-msum", "-b2"], "can not specify batch size > 1 when using a sequence model"),
        (&["-mfixed", "-x7"], "7"),
        (
            &["-mfixed", "-x7", "--generation=v1"],
            "model 'fixed' has no version 7, only: 1 (server ",
        ),
        (
            &["-mfixed", &streams],
            "--input-data has 2 data streams, but model 'fixed' has no sequences",
        ),
        (&["-mmany", "--shape=INPUT0:1"], "is decoupled, which needs --streaming"),
        (&["-mfixed", "--shape=INPUT0:5"], "does not fit the model's [4]"),
    ];
    thread::scope(|scope| {
        for (flags, text) in cases {
            scope.spawn(move || {
                let ended = perf(&[flags, &[&url("-iHTTP")]].concat());
                assert_eq!(ended.code(), 1, "{flags:?} {ended:?}");
                assert!(
                    ended.stderr.starts_with("error: ") && ended.stderr.contains(text),
                    "{flags:?}: {text}: {ended:?}"
                );
            });
        }
    });
    let usage = program("perf_client", &["-mm", "--nothing"]).wait(TIMEOUT);
    assert_eq!(usage.code(), 1);
    assert!(
        usage.stderr.contains("error: unexpected argument '--nothing' found\n")
            && usage.stderr.contains("Usage: "),
        "{usage:?}"
    );
    let hint = program("trtserver-perf", &["-mm", "--nothing"]).wait(TIMEOUT);
    assert_eq!(
        hint.stderr,
        "error: unexpected argument '--nothing' found\nFor more information, try '--help'.\n"
    );
}

#[test]
fn an_interrupted_measurement_reports_what_it_has() {
    let flags = ["-mfixed", &url("-iHTTP"), "--concurrency-range=1:1000"];
    let process = program("trtserver-perf", &flags);
    let second = |out: &str| out.contains("Request concurrency: 2\n").then_some(());
    process.stdout_until("the second load", second);
    process.signal(Signal::INT);
    let ended = process.wait(TIMEOUT);
    assert_eq!(ended.code(), 1, "{ended:?}");
    assert!(ended.stdout.contains("\nConcurrency: 1, throughput: "), "{ended:?}");
    assert!(ended.stderr.ends_with("error: Received exit signal.\n"), "{ended:?}");
}

fn results_in(folder: &TempDir, name: &str, flags: &[&str]) -> String {
    let file = folder.path().join(name).display().to_string();
    let ended = perf(&[&["-mfixed", "--json", &file, &url("-iHTTP")], flags].concat());
    assert!(ended.status.success(), "{ended:?}");
    file
}

#[test]
fn reports_requirements_and_comparisons() {
    let folder = folder();
    let page = folder.path().join("report.html");
    let flags = [
        "--report",
        &page.display().to_string(),
        "--require=p99<=1000s",
        "--require=throughput>=0.001",
    ];
    let result = results_in(&folder, "first.json", &flags);
    let html = std::fs::read_to_string(page).expect("a page");
    assert!(
        html.contains("<svg") && html.contains("fixed on") && !html.contains("<script"),
        "{html}"
    );
    let missed = perf(&["-mfixed", &url("-iHTTP"), "--require=avg<=1ns"]);
    assert_eq!(missed.code(), 3, "{missed:?}");
    assert!(missed.stderr.contains("required avg<=1ns, found "), "{missed:?}");

    let same = perf(&["--compare", &result, &result]);
    assert!(same.status.success(), "{same:?}");
    assert!(same.stdout.contains("The second result is not worse.\n"), "{same:?}");
    // A tenth of the throughput, in every window.
    let text = std::fs::read_to_string(&result).expect("results");
    let mut slower: Value = serde_json::from_str(&text).expect("JSON");
    let calm = |throughput: f64| {
        let window =
            |n| json!({ "throughput": throughput + n, "avg_us": 100.0 + n, "p99_us": 100.0 + n });
        json!([window(0.0), window(0.1), window(0.2)])
    };
    let mut faster = slower.clone();
    faster["results"][0]["points"][0]["windows"] = calm(1000.0);
    slower["results"][0]["points"][0]["windows"] = calm(100.0);
    let [slow, fast] = [("slow.json", slower), ("fast.json", faster)].map(|(name, json)| {
        let file = folder.path().join(name);
        std::fs::write(&file, json.to_string()).expect("a file");
        file.display().to_string()
    });
    let worse = perf(&["--compare", &fast, &slow]);
    assert_eq!(worse.code(), 4, "{worse:?}");
    assert!(
        worse.stdout.contains("throughput: 1000.1 -> 100.1 infer/sec (-90.0 %, p = 0.00): WORSE"),
        "{worse:?}"
    );
    assert!(perf(&["--compare", &slow, &fast]).status.success());
    let missing = perf(&["--compare", &fast, "/nowhere.json"]);
    assert!(missing.code() == 1 && missing.stderr.contains("/nowhere.json"), "{missing:?}");
}

#[test]
fn servers_and_models_are_measured_in_turn() {
    let (one, two) =
        (url("-iHTTP"), format!("-u{}", SERVER.http().replace("127.0.0.1", "localhost")));
    let ended = perf(&["-mfixed", "-mecho", "--shape=INPUT0:4", &one, &two]);
    // A shape for an input fits both models.
    assert!(ended.status.success(), "{ended:?}");
    let blocks = ended.stdout.matches("Request concurrency: 1\n").count();
    assert_eq!(blocks, 4, "{ended:?}");
    assert_eq!(ended.stdout.matches(" against fixed on ").count(), 3, "{ended:?}");
    assert!(ended.stdout.contains("  throughput: "), "{ended:?}");
}
