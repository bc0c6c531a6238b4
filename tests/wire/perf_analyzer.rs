//! perf_analyzer, unmodified, against both wires of v2: unary, streaming, sequences, decoupled
//! models. Its version is pinned in xtask/perf-analyzer.txt.

use serde_json::json;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use trtserver_tests::scheduled::{NEVER, accumulator, correlation, flag, sequences};
use trtserver_tests::{Process, Running, Server, TIMEOUT, folder, perf_analyzer, probe, say};

const DECOUPLED: &str = "model_transaction_policy { decoupled: true }\n";

const JSON_IN: &str = "--input-tensor-format=json";
const JSON_OUT: &str = "--output-tensor-format=json";
/// Replaced by the file of `steps`.
const STEPS: &str = "--input-data=steps";

/// A run of perf_analyzer: its protocol, its model, further flags.
struct Run {
    protocol: &'static str,
    model: &'static str,
    flags: &'static [&'static str],
}

const fn run(protocol: &'static str, model: &'static str, flags: &'static [&'static str]) -> Run {
    Run { protocol, model, flags }
}

const RUNS: [Run; 9] = [
    run("http", "echo", &["--shape=INPUT0:4", "--async"]),
    run("http", "echo", &["--shape=INPUT0:4", JSON_IN, JSON_OUT]),
    run("http", "echo", &["--shape=INPUT0:4", "-b8", "--request-rate-range=50"]),
    run("grpc", "echo", &["--shape=INPUT0:4", "--async"]),
    run("grpc", "echo", &["--shape=INPUT0:4", "--streaming"]),
    run("grpc", "many", &["--shape=INPUT0:4", "--streaming"]),
    run("http", "sum", &[STEPS, "--sequence-id-range=1:1000"]),
    run("grpc", "sum", &[STEPS, "--sequence-id-range=1000:2000"]),
    run("grpc", "sum", &[STEPS, "--sequence-id-range=2000:3000", "--streaming"]),
];

fn server() -> Server {
    let controls = [flag("START", "int32"), flag("END", "int32"), correlation("UINT64")];
    let sequence = sequences(NEVER, "oldest { max_candidate_sequences: 8 }", &controls);
    Server::new()
        .model("echo", probe("echo", &[]) + "dynamic_batching { }\n")
        .model("many", probe("many", &[("responses", "3")]) + DECOUPLED)
        .model("sum", accumulator("sum", 8, "corrid", &sequence))
}

/// Two sequences, of four and of three steps.
fn steps() -> String {
    let inputs = |values: &[i32]| -> Vec<_> {
        values.iter().map(|value| json!({ "INPUT0": [value] })).collect()
    };
    let all: [&[i32]; 2] = [&[1, 2, 3, 4], &[10, 20, 30]];
    json!({ "data": all.map(inputs) }).to_string()
}

fn command(program: &Path, folder: &TempDir, server: &Running, number: usize) -> Command {
    let run = &RUNS[number];
    let address = if run.protocol == "http" { server.http() } else { server.grpc() };
    let steps = format!("--input-data={}", folder.path().join("steps.json").display());
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", program.parent().unwrap_or(program));
    command.args(["-m", run.model, "-i", run.protocol, "-u", address]);
    command.args(run.flags.iter().map(|flag| match *flag {
        STEPS => steps.as_str(),
        flag => flag,
    }));
    if !run.flags.iter().any(|flag| flag.starts_with("--request-rate-range")) {
        command.arg("--concurrency-range=2");
    }
    // Three windows of this many requests are compared; any difference is accepted.
    command.args(["--measurement-mode=count_windows", "--measurement-request-count=30"]);
    command.args(["--max-trials=5", "--stability-percentage=999", "-f"]);
    command.arg(folder.path().join(format!("{number}.csv")));
    command
}

/// The number in the column with this heading.
fn column(table: &str, name: &str) -> Option<f64> {
    let mut lines = table.lines();
    let at = lines.next()?.split(',').position(|head| head == name)?;
    lines.next()?.split(',').nth(at)?.parse().ok()
}

#[test]
fn unary_streaming_sequences_and_decoupled_models() {
    let Some(install) = perf_analyzer() else {
        say("perf_analyzer is left out: it has no build for this architecture");
        return;
    };
    let folder = folder();
    std::fs::write(folder.path().join("steps.json"), steps()).expect("a file");
    let server = server().start();
    let program = install.join("perf_analyzer");
    // Its own threads leave the cores idle for most of the time.
    std::thread::scope(|scope| {
        let (folder, server, program) = (&folder, &server, &program);
        for (number, run) in RUNS.iter().enumerate() {
            scope.spawn(move || {
                let process = Process::spawn(command(program, folder, server, number));
                let what = format!("{} over {} with {:?}", run.model, run.protocol, run.flags);
                assert!(process.wait(TIMEOUT).status.success(), "{what}\n{process}");
                let table = std::fs::read_to_string(folder.path().join(format!("{number}.csv")));
                let table = table.unwrap_or_else(|e| panic!("{what}: {e}\n{process}"));
                let rate = column(&table, "Inferences/Second");
                assert!(rate.is_some_and(|rate| rate > 0.0), "{what}: {table}\n{process}");
            });
        }
    });
    for model in ["echo", "many", "sum"] {
        let sample = |name: &str, labels: &str| {
            server.metrics(&format!("{name}{{model=\"{model}\",{labels}version=\"1\"}}"))
        };
        assert!(sample("nv_inference_request_success", "").is_some_and(|n| n > 0.0), "{model}");
        assert_eq!(
            sample("nv_inference_request_failure", "reason=\"OTHER\","),
            Some(0.0),
            "{model}"
        );
    }
}
