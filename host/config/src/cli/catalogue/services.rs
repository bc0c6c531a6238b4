//! Flags of scheduling, cache, tracing, cloud frontends and of older releases.

use super::flag::{ANY_INT, BYTES, FlagKind, FlagSpec, PORT, flag_spec};

const UNUSED_SAGEMAKER: &str = "--allow-sagemaker is not supported yet";
const UNUSED_VERTEX: &str = "--allow-vertex-ai is not supported yet";

pub(super) const SCHEDULING: &[FlagSpec] = &[
    flag_spec(
        "rate-limit",
        FlagKind::Choice(&["off", "execution_count"]),
        "off",
        "Limit executions by the resources of instance_group.rate_limiter: off, or execution_count, which shares them by \
         executions and priority",
    ),
    flag_spec(
        "rate-limit-resource",
        FlagKind::Text("NAME:COUNT[:DEVICE]"),
        "",
        "How many of a resource of the rate limiter there are, on each device or on one; default: the largest count that an \
         instance needs. Once given for one resource, others have none",
    )
    .repeats(),
    flag_spec(
        "fairness-header",
        FlagKind::Text("NAME"),
        "",
        "Header, or key of gRPC metadata, whose value tells clients apart; the requests of a model are then served in turn \
         between clients",
    ),
    flag_spec(
        "fairness-names",
        FlagKind::Bool,
        "false",
        "The same by the names of --auth-file",
    ),
    flag_spec(
        "fairness-weight",
        FlagKind::Text("CLIENT:WEIGHT"),
        "",
        "Share of a client beside others, 1 to 1000; default 1",
    )
    .repeats(),
    flag_spec(
        "cache-config",
        FlagKind::Text("NAME,KEY=VALUE"),
        "",
        "Response cache for models that enable it: local,size=BYTES[,ttl=SECONDS]",
    )
    .repeats(),
    flag_spec(
        "cache-directory",
        FlagKind::Path("DIR"),
        "",
        "Directory of response cache implementations",
    )
    .no_effect("the server contains its response cache"),
    flag_spec(
        "response-cache-byte-size",
        BYTES,
        "0",
        "Size of the response cache in bytes; as --cache-config=local,size=BYTES",
    ),
];

pub(super) const TRACING: &[FlagSpec] = &[
    flag_spec(
        "trace-config",
        FlagKind::Text("[MODE,]KEY=VALUE"),
        "",
        "Settings of request tracing: level=OFF|TIMESTAMPS|TENSORS, rate=N, count=N, mode=triton|opentelemetry, \
         triton,file=FILE, triton,log-frequency=N, opentelemetry,KEY=VALUE",
    )
    .repeats(),
    flag_spec(
        "trace-kept",
        FlagKind::Int { min: 0, max: 100_000 },
        "",
        "Traces kept in memory for GET /v2/trtserver/requests; default 256 when requests are traced",
    ),
    flag_spec(
        "trace-slow-ms",
        FlagKind::Int { min: 0, max: 86_400_000 },
        "",
        "Keep the traces of requests that took at least so long, and of failed ones, also when not sampled",
    ),
    flag_spec(
        "trace-level",
        FlagKind::Choice(&["OFF", "MIN", "MAX", "TIMESTAMPS", "TENSORS"]),
        "",
        "Level of request tracing; as --trace-config=level=LEVEL",
    )
    .repeats(),
    flag_spec(
        "trace-file",
        FlagKind::Path("FILE"),
        "",
        "Trace file; as --trace-config=triton,file=FILE",
    ),
    flag_spec("trace-rate", ANY_INT, "", "Trace one of every N requests; as --trace-config=rate=N"),
    flag_spec("trace-count", ANY_INT, "", "Number of traces; as --trace-config=count=N"),
    flag_spec(
        "trace-log-frequency",
        ANY_INT,
        "",
        "Traces of one file; as --trace-config=triton,log-frequency=N",
    ),
];

pub(super) const CLOUD: &[FlagSpec] = &[
    flag_spec("allow-sagemaker", FlagKind::Bool, "false", "Serve the SageMaker endpoints")
        .unsupported(
            &["false"],
            "the SageMaker frontend: clients use the v2 endpoints of the HTTP port",
        ),
    flag_spec("sagemaker-port", PORT, "", "Port of the SageMaker frontend")
        .no_effect(UNUSED_SAGEMAKER),
    flag_spec(
        "sagemaker-safe-port-range",
        FlagKind::Text("A-B"),
        "",
        "Ports that other frontends may use",
    )
    .no_effect(UNUSED_SAGEMAKER),
    flag_spec("sagemaker-thread-count", ANY_INT, "", "Number of threads of the SageMaker frontend")
        .no_effect(UNUSED_SAGEMAKER),
    flag_spec("allow-vertex-ai", FlagKind::Bool, "false", "Serve the Vertex AI endpoints")
        .unsupported(
            &["false"],
            "the Vertex AI frontend: clients use the v2 endpoints of the HTTP port",
        ),
    flag_spec("vertex-ai-port", PORT, "", "Port of the Vertex AI frontend")
        .no_effect(UNUSED_VERTEX),
    flag_spec("vertex-ai-thread-count", ANY_INT, "", "Number of threads of the Vertex AI frontend")
        .no_effect(UNUSED_VERTEX),
    flag_spec(
        "vertex-ai-default-model",
        FlagKind::Text("NAME"),
        "",
        "Default model of the Vertex AI frontend",
    )
    .no_effect(UNUSED_VERTEX),
];

pub(super) const OLDER: &[FlagSpec] = &[flag_spec(
    "allow-profiling",
    FlagKind::Bool,
    "false",
    "Allow v1 clients to start and stop the CUDA profiler",
)];
