//! Soak of what models share: the rate limiter, turns of clients and the response cache, with nested
//! requests, reloads and cancellations at once. Every response is checked, none may be missing,
//! memory stays flat.
//! `cargo xtask soak -- --sharing` runs it. A further feature joins by a flag in [`FLAGS`] and a
//! model in [`models`].

use crate::control::{Control, pair};
use crate::http1::{Connection, request};
use crate::inference_client::{ENDPOINTS, InferenceClient};
use crate::repository::probe;
use crate::server::{Running, Server};
use crate::soak::Random;
use serde_json::{Value, json};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

const FLAGS: &[&str] = &[
    "--model-control-mode=explicit",
    "--load-model=*",
    "--rate-limit=execution_count",
    "--fairness-header=x-client",
    "--fairness-weight=client0:3",
    // Too small for all responses, which expire as well.
    "--cache-config=local,size=65536,ttl=0.5",
];
const CACHED: &str = "response_cache { enable: true }\n";

/// Clients that check responses, and such that also disconnect.
const CLIENTS: u64 = 6;
const LEAVING: u64 = 2;

/// An instance group whose executions need `count` of `name`.
fn group(instances: u32, name: &str, count: u32, priority: u32) -> String {
    format!(
        "instance_group [ {{ kind: KIND_CPU count: {instances} rate_limiter {{ resources [ \
         {{ name: \"{name}\" count: {count} }}, {{ name: \"G\" count: 1 global: true }} ] \
         priority: {priority} }} }} ]\n"
    )
}

/// The configurations by name. All echo their input.
fn models() -> Vec<(&'static str, String)> {
    let limited =
        |name: &str, parameters: &[(&str, &str)], group: String| probe(name, parameters) + &group;
    let process = ("isolation", "process");
    let batching = "dynamic_batching { max_queue_delay_microseconds: 200 }\n";
    vec![
        ("outer", limited("outer", &[("infer", "middle")], group(2, "R", 1, 1))),
        ("middle", limited("middle", &[("infer", "inner")], group(1, "R", 2, 2))),
        ("inner", limited("inner", &[("spin_us", "200")], group(2, "R", 2, 1)) + batching),
        (
            "detached",
            limited("detached", &[("infer", "inner"), ("detach", "true")], group(1, "R", 1, 1)),
        ),
        ("isolated", limited("isolated", &[("infer", "inner"), process], group(2, "S", 1, 1))),
        ("reloaded", limited("reloaded", &[], group(1, "R", 1, 1))),
        ("cached", limited("cached", &[("spin_us", "300")], group(2, "R", 1, 2)) + CACHED),
        (
            "cached_outer",
            limited("cached_outer", &[("infer", "cached")], group(1, "R", 2, 1)) + CACHED,
        ),
        ("pair", pair("cached_outer") + "\n" + CACHED),
        ("free", probe("free", &[])),
    ]
}

pub fn server() -> Server {
    let server = FLAGS.iter().fold(Server::new(), |server, flag| server.flag(*flag));
    models().into_iter().fold(server, |server, (name, config)| server.model(name, config))
}

/// What was seen.
#[derive(Debug, Default)]
pub struct Report {
    pub right: u64,
    pub cancelled: u64,
    pub reloads: u64,
    pub wrong: u64,
    /// Requests that were answered from the response cache, or by the execution of an equal one.
    pub hits: u64,
    pub shared: u64,
    pub evictions: u64,
    /// Requests that still wait, or resources that are held, at the end.
    pub stuck: bool,
    /// Resident memory after a fifth of the time, and at the end.
    pub kib: [u64; 2],
}

impl Report {
    pub fn is_good(&self) -> bool {
        let [first, last] = self.kib;
        let cached = self.shared > 0 && self.hits > self.shared && self.evictions > 0;
        self.wrong == 0 && !self.stuck && self.reloads > 0 && cached && last < first + 8 * 1024
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { right, cancelled, reloads, wrong, hits, shared, evictions, stuck, kib } = self;
        let [first, last] = kib;
        write!(
            f,
            "{right} correct responses, {cancelled} requests cancelled, {reloads} reloads, {hits} hits of the \
             response cache, {shared} of them by equal requests at once, {evictions} evictions; \
             {wrong} wrong or lost, stuck: {stuck}; memory {first} KiB to {last} KiB"
        )
    }
}

#[derive(Default)]
struct Counts {
    right: AtomicU64,
    cancelled: AtomicU64,
    reloads: AtomicU64,
    wrong: AtomicU64,
}

/// Sends requests for `time`.
pub fn run(server: &Running, time: Duration) -> Report {
    let (counts, end, begin) = (Counts::default(), AtomicBool::new(false), Instant::now());
    let mut first = 0;
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (counts, end) = (&counts, &end);
            scope.spawn(move || check_responses(server, client, counts, end));
        }
        for client in 0..LEAVING {
            let (counts, end) = (&counts, &end);
            scope.spawn(move || leave(server, client, counts, end));
        }
        scope.spawn(|| reload(server, &counts, &end));
        while begin.elapsed() < time {
            thread::sleep(Duration::from_millis(50));
            if first == 0 && begin.elapsed() > time / 5 {
                first = server.resident_kib();
            }
        }
        end.store(true, Relaxed);
    });
    let stuck = !becomes_idle(server);
    let [hits, shared, evictions] = cache_counts(server);
    Report {
        right: counts.right.into_inner(),
        cancelled: counts.cancelled.into_inner(),
        reloads: counts.reloads.into_inner(),
        wrong: counts.wrong.into_inner(),
        hits,
        shared,
        evictions,
        stuck,
        kib: [first, server.resident_kib()],
    }
}

/// Hits, those of them by equal requests at once, and evictions.
fn cache_counts(server: &Running) -> [u64; 3] {
    let statistics = server.get("/v2/models/stats").json();
    let models = statistics["model_stats"].as_array().cloned().unwrap_or_default();
    let number = |model: &Value, of: [&str; 3]| {
        of.iter().filter(|key| !key.is_empty()).fold(model, |value, key| &value[*key]).as_u64()
    };
    let sum =
        |of: [&str; 3]| models.iter().map(|model| number(model, of).unwrap_or_default()).sum();
    let evictions = server.metrics("trtserver_response_cache_evictions_total").unwrap_or_default();
    [
        sum(["inference_stats", "cache_hit", "count"]),
        sum(["response_cache", "shared_count", ""]),
        evictions as u64,
    ]
}

/// Requests that wait or are executed.
const GAUGES: &[&str] = &[
    "trtserver_client_waiting_requests{",
    "trtserver_requests_in_flight{",
    "nv_inference_pending_request_count{",
];

/// Whether nothing waits or is held within ten seconds.
fn becomes_idle(server: &Running) -> bool {
    let is_idle = || {
        let report = server.get("/v2/trtserver/rate-limiter").json();
        let empty = Vec::new();
        let of = |key: &str| report[key].as_array().unwrap_or(&empty).clone();
        let page = server.metrics_text();
        let queued = page.lines().any(|line| {
            GAUGES.iter().any(|gauge| line.starts_with(gauge)) && !line.ends_with(" 0")
        });
        of("resources").iter().all(|row| row["in_use"] == 0)
            && of("instances").iter().all(|instance| instance.get("waiting_us").is_none())
            && !queued
    };
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(10) {
        if is_idle() {
            return true;
        }
        thread::sleep(Duration::from_millis(20));
    }
    false
}

fn check_responses(server: &Running, client: u64, counts: &Counts, end: &AtomicBool) {
    let (models, mut random) = (models(), Random::new(client + 1));
    let mut connection: Option<Connection> = None;
    let name = format!("client{client}");
    while !end.load(Relaxed) {
        let (model, _) = &models[random.below(models.len() as u64) as usize];
        let value = random.below(1000);
        // Some are equal to those whose clients leave, which then share their executions.
        let shared = random.below(4) == 0;
        let data = if shared { "[1,2]".to_owned() } else { format!("[{value},3]") };
        let body = format!(
            r#"{{"inputs":[{{"name":"INPUT0","datatype":"FP32","shape":[1,2],"data":{data}}}]}}"#
        );
        let path = format!("/v2/models/{model}/infer");
        let bytes = request("POST", &path, &[("x-client", &name)], body.as_bytes());
        let open = connection.get_or_insert_with(|| server.connect());
        let response = open.send(&bytes).response();
        let want = if shared { json!([1.0, 2.0]) } else { json!([value as f64, 3.0]) };
        let is_right = response.status == 200 && {
            let answer = response.json();
            answer["model_name"] == *model && answer["outputs"][0]["data"] == want
        };
        if !is_right {
            eprintln!("wrong: {model}: {} {}", response.status, response.text());
        }
        let count = if is_right { &counts.right } else { &counts.wrong };
        count.fetch_add(1, Relaxed);
    }
}

/// Requests on all wires whose clients disconnect, most of them early.
fn leave(server: &Running, client: u64, counts: &Counts, end: &AtomicBool) {
    let (models, mut random) = (models(), Random::new(client + 100));
    while !end.load(Relaxed) {
        let (model, _) = &models[random.below(models.len() as u64) as usize];
        let endpoint = ENDPOINTS[random.below(ENDPOINTS.len() as u64) as usize];
        let sent = InferenceClient::send(server, endpoint, model, [1.0, 2.0]);
        thread::sleep(Duration::from_micros(random.below(2000)));
        drop(sent);
        counts.cancelled.fetch_add(1, Relaxed);
    }
}

/// The demands of a model change while its instances wait.
fn reload(server: &Running, counts: &Counts, end: &AtomicBool) {
    for round in 0u32.. {
        if end.load(Relaxed) {
            return;
        }
        let group =
            group(1 + round % 3, ["R", "Q"][round as usize % 2], 1 + round % 2, 1 + round % 4);
        // In place, or as a new version.
        let rows = 4 + round / 2 % 2;
        let config = probe("reloaded", &[]).replacen(
            "max_batch_size: 8",
            &format!("max_batch_size: {rows}"),
            1,
        );
        server.models().file("reloaded/config.pbtxt", config + &group);
        let count =
            if server.load("reloaded").status == 200 { &counts.reloads } else { &counts.wrong };
        count.fetch_add(1, Relaxed);
        thread::sleep(Duration::from_millis(30));
    }
}
