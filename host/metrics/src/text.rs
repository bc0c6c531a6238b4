//! Writes metric families in Prometheus' text format 0.0.4 and in OpenMetrics 1.0.
//!
//! OpenMetrics allows counters only with samples whose names end in `_total`: those of Triton get
//! that ending there. Dashboards ask for Triton's names, so clients get OpenMetrics only if they do
//! not take the text format.

use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use std::collections::HashSet;
use std::fmt::Write;

/// How the samples of counters end in OpenMetrics.
const TOTAL: &str = "_total";

/// A format of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsFormat {
    Text,
    OpenMetrics,
}

impl MetricsFormat {
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

pub fn encode_families(families: &[MetricFamily], format: MetricsFormat) -> String {
    let names = families.iter().map(MetricFamily::name).collect();
    let mut page = TextPage { text: String::new(), format, names };
    families.iter().for_each(|family| page.family(family));
    if format == MetricsFormat::OpenMetrics {
        page.text.push_str("# EOF\n");
    }
    page.text
}

struct TextPage<'a> {
    text: String,
    format: MetricsFormat,
    /// Those of all families.
    names: HashSet<&'a str>,
}

impl TextPage<'_> {
    fn family(&mut self, family: &MetricFamily) {
        let (name, kind) = (family.name(), family.get_field_type());
        let mut suffix = "";
        let (described, kind_name) = match (kind, self.format) {
            (MetricType::COUNTER, MetricsFormat::OpenMetrics) => {
                match name.strip_suffix(TOTAL) {
                    Some(base) => (base, "counter"),
                    // Counters of two backends, which would become one.
                    None if self.names.contains(&*format!("{name}{TOTAL}")) => (name, "unknown"),
                    None => {
                        suffix = TOTAL;
                        (name, "counter")
                    }
                }
            }
            (MetricType::COUNTER, MetricsFormat::Text) => (name, "counter"),
            (MetricType::GAUGE, _) => (name, "gauge"),
            (MetricType::HISTOGRAM, _) => (name, "histogram"),
            (MetricType::SUMMARY, _) => (name, "summary"),
            (MetricType::UNTYPED, _) => return,
        };
        let help = escape_text(family.help(), self.format == MetricsFormat::OpenMetrics);
        self.line(format_args!("# HELP {described} {help}"));
        self.line(format_args!("# TYPE {described} {kind_name}"));
        for metric in family.get_metric() {
            match kind {
                MetricType::COUNTER => {
                    self.sample(name, suffix, metric, None, metric.get_counter().get_value())
                }
                MetricType::GAUGE => {
                    self.sample(name, "", metric, None, metric.get_gauge().get_value())
                }
                MetricType::HISTOGRAM => self.histogram(name, metric),
                MetricType::SUMMARY => self.summary(name, metric),
                MetricType::UNTYPED => {}
            }
        }
    }

    fn histogram(&mut self, name: &str, metric: &Metric) {
        let histogram = metric.get_histogram();
        let count = histogram.get_sample_count() as f64;
        for bucket in histogram.get_bucket() {
            let bound = Some(("le", bucket.upper_bound()));
            self.sample(name, "_bucket", metric, bound, bucket.cumulative_count() as f64);
        }
        self.sample(name, "_bucket", metric, Some(("le", f64::INFINITY)), count);
        self.sample(name, "_sum", metric, None, histogram.get_sample_sum());
        self.sample(name, "_count", metric, None, count);
    }

    fn summary(&mut self, name: &str, metric: &Metric) {
        let summary = metric.get_summary();
        for quantile in summary.get_quantile() {
            let at = Some(("quantile", quantile.quantile()));
            self.sample(name, "", metric, at, quantile.value());
        }
        self.sample(name, "_sum", metric, None, summary.sample_sum());
        self.sample(name, "_count", metric, None, summary.sample_count() as f64);
    }

    fn sample(
        &mut self,
        name: &str,
        suffix: &str,
        metric: &Metric,
        bound: Option<(&str, f64)>,
        value: f64,
    ) {
        self.text.push_str(name);
        self.text.push_str(suffix);
        let mut separator = '{';
        let pairs =
            metric.get_label().iter().map(|l: &LabelPair| (l.name(), escape_text(l.value(), true)));
        let bound = bound.map(|(name, bound)| (name, self.bound(bound)));
        for (label, value) in pairs.chain(bound) {
            self.text.push(separator);
            self.write(format_args!("{label}=\"{value}\""));
            separator = ',';
        }
        if separator == ',' {
            self.text.push('}');
        }
        self.line(format_args!(" {}", format_number(value)));
    }

    /// The value of `le` or `quantile`. OpenMetrics wants whole numbers with a decimal.
    fn bound(&self, bound: f64) -> String {
        match self.format {
            MetricsFormat::OpenMetrics if bound.is_finite() && bound.fract() == 0.0 => {
                format!("{bound}.0")
            }
            _ => format_number(bound),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.write(line);
        self.text.push('\n');
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // A `String` takes everything.
        let _ = self.text.write_fmt(text);
    }
}

fn format_number(value: f64) -> String {
    match value {
        f64::INFINITY => "+Inf".to_owned(),
        f64::NEG_INFINITY => "-Inf".to_owned(),
        _ => value.to_string(),
    }
}

/// Text of a label or a help line; only the former has its quotes escaped in the text format.
fn escape_text(text: &str, quotes: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
