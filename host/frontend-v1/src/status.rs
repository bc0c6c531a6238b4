//! The status endpoint (docs/protocol/v1.md §3.4, §9).
//!
//! It differs from TRTIS in two ways. A request for an unknown version adds no entry: such entries
//! made strict readiness false forever, and clients could add them without bound. A model that
//! is refused is listed with its configuration as far as it could be read, and with the versions
//! that it selects, whose reason is that of the refusal.

use super::config::known_to_v1;
use std::collections::BTreeMap;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::{DurationSum, RequestCounters};
use trtserver_models::{LookupError, Model, ModelVersion, VersionState};
use trtserver_proto::v1::{
    HealthRequestStats, InferRequestStats, ModelControlRequestStats, ModelReadyStateReason,
    ModelStatus, ModelVersionStatus, ProfileRequestStats, RepositoryRequestStats, ServerStatus,
    SharedMemoryControlRequestStats, StatDuration, StatusRequestStats,
};
use trtserver_proto::v2::ModelConfig;
use trtserver_wire::context::FrontendContext;

/// Key of a model in the status: its name; its id if repositories have several models of that name.
fn key(ctx: &FrontendContext, id: &str, model: &Arc<Model>) -> String {
    let of_name = ctx.models.get(&model.name);
    let unique = of_name.is_some_and(|found| Arc::ptr_eq(&found, model));
    if unique { model.name.to_string() } else { id.to_owned() }
}

/// The status of the server, or of one `model` without the counters of endpoints.
pub fn report_status(ctx: &FrontendContext, model: Option<&str>) -> Result<ServerStatus> {
    ctx.refuse_when_exiting()?;
    let Some(name) = model else {
        let models = ctx.models.all();
        return Ok(ServerStatus {
            model_status: models.iter().map(|(id, m)| (key(ctx, id, m), report_model(m))).collect(),
            status_stats: duration(ctx.endpoints.status.get())
                .map(|success| StatusRequestStats { success: Some(success) }),
            profile_stats: duration(ctx.endpoints.profile.get())
                .map(|success| ProfileRequestStats { success: Some(success) }),
            health_stats: duration(ctx.endpoints.health.get())
                .map(|success| HealthRequestStats { success: Some(success) }),
            model_control_stats: duration(ctx.endpoints.model_control.get())
                .map(|success| ModelControlRequestStats { success: Some(success) }),
            shm_control_stats: duration(ctx.endpoints.shm_control.get())
                .map(|success| SharedMemoryControlRequestStats { success: Some(success) }),
            repository_stats: duration(ctx.endpoints.repository.get())
                .map(|success| RepositoryRequestStats { success: Some(success) }),
            ..report_server_only(ctx)
        });
    };
    let model = ctx.models.model(name).map_err(|e| match e {
        LookupError::Ambiguous(..) => e.error(),
        _ => Error::invalid(format!("no status available for unknown model '{name}'")),
    })?;
    Ok(ServerStatus {
        model_status: BTreeMap::from([(name.to_owned(), report_model(&model))]),
        ..report_server_only(ctx)
    })
}

/// The identity and state of the server, which is all that gRPC sends with a failure.
pub fn report_server_only(ctx: &FrontendContext) -> ServerStatus {
    ServerStatus {
        id: ctx.settings.server_id.clone(),
        version: ctx.settings.server_version.clone(),
        uptime_ns: ctx.state.uptime_ns(),
        ready_state: ctx.state.phase() as i32,
        ..ServerStatus::default()
    }
}

/// Removes the fields that the release which the server says it is does not have. Text parsers of
/// clients refuse them; binary parsers skip them.
pub fn without_later_fields(ctx: &FrontendContext, status: &mut ServerStatus) {
    let versions = status.model_status.values_mut().flat_map(|m| m.version_status.values_mut());
    for version in versions {
        version.warmup_stats.clear();
        if ctx.settings.before_v1_13 {
            for stats in version.infer_stats.values_mut() {
                (stats.compute_input, stats.compute_infer, stats.compute_output) =
                    (None, None, None);
            }
        }
    }
}

fn report_model(model: &Model) -> ModelStatus {
    let read = model.read_config();
    let config = match (&model.config, read) {
        (Some(config), _) => known_to_v1(config),
        (None, Some(read)) => known_to_v1(&read.config),
        (None, None) => ModelConfig { name: model.name.to_string(), ..ModelConfig::default() },
    };
    let refused = read.iter().flat_map(|read| &read.versions);
    let refused = refused.map(|number| (*number, refused_version(model)));
    let known = model.versions.values().map(|v| (v.number, report_version(model, v)));
    let version_status = refused.chain(known).collect();
    ModelStatus { config: Some(config), version_status }
}

/// A version that a refused model would serve.
fn refused_version(model: &Model) -> ModelVersionStatus {
    let reason = model.refusal.clone().map(|message| ModelReadyStateReason { message });
    ModelVersionStatus {
        ready_state: VersionState::Unavailable as i32,
        ready_state_reason: reason,
        ..ModelVersionStatus::default()
    }
}

fn report_version(model: &Model, version: &ModelVersion) -> ModelVersionStatus {
    let (state, reason) = model.version_status(version);
    let counters = version.stats.snapshot();
    let warmup = version.stats.warmup().into_iter();
    ModelVersionStatus {
        ready_state: state as i32,
        infer_stats: counters.requests.iter().map(|(b, r)| (*b, report_requests(r))).collect(),
        model_execution_count: counters.execution_count,
        model_inference_count: counters.inference_count,
        ready_state_reason: (!reason.is_empty())
            .then_some(ModelReadyStateReason { message: reason }),
        last_inference_timestamp_milliseconds: counters.last_inference_ms(),
        warmup_stats: warmup
            .filter_map(|(s, span)| Some((s.to_string(), duration(span)?)))
            .collect(),
    }
}

fn report_requests(r: &RequestCounters) -> InferRequestStats {
    InferRequestStats {
        success: duration(r.success),
        failed: duration(r.failed),
        compute: duration(r.compute),
        queue: duration(r.queue),
        compute_input: duration(r.compute_input),
        compute_infer: duration(r.compute_infer),
        compute_output: duration(r.compute_output),
    }
}

/// `None` if nothing was counted, as in TRTIS.
fn duration(span: DurationSum) -> Option<StatDuration> {
    (span.count != 0).then_some(StatDuration { count: span.count, total_time_ns: span.ns })
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
