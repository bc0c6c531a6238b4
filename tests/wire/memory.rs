//! `GET /v2/trtserver/memory`: bytes by model, version and use, and the sums of them.

use serde_json::Value;
use trtserver_tests::{Running, Server, probe};

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
    let owner = match model {
        "" => Some(&report["server"]),
        _ => items(&report["models"]).iter().find(is_owner),
    };
    let entries = owner.map_or(&[][..], |owner| items(&owner["memory"])).iter();
    entries.filter(|e| e["holder"] == holder).map(|e| number(&e["byte_size"])).sum()
}

/// While no request begins or ends, what is drawn from the budget is what the owners hold of it, and every sum is that of its
/// parts.
fn assert_sums(report: &Value) {
    let owners = || items(&report["models"]).iter().chain([&report["server"]]);
    let budgeted: u64 = owners().map(|owner| number(&owner["budgeted"])).sum();
    assert_eq!(budgeted, number(&report["budget"]["in_use"]), "{report}");
    for owner in owners() {
        assert_eq!(sum(&owner["totals"]), sum(&owner["memory"]), "{owner}");
    }
    let all: u64 = owners().map(|owner| sum(&owner["totals"])).sum();
    assert_eq!(all, sum(&report["totals"]), "{report}");
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
        let now = report(&server);
        assert_eq!(held(&now, "other", "inputs"), 0);
        assert_sums(&now);
        assert!(number(&now["budget"]["peak"]) >= 8 * MIB);
        let pool = |key: &str| number(&now["pool"][key]);
        assert!(pool("mapped") >= pool("free") + 8 * MIB, "{now}");
        assert!(number(&now["process"]["resident"]) >= 8 * MIB);
        assert!(number(&now["allocator"]["in_use"]) > 0);
        assert_eq!(post.join().unwrap().status, 200);
    });
    server.poll_until("the model holds nothing", |server| {
        let now = report(server);
        assert_sums(&now);
        items(&now["models"]).iter().all(|m| items(&m["memory"]).is_empty())
    });
}
