//! The metrics page: format and compression as the client accepts them.

use flate2::Compression;
use flate2::write::GzEncoder;
use http::Response;
use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use std::future::Future;
use std::io::Write;
use std::sync::Arc;
use trtserver_config::{LoadReportMode, ServerSettings};
use trtserver_device::GpuDriver;
use trtserver_metrics::{GpuMetrics, MetricsFormat, MetricsPage, MetricsSources};
use trtserver_wire::compression::Coding;
use trtserver_wire::http::accept::{accept_items, accepted_coding};
use trtserver_wire::http::body::ResponseBody;

/// The metrics of the GPUs that the CUDA driver shows; `None` without any, and if the settings
/// exclude them or nothing would show them.
pub fn open_gpu_metrics(settings: &ServerSettings) -> Option<Arc<GpuMetrics>> {
    // Opening NVML takes milliseconds.
    let is_shown = settings.allow_metrics || settings.load_reports != LoadReportMode::Off;
    let driver = GpuDriver::get().ok().filter(|_| settings.allow_gpu_metrics && is_shown)?;
    let uuids = driver.devices().iter().map(|gpu| (gpu.ordinal, gpu.uuid_text()));
    GpuMetrics::open(settings.metrics_interval / 2, uuids.collect()).map(Arc::new)
}

/// The page of a server with these settings.
pub fn create_page(settings: &ServerSettings, sources: MetricsSources) -> MetricsPage {
    let cpus = settings.allow_cpu_metrics.then_some(settings.metrics_interval / 2);
    MetricsPage::new(sources, cpus, settings.latency_metrics.clone())
}

/// Gathers the page on a thread of its own: NVML and the allocator may take milliseconds.
pub fn metrics_response(
    page: Arc<MetricsPage>,
    headers: &HeaderMap,
) -> impl Future<Output = Response<ResponseBody>> + Send + use<> {
    let format = accepted_format(headers);
    let gzip = accepted_coding(headers) == Some(Coding::Gzip);
    let gather = move || {
        let text = page.text(format).into_bytes();
        if gzip {
            compressed(&text).map_or((text, false), |body| (body, true))
        } else {
            (text, false)
        }
    };
    async move {
        let (body, compressed) = tokio::task::spawn_blocking(gather).await.unwrap_or_default();
        let mut response = Response::new(ResponseBody::from(body));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
        headers.insert(VARY, HeaderValue::from_static("Accept, Accept-Encoding"));
        if compressed {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static(Coding::Gzip.name()));
        }
        response
    }
}

/// The text format, in which samples have Triton's names, for all clients that take it. Prometheus
/// and other collectors do, although they prefer OpenMetrics.
fn accepted_format(headers: &HeaderMap) -> MetricsFormat {
    let known = |version: Option<&str>| version.is_none_or(|v| matches!(v, "1.0.0" | "0.0.1"));
    let (mut text, mut open_metrics) = (false, false);
    for item in accept_items(headers, ACCEPT).filter(|item| item.weight > 0.0) {
        let is = |name: &str| item.name.eq_ignore_ascii_case(name);
        text |= is("text/plain") || is("text/*") || is("*/*");
        open_metrics |= is("application/openmetrics-text") && known(item.parameter("version"));
    }
    if open_metrics && !text { MetricsFormat::OpenMetrics } else { MetricsFormat::Text }
}

fn compressed(text: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).and_then(|()| encoder.finish()).ok()
}

#[cfg(test)]
#[path = "metrics_endpoint_tests.rs"]
mod tests;
