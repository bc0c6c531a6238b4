//! Why the server or a model is not live or not ready, and since when.

use super::lookup::parse_version;
use std::time::{Duration, SystemTime};
use trtserver_base::clock::now_ns;
use trtserver_base::state::ServerPhase;
use trtserver_config::ControlMode;
use trtserver_models::UnreadyModel;
use trtserver_wire::context::{FrontendContext, v2_missing};

/// Why the server is not live; `None` if it is.
pub fn not_live(ctx: &FrontendContext) -> Option<String> {
    if ctx.state.is_live() { None } else { phase(ctx) }
}

/// Why the load at start has not ended; `None` if it has.
pub fn not_started(ctx: &FrontendContext) -> Option<String> {
    if ctx.state.is_started() { None } else { phase(ctx) }
}

/// Why the server is not ready; `None` if it is. Names the first model that it waits for.
pub fn not_ready(ctx: &FrontendContext) -> Option<String> {
    if let Some(reason) = phase(ctx) {
        return Some(reason);
    }
    if ctx.state.is_withdrawn() {
        let delay = ctx.settings.drain_delay.as_secs();
        return Some(format!(
            "the server shuts down: it still accepts requests for the drain delay of {delay} s"
        ));
    }
    let (strict, named) = (ctx.settings.strict_readiness, &ctx.settings.ready_models);
    if let Some(failure) = ctx.models.listing_failure().filter(|_| strict && named.is_empty()) {
        return Some(format!("a model repository could not be listed: {failure}"));
    }
    let unready = unready_models(ctx);
    let mut required = unready.iter().filter(|model| model.required);
    let first = subject(required.next()?);
    Some(match required.count() {
        0 => first,
        more => format!("{first}; {more} more: GET /v2/trtserver/health"),
    })
}

/// Why the server serves no requests in its phase.
fn phase(ctx: &FrontendContext) -> Option<String> {
    match ctx.state.phase() {
        ServerPhase::Ready => None,
        ServerPhase::Initializing => Some("the server loads its models".to_owned()),
        ServerPhase::Exiting => Some("the server is shutting down".to_owned()),
        ServerPhase::FailedToInitialize => {
            Some(format!("the server failed to initialize: {}", ctx.state.failure()))
        }
    }
}

/// Why a version of a model does not serve; `None` if it does.
pub fn model_not_ready(ctx: &FrontendContext, name: &str, version: &str) -> Option<String> {
    let number = parse_version(version).ok()?;
    if ctx.models.is_ready(name, number) {
        return None;
    }
    if let Some(model) = ctx.models.get(name) {
        if let Some(refusal) = &model.refusal {
            return Some(refusal.clone());
        }
        // Without a number the highest version should serve.
        let version = match number {
            Some(number) => model.versions.get(&number),
            None => model.versions.values().next_back(),
        };
        if let Some(version) = version {
            let (state, reason) = model.version_status(version);
            return Some(with_state(&format!("version {}", version.number), state.name(), &reason));
        }
    }
    ctx.models.find(name, number).err().map(|missing| v2_missing(missing).message.to_string())
}

/// All models that are not ready, whether the server requires them or not.
pub fn unready_models(ctx: &FrontendContext) -> Vec<UnreadyModel> {
    let settings = &ctx.settings;
    let mut models = ctx.models.unready(settings.strict_readiness, &settings.ready_models);
    for model in models.iter_mut().filter(|model| model.state.is_none()) {
        model.reason = match settings.control_mode {
            ControlMode::Explicit => "--ready-models names it, and it is not loaded",
            _ => "--ready-models names it, and it is in no repository",
        }
        .to_owned();
    }
    models
}

fn subject(model: &UnreadyModel) -> String {
    let name = match model.version {
        Some(version) => format!("model '{}' version {version}", model.model),
        None => format!("model '{}'", model.model),
    };
    match model.state {
        Some(state) => with_state(&name, state.name(), &model.reason),
        None => format!("{name}: {}", model.reason),
    }
}

fn with_state(subject: &str, state: &str, reason: &str) -> String {
    match reason {
        "" => format!("{subject} is {state}"),
        reason => format!("{subject} is {state}: {reason}"),
    }
}

/// A time of CLOCK_MONOTONIC as UTC (RFC 3339), and the milliseconds since then.
pub fn format_since(ns: u64) -> (String, u64) {
    let passed = Duration::from_nanos(now_ns().saturating_sub(ns));
    let time = SystemTime::now() - passed;
    (humantime::format_rfc3339_millis(time).to_string(), passed.as_millis() as u64)
}
