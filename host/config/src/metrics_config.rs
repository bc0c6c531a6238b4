//! `--metrics-config`: which latencies the metrics page shows.

use super::values::FlagValues;
use crate::cli::GivenFlags;
use trtserver_base::stats::LatencySettings;

const KEYS: &str = "counter_latencies, histogram_latencies, summary_latencies, summary_quantiles";

/// Settings from texts `KEY=VALUE`; the last value of a key is used.
pub fn latency_metrics(flags: &GivenFlags, v: &FlagValues) -> Result<LatencySettings, String> {
    const NAME: &str = "metrics-config";
    let origin = flags.get(NAME).map(|given| given.origin.to_string()).unwrap_or_default();
    let mut settings = LatencySettings::default();
    for text in v.texts(NAME) {
        let refuse = |expected: &str| format!("{origin}--{NAME}={text}: expected {expected}");
        let (key, value) = text.split_once('=').ok_or_else(|| refuse("KEY=VALUE"))?;
        let switch = || parse_switch(value).ok_or_else(|| refuse("true or false"));
        match key {
            "counter_latencies" => settings.counters = switch()?,
            "histogram_latencies" => settings.histograms = switch()?,
            "summary_latencies" => settings.summaries = switch()?,
            "summary_quantiles" => {
                let expected = "QUANTILE:ERROR,…, both from 0 to 1, such as 0.5:0.05,0.99:0.001";
                settings.quantiles = parse_quantiles(value).ok_or_else(|| refuse(expected))?;
            }
            _ => return Err(refuse(&format!("one of the keys {KEYS}"))),
        }
    }
    Ok(settings)
}

fn parse_switch(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "true" | "on" | "1" => Some(true),
        "false" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// The quantiles. Their errors are only checked: the buckets of the histogram decide how exact a
/// value is.
fn parse_quantiles(text: &str) -> Option<Vec<f64>> {
    let share = |text: &str| {
        let share = text.trim().parse::<f64>().ok()?;
        (0.0..=1.0).contains(&share).then_some(share)
    };
    let pair = |pair: &str| {
        let (quantile, error) = pair.split_once(':')?;
        share(error)?;
        share(quantile)
    };
    text.split(',').map(pair).collect()
}
