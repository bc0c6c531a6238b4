//! The routes of the server itself on the HTTP port.

use crate::route::{Answer, ParameterKind, ParameterSpec, RouteSpec, get};

pub const PAGE: RouteSpec = get("/", "page", "The status page, for browsers", &[], "")
    .answering(Answer::Text("text/html"))
    .with_headers(&[ParameterSpec {
        name: "Accept",
        meaning: "Names text/html; else the answer is 404",
        required: true,
        kind: ParameterKind::Choice(&["text/html"]),
    }])
    .or(&[404]);

/// With `--http-metrics`.
pub const METRICS: RouteSpec = get("/metrics", "metrics", "The metrics page", &["metrics"], "")
    .answering(Answer::Text("text/plain"));
