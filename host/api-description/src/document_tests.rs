//! Unit tests of `document.rs` and `model_document.rs`.

use super::*;
use crate::{ModelFacts, TensorFacts, model_document};
use std::collections::BTreeSet;

const SERVER: ServerFacts<'static> =
    ServerFacts { name: "s", version: "1", page: true, metrics: true, tokens: true };

fn document() -> Value {
    serde_json::from_slice(&describe_server(&SERVER).unwrap()).unwrap()
}

/// Every `$ref` below a value.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value.as_str().filter(|_| key == "$ref") {
                    Some(target) => {
                        found.insert(target.to_owned());
                    }
                    None => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

#[test]
fn every_schema_is_used_and_every_used_one_is_there() {
    let document = document();
    let mut used = BTreeSet::new();
    references(&document, &mut used);
    for target in &used {
        let pointer = target.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{target}");
    }
    // The data of events are not bodies.
    used.insert("#/components/schemas/ClassifiedOutput".to_owned());
    for name in document["components"]["schemas"].as_object().unwrap().keys() {
        assert!(used.contains(&format!("#/components/schemas/{name}")), "{name} is not used");
    }
}

#[test]
fn operations_have_names_of_their_own_and_all_their_parameters() {
    let document = document();
    let mut names = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(names.insert(id), "two operations are called {id}");
            let in_path: Vec<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            assert_eq!(in_path.len(), path.matches('{').count(), "{method} {path}: {in_path:?}");
            assert!(in_path.iter().all(|name| path.contains(&format!("{{{name}}}"))), "{path}");
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.len() > 5, "{method} {path}");
        }
    }
    assert!(names.contains("inferVersion") && names.contains("systemRegionsRegion"), "{names:?}");
    assert_eq!(document["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}

#[test]
fn switched_off_pages_and_tokens_are_not_described() {
    let off = ServerFacts { page: false, metrics: false, tokens: false, ..SERVER };
    let document: Value = serde_json::from_slice(&describe_server(&off).unwrap()).unwrap();
    for path in ["/", "/metrics"] {
        assert_eq!(document["paths"].get(path), None);
    }
    assert_eq!(
        (document.get("security"), document["components"].get("securitySchemes")),
        (None, None)
    );
}

fn model<'a>(name: &'a str, version: &'a str) -> ModelFacts<'a> {
    let tensor = |name, datatype, shape, optional| TensorFacts { name, datatype, shape, optional };
    ModelFacts {
        name,
        version,
        inputs: vec![tensor("X", "FP32", &[-1, 3], false), tensor("N", "UINT64", &[], true)],
        outputs: vec![tensor("Y", "BYTES", &[-1], false)],
        decoupled: false,
        free_outputs: false,
    }
}

fn parse_model_document(model: &ModelFacts<'_>) -> Value {
    serde_json::from_slice(&model_document::describe_model(&SERVER, model).unwrap()).unwrap()
}

#[test]
fn signature_of_a_model_is_in_its_schemas() {
    let document = parse_model_document(&model("m", ""));
    let schemas = &document["components"]["schemas"];
    let inputs = &schemas["InferRequest"]["properties"]["inputs"];
    assert_eq!((&inputs["minItems"], &inputs["maxItems"]), (&json!(1), &json!(2)));
    let x = &inputs["items"]["anyOf"][0]["properties"];
    assert_eq!(
        (&x["name"], &x["datatype"]),
        (&json!({ "const": "X" }), &json!({ "const": "FP32" }))
    );
    let dims = json!([{ "type": "integer", "minimum": 0 }, { "const": 3 }]);
    assert_eq!(x["shape"]["prefixItems"], dims);
    let n = &inputs["items"]["anyOf"][1]["properties"];
    assert_eq!(n["shape"].get("prefixItems"), None);
    assert_eq!(n["data"]["items"]["maximum"], u64::MAX);
    assert_eq!(schemas["GenerateRequest"]["required"], json!(["X"]));
    let y = &schemas["InferResponse"]["properties"]["outputs"]["items"]["anyOf"][0];
    assert_eq!(y["properties"]["name"]["const"], "Y");
    assert!(document["paths"].get("/v2/models/m/infer").is_some(), "{document}");
}

#[test]
fn paths_have_the_name_and_the_version() {
    for (model, path, infers) in [
        (model("m", "3"), "/v2/models/m/versions/3/", true),
        (ModelFacts { decoupled: true, ..model("m", "") }, "/v2/models/m/", false),
        (model("a b{c}", ""), "/v2/models/{model}/", true),
    ] {
        let document = parse_model_document(&model);
        let paths = document["paths"].as_object().unwrap();
        assert_eq!(paths.contains_key(&format!("{path}infer")), infers, "{paths:?}");
        assert!(paths.contains_key(&format!("{path}generate_stream")), "{paths:?}");
        let named = |path: &String| {
            path.contains("/m/") || path.ends_with("/m") || path.contains("{model}")
        };
        assert!(paths.keys().all(named), "{paths:?}");
    }
    let hostile = parse_model_document(&model("a b{c}", ""));
    let infer = &hostile["paths"]["/v2/models/{model}/infer"]["post"];
    assert_eq!(infer["parameters"][0]["schema"]["const"], "a b{c}");
    let free = parse_model_document(&ModelFacts { free_outputs: true, ..model("m", "") });
    let outputs = &free["components"]["schemas"]["InferResponse"]["properties"]["outputs"];
    assert_eq!(outputs["items"].get("anyOf"), None);
}
