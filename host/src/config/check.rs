//! What cannot be honoured, what does less than its name says, and what cannot be had together.

use super::value::Values;
use super::{Note, Settings};
use crate::cli::Typed;
use crate::cli::catalogue::Status;

/// What is to be said of flags that do less than their name; an error for those refused.
pub fn notes(typed: &Typed, values: &Values) -> Result<Vec<Note>, String> {
    let mut notes = Vec::new();
    let mut refused = Vec::new();
    for (flag, given) in typed.iter() {
        let name = flag.name;
        let texts = values.texts(name);
        let outside = |list: &[&str]| texts.iter().find(|t| !list.contains(&t.as_str())).cloned();
        match flag.status {
            Status::Effective => {}
            Status::NoEffect(why) => {
                notes.push(Note::Info(format!("--{name} has no effect: {why}")))
            }
            Status::Warns { quiet, why } => {
                if let Some(text) = outside(quiet) {
                    notes.push(Note::Warning(format!("--{name}={text}: {why}")));
                }
            }
            Status::NotYet { off, missing } => {
                if let Some(text) = outside(off) {
                    let origin = &given.origin;
                    refused.push(format!(
                        "{origin}--{name}={text} cannot be honoured: this server does not have {missing} yet"
                    ));
                }
            }
        }
    }
    if !refused.is_empty() {
        return Err(refused.join("\n"));
    }
    let old = ["allow-model-control", "allow-poll-model-repository"];
    if typed.get("model-control-mode").is_some() && old.iter().any(|n| typed.get(n).is_some()) {
        notes.push(Note::Warning(
            "--allow-model-control or --allow-poll-model-repository can not be specified if \
             --model-control-mode is specified"
                .to_owned(),
        ));
    }
    let mode = values.text("model-control-mode")?;
    let explicit = mode == "explicit" || values.bool("allow-model-control")?;
    if typed.get("load-model").is_some() && !explicit {
        notes.push(Note::Warning(
            "--load-model has no effect without --model-control-mode=explicit: all models are loaded".to_owned(),
        ));
    }
    Ok(notes)
}

/// Settings that are each right and cannot be had together. The first four sentences are those of
/// the original server.
pub fn conflicts(s: &Settings) -> Result<(), String> {
    let same = |a: u16, b: u16| a == b && a != 0;
    let complaint = if s.model_repositories.is_empty() {
        "--model-store must be specified"
    } else if !s.allow_http && !s.allow_grpc {
        "At least one of the following options must be true: --allow-http, --allow-grpc"
    } else if s.allow_http && s.allow_grpc && same(s.http_port, s.grpc_port) {
        "The server cannot listen to HTTP requests and gRPC requests at the same port"
    } else if s.allow_metrics
        && (s.allow_http && same(s.metrics_port, s.http_port)
            || s.allow_grpc && same(s.metrics_port, s.grpc_port))
    {
        "The server cannot provide metrics on same port used for HTTP or gRPC requests"
    } else if s.allow_http
        && s.http_health_port.is_some_and(|health| {
            s.allow_grpc && same(health, s.grpc_port)
                || s.allow_metrics && same(health, s.metrics_port)
        })
    {
        "The server cannot serve health on the port used for gRPC requests or metrics"
    } else if s.load_models.len() > 1 && s.load_models.iter().any(|name| name == "*") {
        "--load-model=* means all models and must be the only one"
    } else {
        return Ok(());
    };
    Err(complaint.to_owned())
}
