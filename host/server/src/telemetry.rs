//! What the server tells of its requests in the background: the access log, and spans for a
//! collector of OpenTelemetry.

use std::sync::Arc;
use std::time::Duration;
use trtserver_base::error::{Error, Result};
use trtserver_config::{ServerSettings, TraceConfig, TraceMode};
use trtserver_metrics::TelemetryStats;
use trtserver_request_trace::{RequestTrace, TraceDemand, TraceSampler, TraceSink, Tracer};
use trtserver_telemetry::access_log::AccessLog;
use trtserver_telemetry::otlp::SpanExporter;
use trtserver_telemetry::request_spans::TraceSpans;
use trtserver_telemetry::settings::{ExporterOptions, ExporterSettings};

/// Limit of the wait for a collector that takes nothing more.
const MAX_EXPORT: Duration = Duration::from_secs(5);
/// Limit of the wait for a file or pipe that takes nothing more.
const MAX_WRITE: Duration = Duration::from_secs(1);

/// Each part is `None` unless it is asked for.
#[derive(Clone, Default)]
pub struct Telemetry {
    pub access_log: Option<Arc<AccessLog>>,
    exporter: Option<Arc<TraceExporter>>,
}

type TraceExporter = SpanExporter<TraceSpans>;

/// Passes traces on to the exporter.
struct SpanSink(Arc<TraceExporter>);

impl TraceSink for SpanSink {
    fn demand(&self) -> TraceDemand {
        TraceDemand::Sampled
    }

    fn finished(&self, trace: &RequestTrace) {
        self.0.offer(trace);
    }
}

impl Telemetry {
    /// # Errors
    /// Names the file or setting that cannot be used.
    pub fn start(settings: &ServerSettings) -> Result<Self> {
        let access_log = settings.access_log.as_deref().map(AccessLog::open).transpose();
        let access_log = access_log.map_err(Error::invalid)?.map(Arc::new);
        let exporter = start_exporter(&settings.trace).map_err(Error::invalid)?.map(Arc::new);
        Ok(Self { access_log, exporter })
    }

    /// The tracer of the server, whose traces go to the exporter.
    ///
    /// # Errors
    /// Names the environment variable that cannot be used.
    pub fn start_tracer(&self, config: &TraceConfig) -> Result<Arc<Tracer>> {
        let sampler = match config.mode {
            TraceMode::OpenTelemetry => TraceSampler::read(&environment).map_err(Error::invalid)?,
            TraceMode::Triton => None,
        };
        let sink = |exporter: &Arc<TraceExporter>| Box::new(SpanSink(Arc::clone(exporter))) as _;
        Ok(Tracer::with_sampler(config, sampler, self.exporter.iter().map(sink).collect()))
    }

    pub fn stats(&self, tracer: &Tracer) -> TelemetryStats {
        TelemetryStats {
            traces: Arc::clone(tracer.stats()),
            spans: self.exporter.as_ref().map(|exporter| Arc::clone(exporter.stats())),
            access_log: self.access_log.as_ref().map(|log| Arc::clone(log.stats())),
        }
    }

    /// Opens files anew that were renamed. False without a file.
    pub fn reopen(&self) -> bool {
        self.access_log.as_ref().map(|log| log.reopen()).is_some()
    }

    /// Writes and sends what waits, for at most `limit`. Blocks.
    pub fn shut_down(&self, limit: Duration) {
        if let Some(exporter) = &self.exporter {
            exporter.shut_down(limit.min(MAX_EXPORT));
        }
        if let Some(log) = &self.access_log {
            log.shut_down(limit.min(MAX_WRITE));
        }
    }
}

/// `None` in another mode, and where the environment switches it off.
fn start_exporter(config: &TraceConfig) -> std::result::Result<Option<TraceExporter>, String> {
    if config.mode != TraceMode::OpenTelemetry {
        return Ok(None);
    }
    let options = ExporterOptions::from_pairs(&config.options)?;
    match ExporterSettings::read(&options, &environment)? {
        Some(settings) => SpanExporter::start(settings).map(Some),
        None => {
            tracing::info!(
                "no spans are exported, as the environment says (OTEL_SDK_DISABLED or OTEL_TRACES_EXPORTER)"
            );
            Ok(None)
        }
    }
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
