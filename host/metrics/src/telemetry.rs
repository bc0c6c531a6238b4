//! Traces, spans and lines of the access log: how many left the server, and how many were lost.

use super::family::{FamilyBuilder, Labels};
use prometheus::proto::MetricFamily;
use std::sync::Arc;
use trtserver_base::telemetry_stats::{
    AccessLogStats, ExportFailure, LineDrop, SpanDrop, SpanStats, TraceDrop, TraceStats,
};

/// Counters of what the server tells of its requests; each `None` where it is switched off.
#[derive(Clone, Debug, Default)]
pub struct TelemetryStats {
    /// Always there: traces can be asked for at any time.
    pub traces: Arc<TraceStats>,
    pub spans: Option<Arc<SpanStats>>,
    pub access_log: Option<Arc<AccessLogStats>>,
}

pub fn telemetry_families(stats: &TelemetryStats) -> Vec<MetricFamily> {
    let mut families = vec![trace_family(&stats.traces)];
    if let Some(spans) = &stats.spans {
        families.extend(span_families(spans));
    }
    if let Some(lines) = &stats.access_log {
        families.extend(access_log_families(lines));
    }
    families
}

fn reason(name: &str) -> Labels {
    Labels::from([("reason".to_owned(), name.to_owned())])
}

fn trace_family(traces: &TraceStats) -> MetricFamily {
    let mut dropped = FamilyBuilder::counter(
        "trtserver_traces_dropped_total",
        "Traces of requests that were lost, by reason",
    );
    for why in TraceDrop::ALL {
        dropped.put(&reason(why.name()), traces.dropped(why) as f64);
    }
    dropped.done()
}

fn span_families(spans: &SpanStats) -> [MetricFamily; 3] {
    let mut exported = FamilyBuilder::counter(
        "trtserver_spans_exported_total",
        "Spans that the collector has accepted",
    );
    exported.put(&Labels::default(), spans.exported() as f64);
    let mut dropped = FamilyBuilder::counter(
        "trtserver_spans_dropped_total",
        "Spans that were not exported, by reason",
    );
    for why in SpanDrop::ALL {
        dropped.put(&reason(why.name()), spans.dropped(why) as f64);
    }
    let mut failures = FamilyBuilder::counter(
        "trtserver_span_export_failures_total",
        "Attempts to export a batch of spans that failed, by reason",
    );
    for why in ExportFailure::ALL {
        failures.put(&reason(why.name()), spans.failures(why) as f64);
    }
    [exported.done(), dropped.done(), failures.done()]
}

fn access_log_families(lines: &AccessLogStats) -> [MetricFamily; 2] {
    let mut written = FamilyBuilder::counter(
        "trtserver_access_log_lines_total",
        "Lines that were written to the access log",
    );
    written.put(&Labels::default(), lines.written() as f64);
    let mut dropped = FamilyBuilder::counter(
        "trtserver_access_log_dropped_total",
        "Requests that have no line in the access log, by reason",
    );
    for why in LineDrop::ALL {
        dropped.put(&reason(why.name()), lines.dropped(why) as f64);
    }
    [written.done(), dropped.done()]
}
