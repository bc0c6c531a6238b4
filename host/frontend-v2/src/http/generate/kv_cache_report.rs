//! The load report of Triton (docs/protocol/v2.md §2.19): the use of the KV cache, as a backend for
//! language models reports it.

use http::{HeaderMap, HeaderValue};
use trtserver_load_report::{REPORT, ReportFormat};

/// The metrics of the backend, by the value of [`LABEL`]: tokens of a block, blocks in use, blocks.
const FAMILY: &str = "nv_trt_llm_kv_cache_block_metrics";
const LABEL: &str = "kv_cache_block_type";

/// Adds the report as text or JSON; false if a metric that it needs is missing.
pub async fn add_kv_cache_report(format: ReportFormat, headers: &mut HeaderMap) -> bool {
    let read = || trtserver_metrics::backend_metric_values(FAMILY, LABEL);
    let report =
        kv_cache_report(format, &tokio::task::spawn_blocking(read).await.unwrap_or_default());
    let value = report.and_then(|report| HeaderValue::try_from(report).ok());
    let is_reported = value.is_some();
    headers.extend(value.map(|value| (REPORT, value)));
    is_reported
}

fn kv_cache_report(format: ReportFormat, values: &[(String, f64)]) -> Option<String> {
    let value = |block: &str| {
        let found = values.iter().rev().find(|(name, _)| name == block);
        found.map(|(_, value)| *value).filter(|value| *value >= 0.0)
    };
    let (tokens, used, blocks) = (value("tokens_per")?, value("used")?, value("max")?);
    let utilization = if blocks > 0.0 { used / blocks } else { 0.0 };
    let capacity = (blocks * tokens) as u64;
    match format {
        ReportFormat::Text => Some(format!(
            "TEXT named_metrics.kv_cache_utilization={utilization:.6}, \
             named_metrics.max_token_capacity={capacity}"
        )),
        ReportFormat::Json => Some(format!(
            r#"JSON {{"named_metrics":{{"kv_cache_utilization":{utilization:?},"max_token_capacity":{capacity}}}}}"#
        )),
        // Triton has no such form.
        ReportFormat::Binary => None,
    }
}
