//! `GET /v2/trtserver/memory`: bytes by model, version and use, and the sums of them.

use serde_json::Value;
use std::cell::RefCell;
use trtserver_client::v2::{InferRequest, Input};
use trtserver_client::{Bytes, Protocol, Settings, blocking};
use trtserver_tests::control::{Control, assert_ok, explicit};
use trtserver_tests::grpc::{INFER, field, infer_v2_raw};
use trtserver_tests::http2::{Client, call_headers, message};
use trtserver_tests::isolated::isolated;
use trtserver_tests::scheduled::{flag, sequences};
use trtserver_tests::{Running, Server, parameters, probe, python_v2};

const MIB: u64 = 1 << 20;

fn report(server: &Running) -> Value {
    let response = server.get("/v2/trtserver/memory");
    assert_eq!(response.status, 200, "{}", response.error_text());
    serde_json::from_slice(&response.body).unwrap_or_else(|e| panic!("no JSON: {e}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

fn items(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("no array: {value}"))
}

fn sum(entries: &Value) -> u64 {
    items(entries).iter().map(|entry| number(&entry["byte_size"])).sum()
}

/// Bytes of `holder` of version 1 of a model, or (without a name) of the server.
fn held(report: &Value, model: &str, holder: &str) -> u64 {
    let is_owner = |m: &&Value| m["name"] == model && m["version"] == "1";
    held_by(
        match model {
            "" => Some(&report["server"]),
            _ => items(&report["models"]).iter().find(is_owner),
        },
        holder,
    )
}

/// Bytes of `holder` that all versions of a model share.
fn shared(report: &Value, model: &str, holder: &str) -> u64 {
    let is_owner = |m: &&Value| m["name"] == model && m["version"].is_null();
    held_by(items(&report["models"]).iter().find(is_owner), holder)
}

fn held_by(owner: Option<&Value>, holder: &str) -> u64 {
    let entries = owner.map_or(&[][..], |owner| items(&owner["memory"])).iter();
    entries.filter(|e| e["holder"] == holder).map(|e| number(&e["byte_size"])).sum()
}

/// While no request begins or ends, what is drawn from the budget is what the owners hold of it,
/// and every sum is that of its parts.
fn assert_sums(report: &Value) {
    assert_eq!(budgeted(report), number(&report["budget"]["in_use"]), "{report}");
    for owner in owners(report) {
        assert_eq!(sum(&owner["totals"]), sum(&owner["memory"]), "{owner}");
    }
    let all: u64 = owners(report).map(|owner| sum(&owner["totals"])).sum();
    assert_eq!(all, sum(&report["totals"]), "{report}");
}

/// The models and the server of a report.
fn owners(report: &Value) -> impl Iterator<Item = &Value> {
    items(&report["models"]).iter().chain([&report["server"]])
}

/// Bytes that the owners hold of the budget.
fn budgeted(report: &Value) -> u64 {
    owners(report).map(|owner| number(&owner["budgeted"])).sum()
}

/// The models of the report that hold memory of requests.
fn holding(report: &Value) -> Vec<&str> {
    let of_request = |e: &Value| e["holder"] != "configuration" && e["holder"] != "labels";
    let holds = |m: &&Value| items(&m["memory"]).iter().any(of_request);
    items(&report["models"]).iter().filter(holds).filter_map(|m| m["name"].as_str()).collect()
}

/// The report once the budget agrees with the owners: a request that ends gives back its share of
/// the budget after its entry in the ledger, so a report that is made between the two differs.
fn settled_report(server: &Running) -> Value {
    let settled = RefCell::new(Value::Null);
    server.poll_until("the budget agrees with the owners", |server| {
        let now = report(server);
        let agrees = budgeted(&now) == number(&now["budget"]["in_use"]);
        settled.replace(now);
        agrees
    });
    let settled = settled.into_inner();
    assert_sums(&settled);
    settled
}

fn wait_until_nothing_is_held(server: &Running) {
    server
        .poll_until("no model holds memory", |server| holding(&settled_report(server)).is_empty());
}

#[test]
fn outstanding_tensors_are_shown_under_their_model_until_it_is_idle() {
    let server = Server::new()
        .model("slow", probe("slow", &[("delay_ms", "1500")]))
        .model("other", probe("other", &[]))
        .start();
    let body = vec![0; 8 << 20];
    std::thread::scope(|scope| {
        let post = scope.spawn(|| {
            let raw = [("Inference-Header-Content-Length", "0")];
            server.post("/v2/models/slow/infer", &raw, &body[..])
        });
        server.poll_until("the input is shown under its model", |server| {
            held(&report(server), "slow", "inputs") >= 8 * MIB
        });
        let now = settled_report(&server);
        assert_eq!(held(&now, "other", "inputs"), 0);
        assert!(number(&now["budget"]["peak"]) >= 8 * MIB);
        let pool = |key: &str| number(&now["pool"][key]);
        assert!(pool("mapped") >= pool("free") + 8 * MIB, "{now}");
        assert!(number(&now["process"]["resident"]) >= 8 * MIB);
        assert!(number(&now["allocator"]["in_use"]) > 0);
        assert_eq!(post.join().unwrap().status, 200);
    });
    wait_until_nothing_is_held(&server);
}

#[test]
fn small_inputs_are_shown_under_their_model_while_they_wait_and_execute() {
    let slow = probe("slow", &[("delay_ms", "1500")]);
    let server = Server::new().model("slow", slow).model("other", probe("other", &[])).start();
    let call = |bytes: usize| {
        let raw = [("Inference-Header-Content-Length", "0")];
        server.post("/v2/models/slow/infer", &raw, &vec![0; bytes][..])
    };
    std::thread::scope(|scope| {
        // One executes, one waits.
        let calls = [scope.spawn(|| call(1000)), scope.spawn(|| call(500))];
        server.poll_until("the inputs are shown under their model", |server| {
            held(&report(server), "slow", "inputs") == 1500
        });
        let now = settled_report(&server);
        assert_eq!(held(&now, "other", "inputs"), 0);
        calls.into_iter().for_each(|call| assert_eq!(call.join().unwrap().status, 200));
    });
    wait_until_nothing_is_held(&server);
}

#[test]
fn configuration_and_labels_of_a_loaded_model_are_shown() {
    let output = r#""OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ]"#;
    let config =
        probe("classes", &[]).replace(output, &format!(r#"{output} label_filename: "labels.txt""#));
    let labels: String = (0..1000).map(|n| format!("class number {n}\n")).collect();
    let server = explicit()
        .flag("--load-model=classes")
        .model("classes", config)
        .file("classes/labels.txt", &labels)
        .start();
    let now = settled_report(&server);
    // The text, and an offset for each line.
    assert_eq!(shared(&now, "classes", "labels"), labels.len() as u64 + 4000);
    assert!(shared(&now, "classes", "configuration") > 50, "{now}");
    assert_ok(server.unload("classes"));
    server.poll_until("the model is not listed", |server| {
        items(&report(server)["models"]).is_empty()
    });
}

/// A response of 8 MiB that the client does not read.
fn unread(server: &Running) -> (Client, u32) {
    let mut client = Client::open_without_window(server.grpc());
    let call = client.call(&call_headers(INFER[0]));
    client.send_large(call, &message(&infer_v2_raw("echo", &vec![0; 8 << 20])));
    server.poll_until("the response is unread", |server| {
        let now = report(server);
        held(&now, "echo", "outputs") >= 8 * MIB && held(&now, "", "unread_responses") >= 7 * MIB
    });
    (client, call)
}

#[test]
fn unread_responses_are_outputs_of_their_model_until_they_are_read() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let (mut client, call) = unread(&server);
    // The backend may still hold the request when its response is sent.
    server.poll_until("the input is freed", |server| held(&report(server), "echo", "inputs") == 0);
    let now = settled_report(&server);
    assert_eq!(held(&now, "", "request_bodies"), 0, "{now}");
    client.permit(call, 9 << 20);
    assert!(client.ends(&[call])[&call] > 8 << 20);
    wait_until_nothing_is_held(&server);
    assert_eq!(held(&report(&server), "", "unread_responses"), 0);
}

#[test]
fn unload_reports_what_is_still_held_until_it_is_freed() {
    let server = explicit().flag("--load-model=echo").model("echo", probe("echo", &[])).start();
    let (client, _) = unread(&server);
    assert_ok(server.unload("echo"));
    server.wait_for_log("model 'echo' version 1: the unload gave back ");
    server.wait_for_log(
        "model 'echo' version 1 is unloaded and still holds 8388608 bytes of CPU 0 (outputs)",
    );
    let now = report(&server);
    let entry = items(&now["models"]).iter().find(|m| m["name"] == "echo");
    assert_eq!(entry.map(|m| &m["state"]), Some(&Value::from("UNAVAILABLE")), "{now}");
    drop(client);
    server.poll_until("the model is not listed", |server| {
        items(&report(server)["models"]).is_empty()
    });
}

#[test]
fn reports_of_backends_are_shown_until_the_model_is_closed() {
    let server = explicit()
        .flag("--load-model=reports")
        .model("reports", probe("reports", &[("report_bytes", "12345")]))
        .start();
    let now = report(&server);
    assert_eq!(held(&now, "reports", "reported_by_backend"), 2 * 12345, "{now}");
    let gpu = items(&now["totals"]).iter().find(|total| total["type"] == "GPU");
    assert_eq!(gpu.map(|total| number(&total["byte_size"])), Some(12345));
    let sample = r#"trtserver_model_memory_bytes{device="0",holder="reported_by_backend",model="reports",type="GPU",version="1"}"#;
    assert_eq!(server.metrics(sample), Some(12345.0));
    let statistics = server.get("/v2/models/reports/stats").json();
    let usage = &statistics["model_stats"][0]["memory_usage"];
    assert_eq!(
        usage.to_string(),
        r#"[{"byte_size":12345,"id":0,"type":"CPU"},{"byte_size":12345,"id":0,"type":"GPU"}]"#
    );
    assert_ok(server.unload("reports"));
    server.wait_for_log("model reports:1 is closed and still reports 12345 bytes of GPU 0 memory");
    server.wait_for_log("model 'reports' version 1: the unload gave back 12345 bytes of CPU 0, 12345 bytes of GPU 0");
    assert!(holding(&report(&server)).is_empty());
}

#[test]
fn process_and_arenas_of_an_isolated_model_are_its_memory() {
    let server =
        explicit().flag("--load-model=apart").model("apart", isolated("apart", &[])).start();
    let raw = [("Inference-Header-Content-Length", "0")];
    assert_eq!(server.post("/v2/models/apart/infer", &raw, vec![0; 8 << 20]).status, 200);
    let now = settled_report(&server);
    let [process, inputs, outputs] =
        ["process", "arena_inputs", "arena_outputs"].map(|holder| held(&now, "apart", holder));
    assert!(process > MIB && inputs >= 8 * MIB && outputs >= 8 * MIB, "{now}");
    let entry = items(&now["models"]).iter().find(|m| m["version"] == "1").unwrap();
    let resident = number(&entry["processes"][0]["resident"]);
    assert!(resident > process, "{entry}");
    assert_ok(server.unload("apart"));
    let log = server.wait_for_log("model 'apart' version 1: the unload gave back ");
    assert!(!log.contains("gave back no bytes"), "{log}");
    server.poll_until("it is gone", |server| items(&report(server)["models"]).is_empty());
}

/// States of 80 KB each.
#[test]
fn states_of_sequences_are_shown_while_the_sequences_last() {
    let state =
        "state { input_name: \"IN\" output_name: \"OUT\" data_type: TYPE_INT32 dims: [ 20000 ] }";
    let scheduling =
        sequences("5000000", &format!("direct {{ }}\n{state}"), &[flag("START", "int32")]);
    let config = format!(
        "name: \"sums\"\nbackend: \"probe\"\nmax_batch_size: 4\n\
         input {{ name: \"INPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }}\n\
         output {{ name: \"OUTPUT0\" data_type: TYPE_INT32 dims: [ 1 ] }}\n{scheduling}{}",
        parameters(&[("accumulate", "state")])
    );
    let server = Server::new().model("sums", config).start();
    let send = |sequence: u32, start: bool| {
        let body = format!(
            r#"{{"parameters":{{"sequence_id":{sequence},"sequence_start":{start}}},"inputs":[{{"name":"INPUT0","datatype":"INT32","shape":[1,1],"data":[2]}}]}}"#
        );
        let response = server.post("/v2/models/sums/infer", &[], body);
        assert_eq!(response.status, 200, "{}", response.error_text());
        response.json()["outputs"][0]["data"][0].as_i64()
    };
    assert_eq!([send(1, true), send(2, true), send(1, false)], [Some(2), Some(2), Some(4)]);
    // A request ends after its response was sent, and holds the state before it until then.
    server.poll_until("each sequence has one state", |server| {
        held(&report(server), "sums", "sequence_states") == 2 * 80_000
    });
    // The initial state belongs to all versions.
    let now = settled_report(&server);
    assert_eq!(shared(&now, "sums", "controls"), 80_000, "{now}");
    server.poll_until("the sequences have ended", |server| {
        held(&report(server), "sums", "sequence_states") == 0
    });
}

#[test]
fn grpc_messages_are_inputs_of_their_model_once_its_name_has_arrived() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let whole = message(&infer_v2_raw("echo", &vec![0; 8 << 20]));
    let mut client = Client::open_wide(server.grpc());
    let call = client.call(&call_headers(INFER[0]));
    // Less than the window of a stream.
    client.send(call, &whole[..3 << 20], false);
    server.poll_until("the input is shown under its model", |server| {
        held(&report(server), "echo", "inputs") >= 2 * MIB
    });
    client.reset(call);
    wait_until_nothing_is_held(&server);
    // A message that names no model.
    let nameless = message(&field(9, &vec![0; 1 << 20]));
    let call = client.call(&call_headers(INFER[0]));
    client.send(call, &nameless[..700 << 10], false);
    server.poll_until("the message is shown under the server", |server| {
        held(&report(server), "", "request_bodies") >= MIB / 2
    });
    client.reset(call);
    server.poll_until("the message is freed", |server| {
        held(&report(server), "", "request_bodies") == 0
    });
}

#[test]
fn metrics_show_process_pool_allocator_and_machine() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    for sample in [
        r#"trtserver_process_memory_bytes{state="resident"}"#,
        r#"trtserver_process_memory_bytes{state="resident_peak"}"#,
        r#"trtserver_allocator_bytes{state="in_use"}"#,
        "nv_cpu_memory_total_bytes",
        "nv_cpu_memory_used_bytes",
    ] {
        assert!(server.metrics(sample).is_some_and(|bytes| bytes > 0.0), "{sample}");
    }
    assert_eq!(server.metrics(r#"trtserver_tensor_pool_bytes{state="mapped"}"#), Some(0.0));
    let utilization = server.metrics("nv_cpu_utilization");
    assert!(utilization.is_some_and(|rate| (0.0..=1.0).contains(&rate)), "{utilization:?}");
    // Without a driver there is no pinned memory.
    assert_eq!(server.metrics("nv_pinned_memory_pool_total_bytes"), Some(0.0));
    let without = Server::new().flag("--allow-cpu-metrics=false").start();
    assert_eq!(without.metrics("nv_cpu_memory_total_bytes"), None);
}

#[test]
fn v2_clients_read_memory_usage() {
    let server = Server::new().model("slow", probe("slow", &[("delay_ms", "2000")])).start();
    python_v2(&server, "v2_memory.py", &[]);
}

/// Once quiet after large tensors, the server keeps the free end of the heap of each network
/// thread, which the allocator limits, and the code that the requests have used.
#[test]
fn memory_of_large_tensors_is_given_back() {
    const HEAP_END: u64 = 8 << 10;
    const CODE: u64 = 8 << 10;
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let client = |_| {
        blocking::v2::BlockingClient::new(&Settings::new(server.grpc()).protocol(Protocol::Grpc))
    };
    let clients = [(); 4].map(client).map(|client| client.unwrap_or_else(|e| panic!("{e}")));
    let send = |bytes: usize| {
        let input =
            Input::new("INPUT0", "FP32", [1, bytes as i64 / 4], Bytes::from(vec![0; bytes]));
        let request = InferRequest::new("echo").input(input);
        std::thread::scope(|scope| {
            for client in &clients {
                scope.spawn(|| client.infer(&request).unwrap_or_else(|e| panic!("{e}")));
            }
        });
    };
    send(64);
    let before = server.resident_kib();
    send(16 << 20);
    let after = server.resident_kib();
    assert!(after > before + (64 << 10), "{before} KiB before, {after} KiB right after");
    let threads = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    let kept = threads as u64 * HEAP_END + CODE;
    server.poll_until("memory is given back", |server| server.resident_kib() < before + kept);
    assert!(server.stop().success());
}
