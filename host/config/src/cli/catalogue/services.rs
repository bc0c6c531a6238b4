//! Flags of scheduling, cache, tracing, cloud frontends and of older releases.

use super::flag::{ANY_INT, BYTES, Flag, Kind, PORT, flag};

const NO_TRACE: &str = "request tracing";
const NO_LIMITER: &str = "the rate limiter";
const NO_CACHE: &str = "the response cache";
const UNUSED_TRACE: &str = "request tracing is not supported yet";
const UNUSED_SAGEMAKER: &str = "--allow-sagemaker is not supported yet";
const UNUSED_VERTEX: &str = "--allow-vertex-ai is not supported yet";

pub(super) const SCHEDULING: &[Flag] = &[
    flag(
        "rate-limit",
        Kind::Choice(&["off", "execution_count"]),
        "off",
        "Rate limiter of executions",
    )
    .unsupported(&["off"], NO_LIMITER),
    flag(
        "rate-limit-resource",
        Kind::Text("NAME:COUNT[:DEVICE]"),
        "",
        "Resource of the rate limiter",
    )
    .repeats()
    .unsupported(&[], NO_LIMITER),
    flag(
        "cache-config",
        Kind::Text("NAME,KEY=VALUE"),
        "",
        "Response cache implementation and settings",
    )
    .repeats()
    .unsupported(&[], NO_CACHE),
    flag("cache-directory", Kind::Path("DIR"), "", "Directory of response cache implementations")
        .no_effect("the server has no response cache"),
    flag("response-cache-byte-size", BYTES, "0", "Size of the response cache in bytes")
        .unsupported(&["0"], NO_CACHE),
];

pub(super) const TRACING: &[Flag] = &[
    flag("trace-config", Kind::Text("[MODE,]KEY=VALUE"), "", "Settings of request tracing")
        .repeats()
        .unsupported(&["level=OFF"], NO_TRACE),
    flag(
        "trace-level",
        Kind::Choice(&["OFF", "MIN", "MAX", "TIMESTAMPS", "TENSORS"]),
        "OFF",
        "Level of request tracing",
    )
    .repeats()
    .unsupported(&["OFF"], NO_TRACE),
    flag("trace-file", Kind::Path("FILE"), "", "Trace file").unsupported(&[""], NO_TRACE),
    flag("trace-rate", ANY_INT, "", "Trace one of every N requests").no_effect(UNUSED_TRACE),
    flag("trace-count", ANY_INT, "", "Maximum number of traces").no_effect(UNUSED_TRACE),
    flag("trace-log-frequency", ANY_INT, "", "Number of traces per file").no_effect(UNUSED_TRACE),
];

pub(super) const CLOUD: &[Flag] = &[
    flag("allow-sagemaker", Kind::Bool, "false", "Serve the SageMaker endpoints").unsupported(
        &["false"],
        "the SageMaker frontend: clients use the v2 endpoints of the HTTP port",
    ),
    flag("sagemaker-port", PORT, "", "Port of the SageMaker frontend").no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-safe-port-range", Kind::Text("A-B"), "", "Ports that other frontends may use")
        .no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-thread-count", ANY_INT, "", "Number of threads of the SageMaker frontend")
        .no_effect(UNUSED_SAGEMAKER),
    flag("allow-vertex-ai", Kind::Bool, "false", "Serve the Vertex AI endpoints").unsupported(
        &["false"],
        "the Vertex AI frontend: clients use the v2 endpoints of the HTTP port",
    ),
    flag("vertex-ai-port", PORT, "", "Port of the Vertex AI frontend").no_effect(UNUSED_VERTEX),
    flag("vertex-ai-thread-count", ANY_INT, "", "Number of threads of the Vertex AI frontend")
        .no_effect(UNUSED_VERTEX),
    flag(
        "vertex-ai-default-model",
        Kind::Text("NAME"),
        "",
        "Default model of the Vertex AI frontend",
    )
    .no_effect(UNUSED_VERTEX),
];

pub(super) const OLDER: &[Flag] = &[flag(
    "allow-profiling",
    Kind::Bool,
    "false",
    "Allow v1 clients to start and stop the CUDA profiler",
)];
