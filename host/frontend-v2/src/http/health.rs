//! Bodies of the health endpoints: none, as Triton's, or for clients of KServe the JSON that they
//! parse, with the reason beside a false; and `GET /v2/trtserver/health`, an extension of this
//! server, which names all models that are not ready.

use super::json::write::{Object, write_array};
use super::management_json::{write_nested_object, write_object};
use super::response::{json_response, text_response, with_status};
use crate::readiness;
use http::header::{ACCEPT, HeaderMap, USER_AGENT};
use http::{Response, StatusCode};
use trtserver_models::UnreadyModel;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::http::accept::accept_items;
use trtserver_wire::http::body::ResponseBody;

/// KServe's client asks for no media type (`Accept: */*`, as curl does) and parses JSON. It is
/// known by its HTTP library.
const KSERVE_LIBRARY: &[u8] = b"python-httpx/";

/// What a client expects in the response of a health endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HealthBody {
    /// As Triton: scripts compare what curl prints with the status alone.
    Empty,
    /// As the Open Inference Protocol has it.
    Json,
}

impl HealthBody {
    /// JSON for clients that name it in `Accept`, and for KServe's.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let is_json = |name: &str| name.eq_ignore_ascii_case("application/json");
        let named = accept_items(headers, ACCEPT).any(|i| is_json(i.name) && i.weight > 0.0);
        let agent = headers.get(USER_AGENT).map_or(&b""[..], |agent| agent.as_bytes());
        if named || agent.starts_with(KSERVE_LIBRARY) { Self::Json } else { Self::Empty }
    }
}

/// Status 200 or 400; in JSON `{"KEY":true}`, or false with the reason.
pub fn health_response(
    body: HealthBody,
    key: &str,
    good: bool,
    reason: impl FnOnce() -> Option<String>,
) -> Response<ResponseBody> {
    with_health(
        good,
        match body {
            HealthBody::Empty => text_response(Vec::new()),
            HealthBody::Json => json_response(write_object(|o| flag(o, key, good, reason))),
        },
    )
}

/// The same for a model. One that is not ready has a body in any case: clients match its error
/// text.
pub fn respond_model(
    body: HealthBody,
    name: &str,
    ready: bool,
    reason: impl FnOnce() -> Option<String>,
) -> Response<ResponseBody> {
    if ready && body == HealthBody::Empty {
        return text_response(Vec::new());
    }
    let body = write_object(|o| {
        if !ready {
            o.string("error", "Model version not ready");
        }
        o.string("name", name);
        flag(o, "ready", ready, reason);
    });
    with_health(ready, json_response(body))
}

fn flag(o: &mut Object<'_>, key: &str, good: bool, reason: impl FnOnce() -> Option<String>) {
    o.plain(key, good);
    if let Some(reason) = (!good).then(reason).flatten() {
        o.string("reason", &reason);
    }
}

fn with_health(good: bool, response: Response<ResponseBody>) -> Response<ResponseBody> {
    with_status(if good { StatusCode::OK } else { StatusCode::BAD_REQUEST }, response)
}

/// The report, whatever the health is.
pub fn health_report(ctx: &FrontendContext) -> Vec<u8> {
    let unready = readiness::unready_models(ctx);
    write_object(|o| {
        o.plain("live", ctx.state.is_live());
        o.plain("started", ctx.state.is_started());
        flag(o, "ready", ctx.is_ready(), || readiness::not_ready(ctx));
        o.string("state", ctx.state.phase().name());
        since(o, ctx.state.phase_since_ns());
        write_array(o.key("not_ready"), &unready, model);
    })
}

fn model(out: &mut Vec<u8>, model: &UnreadyModel) {
    write_nested_object(out, |o| {
        o.string("name", &model.model);
        if let Some(version) = model.version {
            o.string("version", &version.to_string());
        }
        o.plain("required", model.required);
        o.string("state", model.state.map_or("MISSING", |state| state.name()));
        if let Some(ns) = model.since_ns {
            since(o, ns);
        }
        o.string("reason", &model.reason);
    });
}

fn since(o: &mut Object<'_>, ns: u64) {
    let (time, passed) = readiness::format_since(ns);
    o.string("since", &time);
    o.plain("elapsed_ms", passed);
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
