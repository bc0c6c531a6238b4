//! Builds metric families of the prometheus crate from counters kept outside of it.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType, Quantile,
    Summary,
};

/// Names and values; printed sorted by name.
pub type Labels = Vec<(String, String)>;

/// A family under construction.
pub struct FamilyBuilder {
    family: MetricFamily,
    kind: MetricType,
}

impl FamilyBuilder {
    pub fn counter(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::COUNTER)
    }

    pub fn gauge(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::GAUGE)
    }

    pub fn histogram(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::HISTOGRAM)
    }

    pub fn summary(name: &str, help: &str) -> Self {
        Self::new(name, help, MetricType::SUMMARY)
    }

    /// A gauge with one series, which has no labels.
    pub fn single_gauge(name: &str, help: &str, value: f64) -> MetricFamily {
        let mut family = Self::gauge(name, help);
        family.put(&Labels::new(), value);
        family.done()
    }

    fn new(name: &str, help: &str, kind: MetricType) -> Self {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        Self { family, kind }
    }

    /// Adds a series of a counter or gauge.
    pub fn put(&mut self, labels: &Labels, value: f64) {
        let mut metric = labelled_metric(labels);
        if self.kind == MetricType::GAUGE {
            let mut gauge = Gauge::default();
            gauge.set_value(value);
            metric.set_gauge(gauge);
        } else {
            let mut counter = Counter::default();
            counter.set_value(value);
            metric.set_counter(counter);
        }
        self.family.mut_metric().push(metric);
    }

    /// Adds a series of a histogram: counts per bucket, +Inf last.
    pub fn put_buckets(&mut self, labels: &Labels, bounds: &[f64], counts: &[u64], sum: f64) {
        let mut histogram = Histogram::default();
        let mut cumulative = 0;
        let buckets = bounds.iter().zip(counts).map(|(bound, count)| {
            cumulative += count;
            let mut bucket = Bucket::default();
            bucket.set_upper_bound(*bound);
            bucket.set_cumulative_count(cumulative);
            bucket
        });
        histogram.set_bucket(buckets.collect());
        histogram.set_sample_count(counts.iter().sum());
        histogram.set_sample_sum(sum);
        let mut metric = labelled_metric(labels);
        metric.set_histogram(histogram);
        self.family.mut_metric().push(metric);
    }

    /// Adds a series of a summary: pairs of a quantile and its value.
    pub fn put_quantiles(
        &mut self,
        labels: &Labels,
        quantiles: impl Iterator<Item = (f64, f64)>,
        (count, sum): (u64, f64),
    ) {
        let quantiles = quantiles.map(|(at, value)| {
            let mut quantile = Quantile::default();
            quantile.set_quantile(at);
            quantile.set_value(value);
            quantile
        });
        let mut summary = Summary::default();
        summary.set_quantile(quantiles.collect());
        summary.set_sample_count(count);
        summary.set_sample_sum(sum);
        let mut metric = labelled_metric(labels);
        metric.set_summary(summary);
        self.family.mut_metric().push(metric);
    }

    pub fn done(self) -> MetricFamily {
        self.family
    }
}

fn labelled_metric(labels: &Labels) -> Metric {
    let mut pairs: Vec<LabelPair> = labels
        .iter()
        .map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name(name.clone());
            pair.set_value(value.clone());
            pair
        })
        .collect();
    pairs.sort_by(|a, b| a.name().cmp(b.name()));
    Metric::from_label(pairs)
}
