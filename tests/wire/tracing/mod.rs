//! Request tracing: settings over both wires, what is recorded over each frontend, the trace file,
//! and the traces in memory.
#![allow(clippy::unwrap_used, reason = "what these tests cannot do is a failure")]

mod files;
mod requests;
mod settings;
mod spans;

use serde_json::Value;
use std::fs;
use std::path::Path;
use trtserver_tests::{Running, Server, TIMEOUT};

/// A setting of the trace file.
fn file_flag(path: &Path) -> String {
    format!("--trace-config=triton,file={}", path.display())
}

/// A server that traces every request, with its times.
fn tracing_server() -> Server {
    Server::new().flag("--trace-config=rate=1").flag("--trace-config=level=TIMESTAMPS")
}

/// The list of traces in memory once there are `n`.
#[track_caller]
fn wait_for_traces(server: &Running, n: usize) -> Vec<Value> {
    let list = |server: &Running| {
        let json = server.get("/v2/trtserver/requests").json();
        json["requests"].as_array().cloned().unwrap_or_default()
    };
    server.poll_until(&format!("{n} traces"), |server| list(server).len() == n);
    list(server)
}

/// The records of a trace file.
#[track_caller]
fn records(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// The heads of a trace file: id, parent, model.
#[track_caller]
fn heads(records: &[Value]) -> Vec<(u64, u64, String)> {
    let number = |value: &Value| value.as_u64().unwrap_or_default();
    let heads = records.iter().filter(|record| record.get("model_name").is_some());
    heads
        .map(|head| {
            let model = head["model_name"].as_str().unwrap().to_owned();
            (number(&head["id"]), number(&head["parent_id"]), model)
        })
        .collect()
}

/// The names of the timestamps of one trace.
fn timestamps(records: &[Value], id: u64) -> Vec<(String, u64)> {
    let of_trace = records.iter().filter(|record| record["id"] == id);
    let times = of_trace.filter_map(|record| record["timestamps"].as_array());
    times
        .flatten()
        .map(|time| (time["name"].as_str().unwrap().to_owned(), time["ns"].as_u64().unwrap()))
        .collect()
}

/// Waits until a file exists and is not empty.
#[track_caller]
fn wait_for_file(path: &Path) {
    let begin = std::time::Instant::now();
    while fs::metadata(path).map_or(0, |file| file.len()) == 0 {
        assert!(begin.elapsed() < TIMEOUT, "no {}", path.display());
        trtserver_tests::pause_since(begin);
    }
}
