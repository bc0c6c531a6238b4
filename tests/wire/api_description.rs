//! `GET /v2/docs` and that of a model: the endpoints answer with the statuses, content types and
//! bodies that the document names.

use serde_json::{Value, json};
use trtserver_tests::http1::{Response, request};
use trtserver_tests::{Running, Server, probe};

/// What does not fit a schema, with its place. The keywords are those of the document.
fn misfits(document: &Value, schema: &Value, value: &Value, place: &str) -> Vec<String> {
    let nested = |schema: &Value, value: &Value, key: &str| {
        misfits(document, schema, value, &format!("{place}/{key}"))
    };
    let mut found = Vec::new();
    let mut expect = |fits: bool| {
        if !fits {
            found.push(format!("{place}: {value} does not fit {schema}"));
        }
    };
    if let Some(kinds) = schema.get("type") {
        let is = |kind: &Value| match kind.as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("boolean") => value.is_boolean(),
            Some("integer") => value.is_i64() || value.is_u64(),
            Some("number") => value.is_number(),
            Some("null") => value.is_null(),
            other => panic!("{place}: type {other:?}"),
        };
        expect(kinds.as_array().map_or_else(|| is(kinds), |kinds| kinds.iter().any(is)));
    }
    expect(schema.get("const").is_none_or(|only| only == value));
    expect(schema["enum"].as_array().is_none_or(|values| values.contains(value)));
    let bounds = |key: &str| schema[key].as_f64().zip(value.as_f64());
    expect(bounds("minimum").is_none_or(|(least, n)| n >= least));
    expect(bounds("maximum").is_none_or(|(most, n)| n <= most));
    if let Some(any) = schema["anyOf"].as_array() {
        expect(any.iter().any(|schema| nested(schema, value, "anyOf").is_empty()));
    }
    if let Some(target) = schema["$ref"].as_str() {
        let target = document.pointer(target.trim_start_matches('#'));
        found.extend(nested(target.unwrap_or_else(|| panic!("{schema}")), value, "$ref"));
    }
    for part in schema["allOf"].as_array().into_iter().flatten() {
        found.extend(nested(part, value, "allOf"));
    }
    if let Some(members) = value.as_object() {
        let missing = schema["required"].as_array().into_iter().flatten();
        let missing =
            missing.filter(|key| !key.as_str().is_some_and(|key| members.contains_key(key)));
        found.extend(missing.map(|key| format!("{place}: {key} is missing in {value}")));
        for (key, value) in members {
            let schema =
                schema["properties"].get(key).or_else(|| schema.get("additionalProperties"));
            match schema {
                Some(Value::Bool(false)) => found.push(format!("{place}: unknown member {key}")),
                Some(schema) => found.extend(nested(schema, value, key)),
                None => {}
            }
        }
    }
    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
        let schema = schema["prefixItems"].get(i).or_else(|| schema.get("items"));
        found.extend(schema.into_iter().flat_map(|schema| nested(schema, item, &i.to_string())));
    }
    if let Some((items, least)) = value.as_array().zip(schema["minItems"].as_u64()) {
        let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
        if !(least..=most).contains(&(items.len() as u64)) {
            found.push(format!("{place}: {} items do not fit {schema}", items.len()));
        }
    }
    found
}

/// The response of an operation has a status, a content type and a body that its document names.
fn expect_described(document: &Value, operation: &Value, response: &Response, what: &str) {
    let described = operation["responses"].get(response.status.to_string());
    let described = described.unwrap_or_else(|| panic!("{what}: {}", response.status));
    let kind = response.header("content-type").map(|kind| kind.split(';').next().unwrap_or(kind));
    let Some(kind) = kind else {
        assert!(response.body.is_empty(), "{what}: a body without a content type");
        return;
    };
    // An empty body, as v1's failures have it, is described by its status alone.
    if described.get("content").is_none() && response.body.is_empty() {
        return;
    }
    let content = described["content"].get(kind);
    let content = content.unwrap_or_else(|| panic!("{what}: {} {kind}", response.status));
    if kind == "application/json" {
        let misfits = misfits(document, &content["schema"], &response.json(), what);
        assert!(misfits.is_empty(), "{}", misfits.join("\n"));
    }
}

fn document(server: &Running, path: &str) -> Value {
    let response = server.get(path);
    assert_eq!((response.status, response.header("content-type")), (200, Some("application/json")));
    response.json()
}

fn server() -> Running {
    Server::new()
        .model("echo", probe("echo", &[]))
        .model("broken", "name: \"broken\"\nbackend: \"none\"\n")
        .flag("--exit-on-error=false")
        .flag("--http-metrics")
        .start()
}

#[test]
fn endpoints_answer_as_described() {
    let server = server();
    assert_eq!(server.infer("echo", "").status, 200);
    let document = document(&server, "/v2/docs");
    assert_eq!(document["openapi"], "3.1.0");
    let mut asked = 0;
    for (template, operations) in
        document["paths"].as_object().unwrap_or_else(|| panic!("{document}"))
    {
        for (method, operation) in operations.as_object().into_iter().flatten() {
            if template.ends_with("/events") {
                continue;
            }
            let named = |name: &str| {
                let numbers = ["{version}", "{offset}", "{size}", "{device}"];
                let path =
                    numbers.iter().fold(template.clone(), |path, key| path.replace(key, "1"));
                let path = path.replace("{model}", name);
                path.split('/')
                    .map(|part| if part.starts_with('{') { "unknown" } else { part })
                    .collect::<Vec<_>>()
                    .join("/")
            };
            for name in ["echo", "broken", "unknown"] {
                let path = named(name);
                let headers: &[_] = if path == "/" {
                    &[("Accept", "text/html")]
                } else {
                    &[("Accept", "application/json")]
                };
                let method = method.to_uppercase();
                let response = server.send(request(&method, &path, headers, b""));
                assert_ne!(response.status, 405, "{method} {path}");
                expect_described(&document, operation, &response, &format!("{method} {path}"));
                asked += 1;
            }
        }
    }
    assert!(asked > 150, "{asked}");
    let events =
        server.connect().send(request("GET", "/v2/trtserver/status/events", &[], b"")).head();
    let described = &document["paths"]["/v2/trtserver/status/events"]["get"]["responses"]["200"];
    assert_eq!(events.status, 200);
    assert!(described["content"].get("text/event-stream").is_some(), "{described}");
}

#[test]
fn document_of_a_model_has_its_signature() {
    let server = server();
    let document = document(&server, "/v2/models/echo/docs");
    let metadata = server.get_json("/v2/models/echo").json();
    let input = &metadata["inputs"][0];
    let schemas = &document["components"]["schemas"];
    let described =
        &schemas["InferRequest"]["properties"]["inputs"]["items"]["anyOf"][0]["properties"];
    for key in ["name", "datatype"] {
        assert_eq!(described[key]["const"], input[key], "{described}");
    }
    let request = &schemas["InferRequest"];
    let fits = |body: &Value| misfits(&document, request, body, "request").is_empty();
    let tensor = |name: &str, datatype: &str| {
        let dims = input["shape"].as_array().map_or(1, Vec::len);
        json!({ "inputs": [{ "name": name, "datatype": datatype, "shape": vec![1; dims], "data": [1] }] })
    };
    let (name, datatype) =
        (input["name"].as_str().unwrap_or("?"), input["datatype"].as_str().unwrap_or("?"));
    assert!(
        fits(&tensor(name, datatype)),
        "{:?}",
        misfits(&document, request, &tensor(name, datatype), "")
    );
    assert!(!fits(&tensor("other", datatype)) && !fits(&tensor(name, "INT64")));
    assert!(!fits(&json!({ "inputs": [] })));
    let infer = &document["paths"]["/v2/models/echo/infer"]["post"];
    expect_described(&document, infer, &server.infer("echo", ""), "infer");
    for (path, status) in [
        ("/v2/models/echo/versions/1/docs", 200),
        ("/v2/models/echo/versions/2/docs", 404),
        ("/v2/models/unknown/docs", 404),
        ("/v2/models/broken/docs", 404),
    ] {
        let response = server.get(path);
        assert_eq!(response.status, status, "{path}: {}", response.text());
    }
    assert_eq!(
        server.send(trtserver_tests::http1::request("POST", "/v2/docs", &[], b"")).status,
        405
    );
}
