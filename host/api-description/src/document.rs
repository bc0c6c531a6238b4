//! The document of the server: its routes as paths, with the schemas of their bodies.

use crate::route::{Answer, BodyForm, BodySpec, ParameterKind, ParameterSpec, RouteSpec};
use crate::{ROUTES_V1, ROUTES_V2, routes_server};
use serde_json::{Map, Value, json};

const SCHEMAS: &str = include_str!("schemas.json");
/// Statuses that every route may have: what is refused before the endpoint is known, for tokens and
/// for the client's or the server's limits.
const ANYWHERE: [u16; 5] = [400, 401, 403, 408, 429];
/// Segments that are numbers. Those of v1 may not be negative either.
const NUMBERS: [&str; 4] = ["version", "offset", "size", "device"];

/// What the document says of this server.
pub struct ServerFacts<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// The status page is served.
    pub page: bool,
    /// The metrics page is on the HTTP port.
    pub metrics: bool,
    /// Requests need a token.
    pub tokens: bool,
}

/// Which generation's failures a route has.
#[derive(Clone, Copy, PartialEq)]
enum FailureForm {
    Json,
    /// v1: none, with the status in a header.
    Empty,
    /// Of the server itself: any text.
    Text,
}

/// The document as text.
///
/// # Errors
/// The schemas that are compiled in are not JSON.
pub fn describe_server(server: &ServerFacts<'_>) -> Result<Vec<u8>, String> {
    let mut paths = Map::new();
    for route in ROUTES_V2 {
        add_route(&mut paths, route, FailureForm::Json);
    }
    for route in ROUTES_V1 {
        add_route(&mut paths, route, FailureForm::Empty);
    }
    if server.page {
        add_route(&mut paths, &routes_server::PAGE, FailureForm::Text);
    }
    if server.metrics {
        add_route(&mut paths, &routes_server::METRICS, FailureForm::Text);
    }
    finish(server, server.name, paths, schemas()?)
}

/// The schemas of all bodies, by name.
pub(crate) fn schemas() -> Result<Map<String, Value>, String> {
    serde_json::from_str(SCHEMAS).map_err(|e| format!("schemas.json is not valid: {e}"))
}

/// A document with these paths.
pub(crate) fn finish(
    server: &ServerFacts<'_>,
    title: &str,
    paths: Map<String, Value>,
    schemas: Map<String, Value>,
) -> Result<Vec<u8>, String> {
    let mut components = json!({ "schemas": schemas });
    let mut document = json!({
        "openapi": "3.1.0",
        "info": { "title": title, "version": server.version },
        // Relative to the address of this document.
        "servers": [{ "url": "/" }],
        "paths": paths,
    });
    if server.tokens {
        components["securitySchemes"] = json!({ "token": { "type": "http", "scheme": "bearer" } });
        // Some endpoints may be open to callers without a token.
        document["security"] = json!([{ "token": [] }, {}]);
    }
    document["components"] = components;
    serde_json::to_vec(&document).map_err(|e| format!("the description cannot be written: {e}"))
}

/// Adds a route of v2 with its model's path and schemas.
pub(crate) fn add_described(
    paths: &mut Map<String, Value>,
    (path, id): (&str, &str),
    route: &RouteSpec,
) {
    add_path(paths, (path, id), route, FailureForm::Json);
}

fn add_route(paths: &mut Map<String, Value>, route: &RouteSpec, form: FailureForm) {
    for (path, id) in route.paths() {
        add_path(paths, (&path, &id), route, form);
    }
}

fn add_path(
    paths: &mut Map<String, Value>,
    (path, id): (&str, &str),
    route: &RouteSpec,
    form: FailureForm,
) {
    let operations = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
    operations[route.method.to_ascii_lowercase()] = operation(path, id, route, form);
}

fn operation(path: &str, id: &str, route: &RouteSpec, form: FailureForm) -> Value {
    let segments = path.split('/').filter_map(|s| s.strip_prefix('{')?.strip_suffix('}'));
    let mut parameters: Vec<Value> = segments.map(path_parameter).collect();
    parameters.extend(route.query.iter().map(|spec| parameter("query", spec)));
    parameters.extend(route.headers.iter().map(|spec| parameter("header", spec)));
    let mut responses = Map::new();
    responses.insert("200".to_owned(), answer(route.answer));
    // A name that cannot be part of a path makes it another path.
    let of_names: &[u16] = match form {
        FailureForm::Json if path.contains('{') => &[404],
        _ => &[],
    };
    let statuses = ANYWHERE.iter().chain(route.failures).chain(of_names);
    let mut statuses: Vec<u16> = statuses.copied().collect();
    statuses.sort_unstable();
    statuses.dedup();
    for status in statuses {
        responses.insert(status.to_string(), failure(status, route.answer, form));
    }
    let mut operation = json!({
        "operationId": id,
        "summary": route.summary,
        "tags": route.groups,
        "responses": responses,
    });
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    if let Some(body) = route.body {
        operation["requestBody"] = request_body(body);
    }
    operation
}

fn path_parameter(name: &str) -> Value {
    let schema = match NUMBERS.contains(&name) {
        true => json!({ "type": "string", "pattern": "^[0-9]{1,18}$" }),
        // Paths are not percent-decoded.
        false => json!({ "type": "string", "pattern": "^[A-Za-z0-9._~-]+$" }),
    };
    json!({ "name": name, "in": "path", "required": true, "schema": schema })
}

fn parameter(place: &str, spec: &ParameterSpec) -> Value {
    let schema = match spec.kind {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Number => json!({ "type": "integer", "minimum": 0 }),
        ParameterKind::Choice(values) => json!({ "type": "string", "enum": values }),
    };
    json!({
        "name": spec.name,
        "in": place,
        "required": spec.required,
        "description": spec.meaning,
        "schema": schema,
    })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn request_body(body: BodySpec) -> Value {
    let content = match body.form {
        BodyForm::Json(schema) => json!({ "application/json": { "schema": reference(schema) } }),
        BodyForm::Tensors(schema) => json!({
            "application/json": { "schema": reference(schema) },
            "application/octet-stream": {},
        }),
        BodyForm::Binary => json!({ "application/octet-stream": {} }),
    };
    json!({ "required": body.required, "content": content })
}

fn text() -> Value {
    json!({ "schema": { "type": "string" } })
}

fn answer(answer: Answer) -> Value {
    let json = |schema: &str| json!({ "schema": reference(schema) });
    let (description, content) = match answer {
        Answer::Json(schema) => ("The answer", json!({ "application/json": json(schema) })),
        Answer::Health(schema) => {
            let content = json!({ "application/json": json(schema), "text/plain": text() });
            ("True; the body is empty unless the client accepts JSON", content)
        }
        Answer::Nothing => {
            ("Done; the body is empty", json!({ "text/plain": text(), "text/html": text() }))
        }
        Answer::Tensors(schema) => {
            let content =
                json!({ "application/json": json(schema), "application/octet-stream": {} });
            (
                "The outputs; with binary tensors after the JSON if the request asks for them",
                content,
            )
        }
        Answer::Events(_) => {
            // A schema would be that of the whole stream.
            ("Server-sent events with JSON as their data", json!({ "text/event-stream": {} }))
        }
        Answer::Message => {
            let content = json!({
                "text/html": text(),
                "application/json": { "schema": { "type": "object" } },
                "application/octet-stream": {},
            });
            ("A message as text, JSON or binary", content)
        }
        Answer::Binary => ("Tensors and their header", json!({ "application/octet-stream": {} })),
        Answer::Text(kind) => {
            let mut content = Map::new();
            content.insert(kind.to_owned(), text());
            ("The page", content.into())
        }
    };
    let mut response = json!({ "description": description, "content": content });
    if let Answer::Events(schema) = answer
        && !schema.is_empty()
    {
        response["description"] =
            format!("Server-sent events; the data of each is JSON as {schema}").into();
    }
    response
}

/// What a failure means, its body, and its headers.
fn failure(status: u16, answer: Answer, form: FailureForm) -> Value {
    let meaning = match (status, answer) {
        (400, Answer::Health(_)) => "False, or the request is not valid",
        (400, _) => "The request is not valid",
        (401, _) => "A token is missing or not known",
        (403, _) => "The caller may not do this, or a header of --http-restricted-api is missing",
        (404, _) => "Not found",
        (408, _) => "The request was sent too slowly",
        (429, _) => "Too many requests, or no memory for this one: try later",
        (501, _) => "Not supported",
        (503, _) => "Not ready, stopping, or the queue is full",
        _ => "The request or the server failed",
    };
    let error = match (status, answer) {
        (400, Answer::Health(schema)) => {
            json!({ "anyOf": [reference(schema), reference("Error")] })
        }
        _ => reference("Error"),
    };
    let content = match (form, answer) {
        (FailureForm::Json, Answer::Events(_)) => Some(json!({
            "application/json": { "schema": error },
            "text/plain": text(),
            "text/event-stream": {},
        })),
        (FailureForm::Json, _) => {
            Some(json!({ "application/json": { "schema": error }, "text/plain": text() }))
        }
        (FailureForm::Text, _) => {
            Some(json!({ "text/plain": text(), "application/json": { "schema": error } }))
        }
        (FailureForm::Empty, _) => None,
    };
    let mut response = json!({ "description": meaning });
    if let Some(content) = content {
        response["content"] = content;
    }
    let header = |name: &str, meaning: &str| {
        let mut headers = Map::new();
        let schema = json!({ "description": meaning, "schema": { "type": "string" } });
        headers.insert(name.to_owned(), schema);
        Value::from(headers)
    };
    match (status, form) {
        (401, _) => response["headers"] = header("WWW-Authenticate", "The scheme of tokens"),
        (429, _) => response["headers"] = header("Retry-After", "Seconds"),
        (_, FailureForm::Empty) => {
            response["headers"] = header("NV-Status", "RequestStatus as text");
        }
        _ => {}
    }
    response
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
