//! The status page and what is beneath it: files, headers, JSON, events, tokens, `--ui=off`.

use serde_json::{Value, json};
use trtserver_tests::control::explicit;
use trtserver_tests::http1::{Connection, Response, request};
use trtserver_tests::{Running, Server, probe};

const BROWSER: (&str, &str) = ("Accept", "text/html,application/xhtml+xml,*/*;q=0.8");
const EVENTS: &str = "/v2/trtserver/status/events";

fn get(server: &Running, path: &str, headers: &[(&str, &str)]) -> Response {
    server.send(request("GET", path, headers, b""))
}

fn status(server: &Running) -> Value {
    server.get_json("/v2/trtserver/status").json()
}

/// The version of a model in the status.
fn model<'a>(status: &'a Value, name: &str) -> &'a Value {
    let models = status["models"].as_array().unwrap_or_else(|| panic!("{status}"));
    let found = models.iter().find(|model| model["name"] == name);
    found.unwrap_or_else(|| panic!("no model '{name}': {status}"))
}

#[test]
fn browsers_get_the_page_and_others_what_they_got() {
    let server = Server::new().model("echo", probe("echo", &[])).start();
    let page = get(&server, "/", &[BROWSER]);
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = page.header("content-security-policy").unwrap_or_default().to_owned();
    for part in ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("vary"), Some("accept"));
    // Every file that the page names, and that those name, is there.
    let (mut pending, mut bytes) = (vec![page.text()], page.body.len());
    let mut seen = std::collections::BTreeSet::new();
    while let Some(text) = pending.pop() {
        let named = text.split('"').filter_map(|part| {
            let name = part.strip_prefix("/ui/").or_else(|| part.strip_prefix("./"))?;
            name.ends_with(['s']).then(|| format!("/ui/{name}"))
        });
        for path in named.collect::<Vec<_>>() {
            if seen.insert(path.clone()) {
                let file = get(&server, &path, &[]);
                assert_eq!(file.status, 200, "{path}");
                assert_eq!(file.header("content-security-policy"), Some(&*policy));
                bytes += file.body.len();
                pending.push(file.text());
            }
        }
    }
    assert!(seen.len() > 5 && bytes < 150 << 10, "{seen:?}: {bytes}");
    let head = server.connect().send(request("HEAD", "/", &[BROWSER], b"")).head();
    assert_eq!((head.status, head.header("content-type")), (200, page.header("content-type")));
    assert_eq!(server.send(request("POST", "/", &[BROWSER], b"")).status, 405);
    for (path, headers) in [
        ("/", &[][..]),
        ("/", &[("Accept", "*/*")]),
        ("/", &[("Accept", "application/json")]),
        ("/ui/", &[BROWSER]),
        ("/ui/nothing.js", &[BROWSER]),
    ] {
        let other = get(&server, path, headers);
        assert_eq!((other.status, &*other.text()), (404, r#"{"error":"Not Found"}"#), "{path}");
    }
}

#[test]
fn switched_off_there_is_neither_page_nor_log() {
    let server = Server::new().model("echo", probe("echo", &[])).flag("--ui=off").start();
    for path in ["/", "/ui/main.js", "/ui/style.css"] {
        let other = get(&server, path, &[BROWSER]);
        assert_eq!((other.status, &*other.text()), (404, r#"{"error":"Not Found"}"#), "{path}");
    }
    let log = server.get("/v2/trtserver/log");
    assert_eq!(log.status, 404);
    assert!(log.error_text().contains("--ui=off"), "{}", log.error_text());
    assert_eq!(status(&server)["server"]["phase"], "READY");
}

#[test]
fn status_tells_what_models_do() {
    let hostile = "<img src=x>\u{202e}";
    let server = Server::new()
        .model("echo", probe("echo", &[]))
        .model(hostile, probe(hostile, &[]))
        .model("broken", "name: \"broken\"\nbackend: \"<b>\"\n")
        .flag("--exit-on-error=false")
        .start();
    let before = status(&server);
    let echo = model(&before, "echo");
    assert_eq!((&echo["state"], &echo["version"]), (&json!("READY"), &json!("1")));
    assert!(echo["since_unix_ms"].as_u64() <= before["unix_ms"].as_u64(), "{before}");
    assert!(echo["load"]["open_ms"].as_f64() > Some(0.0), "{echo}");
    assert_eq!(echo["instances"][0]["kind"], "KIND_CPU");
    assert_eq!((&echo["queue"]["waiting"], &echo["total"]["requests"]), (&json!(0), &json!(0)));
    assert_eq!(model(&before, hostile)["state"], "READY");
    let broken = model(&before, "broken");
    assert!(broken["reason"].as_str().is_some_and(|why| why.contains("<b>")), "{broken}");
    let connections = before["server"]["connections"].as_array().map(Vec::len);
    assert_eq!((connections, &before["server"]["phase"]), (Some(3), &json!("READY")));
    for _ in 0..3 {
        assert_eq!(server.infer("echo", "").status, 200);
    }
    let refused = server.post("/v2/models/echo/infer", &[], r#"{"inputs":[]}"#);
    assert_eq!(refused.status, 400);
    // A reading is at most a second old.
    server.poll_until("the requests are counted", |server| {
        let now = status(server);
        let echo = model(&now, "echo");
        let total = &echo["total"];
        total["requests"] == 3 && total["refused"] == 1 && echo["recent"]["requests"].is_u64()
    });
    let now = status(&server);
    let total = &model(&now, "echo")["total"];
    assert!(total["p99_us"].as_f64() > Some(0.0) && total["rows"].as_u64() >= Some(3), "{total}");
    assert_eq!(total["batch_closed"].as_object().map(|closed| !closed.is_empty()), Some(true));
}

/// The next event of a stream: its kind and data.
fn next_event(stream: &mut Connection) -> (String, Value) {
    let chunk = String::from_utf8(stream.chunk()).unwrap_or_else(|e| panic!("{e}"));
    let (kind, data) = chunk.split_once('\n').unwrap_or_else(|| panic!("{chunk}"));
    let kind = kind.strip_prefix("event: ").unwrap_or_else(|| panic!("{chunk}")).to_owned();
    let data = data.strip_prefix("data: ").and_then(|data| data.strip_suffix("\n\n"));
    let data = data.unwrap_or_else(|| panic!("{chunk}"));
    (kind, serde_json::from_str(data).unwrap_or_else(|e| panic!("{e}: {chunk}")))
}

#[test]
fn events_tell_changes_and_end_with_the_server() {
    let server = explicit()
        .model("echo", probe("echo", &[]))
        .model("other", probe("other", &[]))
        .flag("--load-model=echo")
        .start();
    let mut stream = server.connect();
    let head = stream.send(request("GET", EVENTS, &[], b"")).head();
    assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let (kind, first) = next_event(&mut stream);
    assert_eq!((&*kind, &model(&first, "echo")["state"]), ("status", &json!("READY")));
    assert_eq!(first["server"]["viewers"], 1);
    let loaded = server.post("/v2/repository/models/other/load", &[], "{}");
    assert_eq!(loaded.status, 200);
    // A change names the new model, and not the one that did nothing.
    let change = std::iter::repeat_with(|| next_event(&mut stream))
        .inspect(|(kind, _)| assert_eq!(kind, "change"))
        .map(|(_, data)| data)
        .find(|data| data["models"].as_array().is_some_and(|models| !models.is_empty()));
    let change = change.unwrap_or_else(|| panic!("no change"));
    assert_eq!(model(&change, "other")["state"], "READY");
    assert_eq!(change["models"].as_array().map(Vec::len), Some(1), "{change}");
    // Without waiting for the viewer.
    assert!(server.stop().success());
}

#[test]
fn changes_and_lines_are_told_once() {
    let server = explicit().model("echo", probe("echo", &[])).flag("--load-model=echo").start();
    let changes = server.get("/v2/trtserver/changes").json();
    let kinds = |changes: &Value| {
        let all = changes["changes"].as_array().cloned().unwrap_or_default();
        all.iter().map(|c| format!("{} {}", c["change"], c["model"])).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&changes), [r#""loading" "echo""#, r#""loaded" "echo""#]);
    assert_eq!(server.post("/v2/repository/models/echo/unload", &[], "{}").status, 200);
    let after = server.get(&format!("/v2/trtserver/changes?after={}", changes["last"])).json();
    assert_eq!(kinds(&after), [r#""unloading" "echo""#]);
    let unknown = server.post("/v2/repository/models/nothing/load", &[], "{}");
    assert!(unknown.status >= 400);
    let has = |path: &str, text: &str| {
        let log = server.get(path).json();
        let lines = log["lines"].as_array().cloned().unwrap_or_default();
        lines.iter().any(|line| line["text"].as_str().is_some_and(|line| line.contains(text)))
    };
    assert!(has("/v2/trtserver/log?level=info", "successfully loaded 'echo'"));
    assert!(!has("/v2/trtserver/log?level=error", "successfully loaded 'echo'"));
    assert!(has("/v2/trtserver/log?level=error", "failed to load 'nothing'"));
    let last = server.get("/v2/trtserver/log").json()["last"].clone();
    let none = server.get(&format!("/v2/trtserver/log?after={last}")).json();
    assert_eq!(none["lines"], json!([]));
    for query in ["after=x", "level=loud", "colour=red"] {
        assert_eq!(server.get(&format!("/v2/trtserver/log?{query}")).status, 400, "{query}");
    }
}

#[test]
fn configuration_names_the_lines_of_its_file() {
    let text = "name: \"echo\"\nbackend: \"probe\"\nmax_batch_size: 8\n\
                input { name: \"IN\" data_type: TYPE_FP32 dims: [ -1 ] }\n\
                output { name: \"OUT\" data_type: TYPE_FP32 dims: [ -1 ] }\n";
    let server = Server::new()
        .model("echo", text)
        .model("broken", "backend: \"nothing\"\nmax_batch_size: 3\n")
        .flag("--exit-on-error=false")
        .start();
    // A refused model has what its file says.
    let refused = server.get("/v2/trtserver/models/broken/configuration").json();
    assert_eq!(refused["config"]["max_batch_size"], 3, "{refused}");
    let report = server.get("/v2/trtserver/models/echo/configuration").json();
    assert_eq!(report["source"], json!({"origin": "config.pbtxt", "text": text}));
    let fields = report["fields"].as_array().cloned().unwrap_or_default();
    let field = |path: &str| fields.iter().find(|field| field["path"] == path).cloned();
    assert_eq!(
        field("max_batch_size"),
        Some(json!({"path": "max_batch_size", "value": 8, "line": 3}))
    );
    assert_eq!(field("input[0].dims[0]").map(|field| field["line"].clone()), Some(json!(4)));
    let count = field("instance_group[0].count").unwrap_or_default();
    assert!(count["value"].as_u64() > Some(0) && count.get("line").is_none(), "{count}");
    let version = server.get("/v2/trtserver/models/echo/versions/1/configuration").json();
    assert_eq!(version, report);
    for path in ["echo/versions/7", "nothing"] {
        let path = format!("/v2/trtserver/models/{path}/configuration");
        assert_eq!(server.get(&path).status, 404, "{path}");
    }
}
