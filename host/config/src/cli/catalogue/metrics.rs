//! Flags of the metrics.

use super::flag::{FlagKind, FlagSpec, PORT, flag_spec};

pub(super) const METRICS: &[FlagSpec] = &[
    flag_spec("allow-metrics", FlagKind::Bool, "true", "Serve Prometheus metrics"),
    flag_spec(
        "metrics-address",
        FlagKind::Text("ADDRESS"),
        "",
        "Addresses of the metrics listener, as for --http-address; by default the TCP addresses of --http-address, or \
         127.0.0.1 if it has none",
    )
    .repeats(),
    flag_spec(
        "metrics-port",
        PORT,
        "8002",
        "Port of the metrics listener; 0 selects a free port for each address",
    ),
    flag_spec("http-metrics", FlagKind::Bool, "false", "Serve /metrics on the HTTP port, too"),
    flag_spec("allow-gpu-metrics", FlagKind::Bool, "true", "Export GPU metrics"),
    flag_spec("allow-cpu-metrics", FlagKind::Bool, "true", "Export use and memory of the machine's CPUs"),
    flag_spec(
        "metrics-interval-ms",
        FlagKind::Float,
        "2000",
        "Interval of measurements of GPUs and CPUs in milliseconds: the page shows values of at most half this age",
    ),
    flag_spec(
        "metrics-config",
        FlagKind::Text("KEY=VALUE"),
        "",
        "Latency metrics, each true or false: counter_latencies (true), histogram_latencies (true), \
         summary_latencies (false); and summary_quantiles=QUANTILE:ERROR,... of the summaries",
    )
    .repeats(),
];
