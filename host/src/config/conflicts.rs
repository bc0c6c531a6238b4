//! Settings that exclude each other.

use super::Settings;

/// Refuses settings that are each valid but exclude each other. The first four texts are those of Triton.
pub fn check(s: &Settings) -> Result<(), String> {
    let same = |a: u16, b: u16| a == b && a != 0;
    let error = if s.model_repositories.is_empty() {
        "--model-store must be specified"
    } else if !s.allow_http && !s.allow_grpc && s.http_health_port.is_none() {
        "At least one of the following options must be true: --allow-http, --allow-grpc"
    } else if s.allow_http && s.allow_grpc && same(s.http_port, s.grpc_port) {
        "The server cannot listen to HTTP requests and gRPC requests at the same port"
    } else if s.allow_metrics
        && (s.allow_http && same(s.metrics_port, s.http_port)
            || s.allow_grpc && same(s.metrics_port, s.grpc_port))
    {
        "The server cannot provide metrics on same port used for HTTP or gRPC requests"
    } else if s.http_health_port.is_some_and(|health| {
        s.allow_grpc && same(health, s.grpc_port) || s.allow_metrics && same(health, s.metrics_port)
    }) {
        "The server cannot serve health on the port used for gRPC requests or metrics"
    } else if s.load_models.len() > 1 && s.load_models.iter().any(|name| name == "*") {
        "--load-model=* loads all models and must be the only --load-model"
    } else {
        return Ok(());
    };
    Err(error.to_owned())
}
