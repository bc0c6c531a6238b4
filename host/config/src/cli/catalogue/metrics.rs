//! Flags of the metrics.

use super::flag::{Flag, Kind, PORT, flag};

pub(super) const METRICS: &[Flag] = &[
    flag("allow-metrics", Kind::Bool, "true", "Serve Prometheus metrics"),
    flag(
        "metrics-address",
        Kind::Text("ADDRESS"),
        "",
        "Addresses of the metrics listener, as for --http-address; by default the TCP addresses of --http-address, or \
         127.0.0.1 if it has none",
    )
    .repeats(),
    flag(
        "metrics-port",
        PORT,
        "8002",
        "Port of the metrics listener; 0 selects a free port for each address",
    ),
    flag("allow-gpu-metrics", Kind::Bool, "true", "Export GPU metrics"),
    flag("allow-cpu-metrics", Kind::Bool, "true", "Export use and memory of the machine's CPUs"),
    flag(
        "metrics-interval-ms",
        Kind::Float,
        "2000",
        "Interval of measurements of GPUs and CPUs in milliseconds: the page shows values of at most half this age",
    ),
    flag(
        "metrics-config",
        Kind::Text("KEY=VALUE"),
        "",
        "Latency metrics, each true or false: counter_latencies (true), histogram_latencies (true), \
         summary_latencies (false); and summary_quantiles=QUANTILE:ERROR,... of the summaries",
    )
    .repeats(),
];
