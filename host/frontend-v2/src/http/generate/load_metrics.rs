//! ORCA load reports (docs/protocol/v2.md §2.19): a request with the header
//! `endpoint-load-metrics-format` gets the use of the KV cache, as a backend for language models
//! reports it, in a header of its response.

use http::{HeaderMap, HeaderName, HeaderValue};

const FORMAT: HeaderName = HeaderName::from_static("endpoint-load-metrics-format");
const METRICS: HeaderName = HeaderName::from_static("endpoint-load-metrics");
/// The metrics of the backend, by the value of [`LABEL`]: tokens of a block, blocks in use, blocks.
const FAMILY: &str = "nv_trt_llm_kv_cache_block_metrics";
const LABEL: &str = "kv_cache_block_type";

/// Format of a load report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadMetrics {
    Text,
    Json,
}

impl LoadMetrics {
    /// What the request asks for. Other formats are ignored, as by Triton.
    pub fn requested(headers: &HeaderMap) -> Option<Self> {
        match headers.get(FORMAT)?.as_bytes() {
            b"text" => Some(Self::Text),
            b"json" => Some(Self::Json),
            _ => None,
        }
    }

    /// Adds the report; false if a metric that it needs is missing.
    pub async fn add_to(self, headers: &mut HeaderMap) -> bool {
        let read = || trtserver_metrics::backend_metric_values(FAMILY, LABEL);
        let report = self.report(&tokio::task::spawn_blocking(read).await.unwrap_or_default());
        let value = report.and_then(|report| HeaderValue::try_from(report).ok());
        let is_reported = value.is_some();
        headers.extend(value.map(|value| (METRICS, value)));
        is_reported
    }

    fn report(self, values: &[(String, f64)]) -> Option<String> {
        let value = |block: &str| {
            let found = values.iter().rev().find(|(name, _)| name == block);
            found.map(|(_, value)| *value).filter(|value| *value >= 0.0)
        };
        let (tokens, used, blocks) = (value("tokens_per")?, value("used")?, value("max")?);
        let utilization = if blocks > 0.0 { used / blocks } else { 0.0 };
        let capacity = (blocks * tokens) as u64;
        Some(match self {
            Self::Text => format!(
                "TEXT named_metrics.kv_cache_utilization={utilization:.6}, \
                 named_metrics.max_token_capacity={capacity}"
            ),
            Self::Json => format!(
                r#"JSON {{"named_metrics":{{"kv_cache_utilization":{utilization:?},"max_token_capacity":{capacity}}}}}"#
            ),
        })
    }
}
