//! Statistics extension (docs/protocol/v2.md §2.13).

use super::limiter_statistics::LimitedInstances;
use super::lookup::parse_version;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_base::stats::{
    CLOSE_REASONS, DurationSum, ResponseCounters, VersionCounters, WarmupSpans,
};
use trtserver_models::memory::{OwnerMemory, version_memory};
use trtserver_models::{LookupError, Model, ModelVersion};
use trtserver_proto::v2::{
    InferBatchStatistics, InferResponseStatistics, InferStatistics, MemoryUsage, ModelStatistics,
    ResponseCacheStatistics, StatisticDuration,
};
use trtserver_response_cache::CacheReport;
use trtserver_wire::context::FrontendContext;

/// The statistics of one version, of all READY versions of a model, or of all models for an empty
/// name.
pub fn collect_statistics(
    ctx: &FrontendContext,
    name: &str,
    version: &str,
) -> Result<Vec<ModelStatistics>> {
    let number = parse_version(version)?;
    let report = ctx.models.limiter().map(|limiter| limiter.report());
    let limiter = report.as_ref().map(LimitedInstances::new);
    let limiter = limiter.as_ref();
    if name.is_empty() {
        let models = ctx.models.all();
        let statistics = models.values().map(|m| collect_model_statistics(m, None, limiter));
        return Ok(statistics.flatten().collect());
    }
    let model = match ctx.models.model(name) {
        Ok(model) if !model.ready_versions().is_empty() => model,
        Err(ambiguous @ LookupError::Ambiguous(..)) => return Err(ambiguous.error()),
        _ => return Err(Error::invalid(format!("requested model '{name}' is not available"))),
    };
    let found = collect_model_statistics(&model, number, limiter);
    if number.is_some() && found.is_empty() {
        return Err(Error::invalid(format!(
            "requested model version is not available for model '{name}'"
        )));
    }
    Ok(found)
}

fn collect_model_statistics(
    model: &Model,
    number: Option<i64>,
    limiter: Option<&LimitedInstances<'_>>,
) -> Vec<ModelStatistics> {
    let versions = model
        .versions
        .values()
        .filter(|v| v.is_ready() && number.is_none_or(|number| v.number == number));
    let message = |v: &Arc<ModelVersion>| {
        let (counters, warmup) = (v.stats.snapshot(), v.stats.warmup());
        let memory_usage =
            memory_usage(&version_memory(&model.name, v.number, &v.isolated_memory()));
        let served = v.served();
        let cache = served.as_deref().and_then(|served| served.response_cache.as_deref());
        ModelStatistics {
            memory_usage,
            response_cache: cache.map(|cache| cache_statistics(&cache.report())),
            rate_limiter: limiter.and_then(|all| all.statistics(&model.name, v.number)),
            ..message(&model.name, v.number, &counters, &warmup)
        }
    };
    versions.map(message).collect()
}

fn message(
    name: &str,
    version: i64,
    counters: &VersionCounters,
    warmup: &WarmupSpans,
) -> ModelStatistics {
    let total = counters.total();
    let batches = counters.executions.iter().map(|(rows, e)| InferBatchStatistics {
        batch_size: u64::from(*rows),
        compute_input: duration(&e.compute_input),
        compute_infer: duration(&e.compute_infer),
        compute_output: duration(&e.compute_output),
    });
    let closed = counters.batches_closed.iter().zip(CLOSE_REASONS);
    let closed = closed.map(|(count, reason)| (reason.to_owned(), *count));
    ModelStatistics {
        name: name.to_owned(),
        version: version.to_string(),
        last_inference: counters.last_inference_ms(),
        inference_count: counters.inference_count,
        execution_count: counters.execution_count,
        padding_rows: counters.padding_rows,
        inference_stats: Some(InferStatistics {
            success: duration(&total.success),
            // Requests refused before they were queued are failures in v1 only.
            fail: duration(&DurationSum {
                count: total.failed.count.saturating_sub(counters.refused.count)
                    + counters.step_failures.count,
                ns: total.failed.ns.saturating_sub(counters.refused.ns) + counters.step_failures.ns,
            }),
            queue: duration(&total.queue),
            compute_input: duration(&total.compute_input),
            compute_infer: duration(&total.compute_infer),
            compute_output: duration(&total.compute_output),
            cache_hit: duration(&counters.cache_hit),
            cache_miss: duration(&counters.cache_miss),
        }),
        response_stats: counters.responses.iter().map(response).collect(),
        batch_stats: batches.collect(),
        warmup_stats: warmup
            .iter()
            .filter_map(|(sample, span)| Some((sample.to_string(), duration(span)?)))
            .collect(),
        batch_closed: closed.collect(),
        ..Default::default()
    }
}

/// Statistics of the responses at one position of their streams, by position.
fn response((index, counters): (&u32, &ResponseCounters)) -> (String, InferResponseStatistics) {
    let statistics = InferResponseStatistics {
        compute_infer: duration(&counters.compute_infer),
        compute_output: duration(&counters.compute_output),
        success: duration(&counters.success),
        fail: duration(&counters.fail),
        empty_response: duration(&counters.empty),
        cancel: duration(&counters.cancel),
    };
    (index.to_string(), statistics)
}

fn cache_statistics(report: &CacheReport) -> ResponseCacheStatistics {
    ResponseCacheStatistics {
        state: report.state.name().to_owned(),
        shared_count: report.shared,
        switched_off_count: report.switched_off,
        passed_count: report.passed,
    }
}

/// The sums of the memory report.
fn memory_usage(memory: &OwnerMemory) -> Vec<MemoryUsage> {
    let sums = memory.totals().into_iter();
    let usage = |((memory_type, id), byte_size): ((&str, i64), u64)| MemoryUsage {
        r#type: memory_type.to_owned(),
        id,
        byte_size,
    };
    sums.map(usage).collect()
}

fn duration(span: &DurationSum) -> Option<StatisticDuration> {
    Some(StatisticDuration { count: span.count, ns: span.ns })
}

#[cfg(test)]
#[path = "statistics_tests.rs"]
mod tests;
