//! The requests of the Rust client library are those of the original clients, byte by byte: both
//! are recorded on their way to the server.

use prost::Message;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use trtserver_client::blocking::{v1, v2};
use trtserver_client::v1::{ContextOptions, OutputFormat, RunOptions};
use trtserver_client::v2::{InferRequest, InferRequestedOutput, Input, Parameter};
use trtserver_client::{Bytes, Protocol, Result, Settings};
use trtserver_tests::{Process, Running, TIMEOUT, every_model, python, root, say};

static SERVER: LazyLock<Running> = LazyLock::new(|| every_model().start_shared());

/// What clients have sent, by connection.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<Vec<Vec<u8>>>>);

/// A proxy in front of `target`, and what passes through it to the server. Runs until the test
/// program ends.
fn record(target: &str) -> (String, Recorded) {
    let recorded = Recorded::default();
    let bound = TcpListener::bind("127.0.0.1:0").and_then(|l| Ok((l.local_addr()?.to_string(), l)));
    let (address, listener) = bound.unwrap_or_else(|e| panic!("{e}"));
    let (target, to) = (target.to_owned(), recorded.clone());
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&target) else { return };
            let number = to.with(|all| {
                all.push(Vec::new());
                all.len() - 1
            });
            let (to, halves) = (to.clone(), (client.try_clone(), server.try_clone()));
            if let (Ok(client), Ok(server)) = halves {
                std::thread::spawn(move || pass(server, client, |_| ()));
            }
            std::thread::spawn(move || {
                pass(client, server, |bytes| to.with(|all| all[number].extend_from_slice(bytes)));
            });
        }
    });
    (address, recorded)
}

fn pass(mut from: TcpStream, mut to: TcpStream, see: impl Fn(&[u8])) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        see(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

impl Recorded {
    fn with<T>(&self, act: impl FnOnce(&mut Vec<Vec<u8>>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Path, the values of these headers, and body of each inference over HTTP.
    fn http(&self, headers: &[&str]) -> Vec<(String, Vec<String>, Vec<u8>)> {
        let mut found = Vec::new();
        for connection in self.with(|all| all.clone()) {
            let mut rest = &connection[..];
            while let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&rest[..end]).into_owned();
                let header = |wanted: &str| {
                    let mut lines = head.lines().filter_map(|line| line.split_once(':'));
                    let found = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
                    found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
                };
                let length = header("content-length").parse().unwrap_or(0);
                let body = rest[end + 4..][..length].to_vec();
                rest = &rest[end + 4 + length..];
                let path = head.split(' ').nth(1).unwrap_or_default();
                if path.contains("infer") {
                    let values = headers.iter().map(|name| header(name)).collect();
                    found.push((path.to_owned(), values, body));
                }
            }
        }
        found
    }

    /// The messages over gRPC, one a stream.
    fn grpc(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        for connection in self.with(|all| all.clone()) {
            let mut streams = BTreeMap::<u32, Vec<u8>>::new();
            // The preface, then frames: length, type, flags, stream.
            let mut rest = connection.get(24..).unwrap_or_default();
            while let Some((head, after)) = rest.split_first_chunk::<9>() {
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
                let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
                // The client's last frames may still be on their way.
                let Some((payload, next)) = after.split_at_checked(length) else { break };
                if head[3] == 0 {
                    streams.entry(stream).or_default().extend_from_slice(payload);
                }
                rest = next;
            }
            // Without the compressed flag and the length.
            found.extend(streams.into_values().filter(|m| m.len() > 5).map(|m| m[5..].to_vec()));
        }
        found
    }
}

/// Runs a script of the original client through recorders; false if the client has no build for
/// this machine.
fn original(generation: &str, script: &str) -> Option<[Recorded; 2]> {
    let Some(program) = python(generation) else {
        say(&format!("SKIPPED {script}: the {generation} client has no build for this machine"));
        return None;
    };
    let ((http, from_http), (grpc, from_grpc)) = (record(SERVER.http()), record(SERVER.grpc()));
    let mut command = Command::new(program);
    command.arg(root().join("tests/python").join(script)).args([&http, &grpc]);
    let ended = Process::spawn(command).wait(TIMEOUT);
    assert!(ended.status.success(), "{ended:?}");
    Some([from_http, from_grpc])
}

/// Makes requests with the library through recorders.
fn ours(requests: impl Fn(&Settings) -> Result<()>) -> [Recorded; 2] {
    [(SERVER.http(), Protocol::Http), (SERVER.grpc(), Protocol::Grpc)].map(|(target, protocol)| {
        let (address, recorded) = record(target);
        let made = requests(&Settings::new(address).protocol(protocol));
        made.unwrap_or_else(|e| panic!("{e}"));
        recorded
    })
}

fn int32(values: impl IntoIterator<Item = i32>) -> Bytes {
    values.into_iter().flat_map(i32::to_le_bytes).collect::<Vec<u8>>().into()
}

fn v1_requests(settings: &Settings) -> Result<()> {
    let options = ContextOptions { correlation_id: 9, ..ContextOptions::new("addsub_int32") };
    let context = v1::Context::new(settings, &options)?;
    let mut run = context.new_run();
    let outputs =
        vec![("OUTPUT0".into(), OutputFormat::Raw), ("OUTPUT1".into(), OutputFormat::Class(3))];
    run.set_options(&RunOptions { batch_size: 2, flags: 3, outputs, ..RunOptions::default() })?;
    let (counted, ones) = (int32(0..16), int32([1; 16]));
    run.input("INPUT0")?.set_raw(counted)?;
    run.input("INPUT0")?.set_raw(ones.clone())?;
    run.input("INPUT1")?.set_raw(ones.clone())?;
    run.input("INPUT1")?.set_raw(ones)?;
    context.run(&run)?;
    let options = ContextOptions { version: 1, ..ContextOptions::new("identity_string") };
    let context = v1::Context::new(settings, &options)?;
    let mut run = context.new_run();
    let outputs = vec![("OUTPUT0".into(), OutputFormat::Raw)];
    run.set_options(&RunOptions { batch_size: 1, outputs, ..RunOptions::default() })?;
    run.input("INPUT0")?.set_shape(&[2])?;
    run.input("INPUT0")?.set_strings(&["ab", ""])?;
    context.run(&run)?;
    Ok(())
}

#[test]
fn v1_requests_are_those_of_the_client_of_2020() {
    let Some([http, grpc]) = original("v1", "v1_requests.py") else { return };
    let [our_http, our_grpc] = ours(v1_requests);
    let headers = ["NV-InferRequest", "Content-Type"];
    assert_eq!(http.http(&headers).len(), 2);
    assert_eq!(our_http.http(&headers), http.http(&headers));
    assert!(grpc.grpc().len() >= 4);
    assert_eq!(our_grpc.grpc(), grpc.grpc());
}

fn v2_requests(settings: &Settings) -> Result<()> {
    let client = v2::BlockingClient::new(settings)?;
    let mut request = InferRequest::new("addsub_int32")
        .id("seven")
        .input(Input::new("INPUT0", "INT32", [1, 16], int32(0..16)))
        .input(Input::new("INPUT1", "INT32", [1, 16], int32([1; 16])))
        .output(InferRequestedOutput::new("OUTPUT0"))
        .output(InferRequestedOutput::classes("OUTPUT1", 3));
    request.version = "1".into();
    request.parameters.insert("key".into(), Parameter::String("value".into()));
    client.infer(&request)?;
    let strings = Input::strings("INPUT0", [1, 2], ["ab", ""]);
    let mut request = InferRequest::new("identity_string").input(strings);
    (request.priority, request.timeout_us) = (2, 60_000_000);
    client.infer(&request)?;
    Ok(())
}

#[test]
fn v2_requests_are_those_of_tritonclient() {
    let Some([http, grpc]) = original("v2", "v2_requests.py") else { return };
    let [our_http, our_grpc] = ours(v2_requests);
    // The order of members is each client's own.
    let parsed = |recorded: &Recorded| {
        let requests = recorded.http(&["Inference-Header-Content-Length"]).into_iter();
        let parsed = requests.map(|(path, length, body)| {
            let length: usize = length[0].parse().unwrap_or_else(|e| panic!("{path}: {e}"));
            let json: Value = serde_json::from_slice(&body[..length]).unwrap_or_default();
            (path, json, body[length..].to_vec())
        });
        parsed.collect::<Vec<_>>()
    };
    assert_eq!(parsed(&http).len(), 2);
    assert_eq!(parsed(&our_http), parsed(&http));
    // The order of map entries, too.
    let decoded = |recorded: &Recorded| {
        let messages = recorded.grpc().into_iter();
        let decode = |m: Vec<u8>| trtserver_proto::v2::ModelInferRequest::decode(&m[..]);
        messages.map(|m| decode(m).unwrap_or_else(|e| panic!("{e}"))).collect::<Vec<_>>()
    };
    assert_eq!(decoded(&grpc).len(), 2);
    assert_eq!(decoded(&our_grpc), decoded(&grpc));
}
