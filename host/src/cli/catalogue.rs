//! Every flag: names, kind, default, help text, and whether it is supported.
//!
//! Parsing, `--help`, the keys of a `--config` file and the checks at start read this table. A new flag is one entry
//! here and one line in `config`.

/// One flag. Names are without the leading dashes.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// Value when the flag is not given; empty for none.
    pub default: &'static str,
    pub repeatable: bool,
    pub help: &'static str,
    pub status: Status,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// true or false; the flag without a value means true.
    Bool,
    /// An integer within bounds.
    Int {
        min: i64,
        max: i64,
    },
    /// An integer; a negative one counts as 0.
    Count,
    /// A count, or true for 1 and false for 0.
    Verbosity,
    Float,
    /// A number of bytes, at least 1, with an optional suffix: K, M, G or T for powers of 1024.
    Size,
    /// Free text, with its placeholder in the help text.
    Text(&'static str),
    Path(&'static str),
    Choice(&'static [&'static str]),
}

/// What giving the flag does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    Effective,
    /// Accepted without effect, for this reason. Logged at start.
    NoEffect(&'static str),
    /// Accepted with a warning, unless the value is one of `quiet`.
    Warns {
        quiet: &'static [&'static str],
        reason: &'static str,
    },
    /// Refused, unless the value is one of `off`: ignoring the flag would silently change what the server does.
    Unsupported {
        off: &'static [&'static str],
        feature: &'static str,
    },
}

impl Flag {
    const fn also(mut self, aliases: &'static [&'static str]) -> Flag {
        self.aliases = aliases;
        self
    }
    const fn repeats(mut self) -> Flag {
        self.repeatable = true;
        self
    }
    const fn no_effect(mut self, reason: &'static str) -> Flag {
        self.status = Status::NoEffect(reason);
        self
    }
    const fn warns(mut self, quiet: &'static [&'static str], reason: &'static str) -> Flag {
        self.status = Status::Warns { quiet, reason };
        self
    }
    const fn unsupported(mut self, off: &'static [&'static str], feature: &'static str) -> Flag {
        self.status = Status::Unsupported { off, feature };
        self
    }
}

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, aliases: &[], kind, default, repeatable: false, help, status: Status::Effective }
}

/// The flag with this name or alias.
pub fn find(name: &str) -> Option<&'static Flag> {
    all().find(|f| f.name == name || f.aliases.contains(&name))
}

/// Every flag, in the order of the table.
pub fn all() -> impl Iterator<Item = &'static Flag> {
    SECTIONS.iter().flat_map(|(_, flags)| flags.iter())
}

const PORT: Kind = Kind::Int { min: 0, max: 65535 };
const POSITIVE: Kind = Kind::Int { min: 1, max: i64::MAX };
const ANY_INT: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };
const BYTES: Kind = Kind::Int { min: 0, max: i64::MAX };

const OWN_THREADS: &str = "the number of threads follows the number of CPU cores";
const NO_POOL: &str = "the server has no such memory pool";
const NO_TLS: &str = "gRPC over TLS";
const ONE_NAMESPACE: &str = "all repositories share one namespace: a model that several of them have is refused, and a \
                             step of an ensemble cannot name a namespace";
const NO_TRACE: &str = "request tracing";
const NO_LIMITER: &str = "the rate limiter";
const NO_CACHE: &str = "the response cache";
const NO_KEEPALIVE: &str = "keepalive uses the defaults of the HTTP/2 library";
const UNUSED_TRACE: &str = "request tracing is not supported yet";
const UNUSED_SAGEMAKER: &str = "--allow-sagemaker is not supported yet";
const UNUSED_VERTEX: &str = "--allow-vertex-ai is not supported yet";
pub const SECTIONS: &[(&str, &[Flag])] = &[
    ("General", GENERAL),
    ("Logging", LOGGING),
    ("Model repository", REPOSITORY),
    ("HTTP", HTTP),
    ("gRPC", GRPC),
    ("Limits", LIMITS),
    ("Connections", CONNECTIONS),
    ("Metrics", METRICS),
    ("Backends", BACKENDS),
    ("Memory and devices", DEVICES),
    ("Scheduling and cache", SCHEDULING),
    ("Tracing", TRACING),
    ("Cloud frontends", CLOUD),
    ("Older releases", OLDER),
];

const GENERAL: &[Flag] = &[
    flag(
        "config",
        Kind::Path("FILE"),
        "",
        "Read flags from a TOML file: keys are flag names, repeatable flags take a list. The \
         command line takes precedence",
    ),
    flag("id", Kind::Text("NAME"), "inference:0", "Server name in server metadata and status"),
    flag("exit-on-error", Kind::Bool, "true", "Exit if the server or a model fails to start"),
    flag(
        "exit-timeout-secs",
        Kind::Count,
        "30",
        "Grace period in seconds for in-flight requests at shutdown",
    ),
    flag(
        "exit-sequence-timeout-secs",
        Kind::Count,
        "5",
        "Grace period in seconds for sequences that have not ended at shutdown",
    ),
    flag(
        "strict-readiness",
        Kind::Bool,
        "true",
        "Report the server as ready only while all model versions are ready",
    ),
    flag("api-version", Kind::Int { min: 1, max: 2 }, "", "Protocol generation to serve")
        .no_effect("the server always serves both generations"),
];

const LOGGING: &[Flag] = &[
    flag("log-info", Kind::Bool, "true", "Log messages of level info"),
    flag("log-warning", Kind::Bool, "true", "Log messages of level warning"),
    flag("log-error", Kind::Bool, "true", "Log messages of level error"),
    flag(
        "log-verbose",
        Kind::Verbosity,
        "0",
        "Verbosity of the log: 1 adds steps, 2 adds requests, 3 and 4 add messages of libraries",
    ),
    flag(
        "log-format",
        Kind::Choice(&["default", "ISO8601", "json"]),
        "default",
        "Format of log lines",
    ),
    flag("log-json", Kind::Bool, "false", "Same as --log-format=json"),
    flag(
        "log-file",
        Kind::Path("FILE"),
        "",
        "Append log lines to this file instead of writing to standard error",
    ),
];

const REPOSITORY: &[Flag] = &[
    flag(
        "model-repository",
        Kind::Path("DIR"),
        "",
        "Model repository: a directory with one directory per model, or its URL in an object store: \
         gs://BUCKET/PATH, s3://BUCKET/PATH, s3://HOST:PORT/BUCKET/PATH, as://ACCOUNT/CONTAINER/PATH. Required",
    )
    .also(&["model-store", "modelstore"])
    .repeats(),
    flag(
        "model_base_path",
        Kind::Path("DIR"),
        "",
        "Same as --model-repository, with the responses of the releases that had this flag",
    )
    .also(&["model-base-path"])
    .repeats(),
    flag(
        "model-cache-dir",
        Kind::Path("DIR"),
        "",
        "Cache of models from object stores, which servers may share; by default trtserver/models in the user's cache \
         directory",
    ),
    flag(
        "model-cache-size",
        Kind::Size,
        "",
        "Maximum bytes of the model cache: models that are not loaded are removed, those used longest ago first; by \
         default no limit",
    ),
    flag(
        "store-timeout-secs",
        POSITIVE,
        "30",
        "How long an object store may send nothing, and how long failed calls are repeated, before a load fails",
    ),
    flag(
        "strict-model-config",
        Kind::Bool,
        "true",
        "Require a complete configuration file for every model; with false the backend completes \
         missing fields",
    ),
    flag("disable-auto-complete-config", Kind::Bool, "false", "Same as --strict-model-config=true"),
    flag("model-load-thread-count", POSITIVE, "4", "Number of models loaded in parallel"),
    flag(
        "max-instances",
        POSITIVE,
        "",
        "Maximum number of instances of all models, each of which is a thread; by default 4096, or less where the \
         system allows fewer threads",
    ),
    flag(
        "max-instances-per-model",
        POSITIVE,
        "1024",
        "Maximum number of instances of one model version",
    ),
    flag(
        "max-load-memory",
        BYTES,
        "268435456",
        "Maximum bytes of labels, initial states and warm-up data of one model",
    ),
    flag(
        "warmup-timeout-secs",
        Kind::Count,
        "1800",
        "Time limit in seconds for the warm-up of an instance, after which the load fails; 0 for none",
    ),
    flag(
        "model-load-retry-count",
        Kind::Count,
        "0",
        "How often the opening of a model version is tried again after it failed",
    ),
    flag(
        "model-control-mode",
        Kind::Choice(&["none", "poll", "explicit"]),
        "none",
        "none: load all models at start; poll: load models when their files change; explicit: load \
         the models of --load-model at start, others by request. Without this flag \
         --repository-poll-secs or --allow-poll-model-repository=true means poll",
    ),
    flag(
        "allow-model-control",
        Kind::Bool,
        "false",
        "Same as --model-control-mode=explicit; requires --allow-poll-model-repository=false",
    ),
    flag(
        "load-model",
        Kind::Text("NAME"),
        "",
        "Model to load at start in explicit mode; * loads all models",
    )
    .repeats(),
    flag("allow-poll-model-repository", Kind::Bool, "", "Same as --model-control-mode=poll")
        .also(&["allow-model-load-unload"]),
    flag(
        "repository-poll-secs",
        Kind::Count,
        "15",
        "Polling interval of the model repository in seconds; 0 disables polling",
    )
    .also(&["file-system-poll-secs"]),
    flag(
        "repository-settle-secs",
        Kind::Float,
        "1",
        "Load changed files once they have not changed for this time in seconds",
    ),
    flag(
        "model-config-name",
        Kind::Text("NAME"),
        "",
        "Use configs/NAME.pbtxt of a model instead of its config.pbtxt, where the model has it",
    ),
    flag(
        "model-namespacing",
        Kind::Bool,
        "false",
        "Allow models of the same name in different repositories",
    )
    .warns(&["false"], ONE_NAMESPACE),
];

const HTTP: &[Flag] = &[
    flag("allow-http", Kind::Bool, "true", "Serve HTTP"),
    flag("http-address", Kind::Text("ADDRESS"), "0.0.0.0", "Address of the HTTP listener"),
    flag("http-port", PORT, "8000", "Port of the HTTP listener; 0 selects a free port"),
    flag("http-health-port", PORT, "", "Additional port that serves the health endpoint only"),
    flag(
        "http-max-input-size",
        Kind::Int { min: 1, max: i64::MAX },
        "67108864",
        "Maximum size of an HTTP request body in bytes",
    ),
    flag("http-thread-count", ANY_INT, "", "Number of HTTP threads").no_effect(OWN_THREADS),
    flag(
        "reuse-http-port",
        Kind::Bool,
        "false",
        "Share the HTTP port with other processes (SO_REUSEPORT)",
    )
    .unsupported(&["false"], "SO_REUSEPORT"),
    flag(
        "http-header-forward-pattern",
        Kind::Text("REGEX"),
        "",
        "Forward request headers that match to models as parameters",
    )
    .unsupported(&[""], "header forwarding"),
    flag(
        "http-restricted-api",
        Kind::Text("APIS:KEY=VALUE"),
        "",
        "Restrict endpoints to requests with a header",
    )
    .repeats()
    .unsupported(&[], "restricted endpoints"),
];

const GRPC: &[Flag] = &[
    flag("allow-grpc", Kind::Bool, "true", "Serve gRPC"),
    flag("grpc-address", Kind::Text("ADDRESS"), "0.0.0.0", "Address of the gRPC listener"),
    flag("grpc-port", PORT, "8001", "Port of the gRPC listener; 0 selects a free port"),
    flag(
        "reuse-grpc-port",
        Kind::Bool,
        "false",
        "Share the gRPC port with other processes (SO_REUSEPORT)",
    )
    .unsupported(&["false"], "SO_REUSEPORT"),
    flag(
        "grpc-header-forward-pattern",
        Kind::Text("REGEX"),
        "",
        "Forward request metadata that matches to models as parameters",
    )
    .unsupported(&[""], "header forwarding"),
    flag("grpc-infer-thread-count", ANY_INT, "", "Number of threads for ModelInfer")
        .no_effect(OWN_THREADS),
    flag("grpc-stream-infer-thread-count", ANY_INT, "", "Number of threads for ModelStreamInfer")
        .no_effect(OWN_THREADS),
    flag(
        "grpc-infer-allocation-pool-size",
        ANY_INT,
        "",
        "Number of request objects kept for reuse",
    )
    .no_effect(NO_POOL),
    flag(
        "grpc-max-response-pool-size",
        ANY_INT,
        "",
        "Maximum number of queued responses per stream",
    )
    .no_effect("unread responses are limited by --max-unread-per-stream"),
    flag("grpc-use-ssl", Kind::Bool, "false", "Serve gRPC over TLS")
        .unsupported(&["false"], NO_TLS),
    // Triton enables TLS when this flag is given with any value, so "=false" is refused too.
    flag("grpc-use-ssl-mutual", Kind::Bool, "false", "Require a client certificate (mutual TLS)")
        .unsupported(&[], NO_TLS),
    flag("grpc-server-cert", Kind::Path("FILE"), "", "Server certificate, PEM")
        .unsupported(&[""], NO_TLS),
    flag("grpc-server-key", Kind::Path("FILE"), "", "Private key of the server certificate, PEM")
        .unsupported(&[""], NO_TLS),
    flag(
        "grpc-root-cert",
        Kind::Path("FILE"),
        "",
        "Root certificates for client certificates, PEM",
    )
    .unsupported(&[""], NO_TLS),
    flag(
        "grpc-infer-response-compression-level",
        Kind::Choice(&["none", "low", "medium", "high"]),
        "none",
        "Compression level of responses",
    )
    .unsupported(&["none"], "response compression that the client did not request"),
    flag(
        "grpc-keepalive-time",
        Kind::Count,
        "",
        "Interval of HTTP/2 keep-alive pings in milliseconds; by default none, see --tcp-keepalive-secs",
    ),
    flag(
        "grpc-keepalive-timeout",
        Kind::Count,
        "20000",
        "Timeout of an HTTP/2 keep-alive ping in milliseconds",
    ),
    flag(
        "grpc-keepalive-permit-without-calls",
        Kind::Bool,
        "false",
        "Send keepalive pings without active calls",
    )
    .warns(&["false"], NO_KEEPALIVE),
    flag(
        "grpc-http2-max-pings-without-data",
        Kind::Count,
        "2",
        "Maximum number of pings between two data frames",
    )
    .warns(&["2"], NO_KEEPALIVE),
    flag(
        "grpc-http2-min-recv-ping-interval-without-data",
        Kind::Count,
        "300000",
        "Minimum interval of client pings in milliseconds",
    )
    .warns(&["300000"], NO_KEEPALIVE),
    flag(
        "grpc-http2-max-ping-strikes",
        Kind::Count,
        "2",
        "Number of client pings above the limit before the connection is closed",
    )
    .warns(&["2"], NO_KEEPALIVE),
    flag(
        "grpc-max-connection-age",
        Kind::Count,
        "",
        "Maximum age of a gRPC connection in milliseconds; by default --max-connection-age-secs",
    ),
    flag(
        "grpc-max-connection-age-grace",
        Kind::Count,
        "",
        "Grace period in milliseconds for the calls of an aged connection; by default none",
    ),
    flag(
        "grpc-restricted-protocol",
        Kind::Text("APIS:KEY=VALUE"),
        "",
        "Restrict RPCs to requests with a header",
    )
    .repeats()
    .unsupported(&[], "restricted endpoints"),
];

const LIMITS: &[Flag] = &[
    flag(
        "max-request-memory",
        Kind::Size,
        "",
        "Memory that all requests and responses together may hold; by default half of the memory \
         that the process may use",
    ),
    flag(
        "max-unread-per-stream",
        Kind::Size,
        "16M",
        "Responses of one gRPC stream that its client has not read, in bytes. At the limit a \
         decoupled model waits, and no further requests of the stream are read",
    ),
    flag(
        "max-unread-per-connection",
        Kind::Size,
        "256M",
        "Responses of one connection that its client has not read, in bytes. At half of the limit \
         further calls of the connection wait, above it responses to earlier ones are replaced by \
         errors",
    ),
    flag(
        "unread-timeout-secs",
        POSITIVE,
        "30",
        "How long a model waits for a client that reads no response before its request fails",
    ),
    flag(
        "http-max-body-size",
        Kind::Size,
        "2147483647",
        "Maximum size of an HTTP request body as it is sent",
    ),
    flag(
        "grpc-max-message-size",
        Kind::Size,
        "2147483647",
        "Maximum size of a gRPC inference request as it is sent",
    ),
    flag(
        "grpc-max-expanded-size",
        Kind::Size,
        "256M",
        "Maximum size of a compressed gRPC inference request after decompression; over HTTP, \
         --http-max-input-size applies",
    ),
    flag(
        "decode-thread-count",
        POSITIVE,
        "",
        "Number of threads for heavy decoding and encoding: compression, JSON and other messages \
         that must be converted; by default one per CPU core less one",
    ),
];

const CONNECTIONS: &[Flag] = &[
    flag(
        "max-connections",
        BYTES,
        "",
        "Maximum number of connections over HTTP and gRPC, 0 for no limit; by default what the limit of open files \
         allows, less a reserve. At the limit, the connection that was idle longest is closed",
    ),
    flag(
        "request-header-timeout-secs",
        Kind::Count,
        "30",
        "Time limit in seconds for the head of a request, from its first byte; 0 for none",
    ),
    flag(
        "request-body-timeout-secs",
        Kind::Count,
        "30",
        "Time limit in seconds for the body of a request, extended by a second for each --request-body-min-rate \
         bytes that have arrived; 0 for none",
    ),
    flag(
        "request-body-min-rate",
        BYTES,
        "1024",
        "Minimum rate of a request body in bytes per second, after --request-body-timeout-secs; 0 never extends it",
    ),
    flag(
        "idle-timeout-secs",
        Kind::Count,
        "300",
        "Close connections after this time in seconds without a request, or when a client does not read its \
         response for so long; 0 for never",
    ),
    flag(
        "max-connection-age-secs",
        Kind::Count,
        "0",
        "End connections after this time in seconds, once their requests are complete; 0 for never",
    ),
    flag(
        "tcp-keepalive-secs",
        Kind::Count,
        "60",
        "Interval in seconds of TCP keep-alive probes, of which three without an answer close a connection; 0 for none",
    ),
];

const METRICS: &[Flag] = &[
    flag("allow-metrics", Kind::Bool, "true", "Serve Prometheus metrics"),
    flag(
        "metrics-address",
        Kind::Text("ADDRESS"),
        "",
        "Address of the metrics listener; by default that of --http-address",
    ),
    flag("metrics-port", PORT, "8002", "Port of the metrics listener; 0 selects a free port"),
    flag("allow-gpu-metrics", Kind::Bool, "true", "Export GPU metrics"),
    flag("allow-cpu-metrics", Kind::Bool, "true", "Export use and memory of the machine's CPUs"),
    flag(
        "metrics-interval-ms",
        Kind::Float,
        "2000",
        "Interval of GPU measurements in milliseconds",
    ),
    flag("metrics-config", Kind::Text("KEY=VALUE"), "", "Select latency metrics and their type")
        .repeats()
        .unsupported(&[], "metric selection"),
];

const BACKENDS: &[Flag] = &[
    flag(
        "backend-dir",
        Kind::Path("DIR"),
        "",
        "Directory to search for backend plugins; by default ../backends of the program",
    )
    .also(&["backend-directory"])
    .repeats(),
    flag(
        "backend-config",
        Kind::Text("[NAME,]KEY=VALUE"),
        "",
        "Setting of the backend NAME, or of all backends",
    )
    .repeats(),
    flag(
        "tf-allow-soft-placement",
        Kind::Bool,
        "",
        "Same as --backend-config=tensorflow,allow-soft-placement=…",
    ),
    flag(
        "tf-gpu-memory-fraction",
        Kind::Float,
        "",
        "Same as --backend-config=tensorflow,gpu-memory-fraction=…",
    ),
    flag(
        "tf-add-vgpu",
        Kind::Text("GPU;COUNT;MB"),
        "",
        "Split a GPU into virtual GPUs for TensorFlow",
    )
    .repeats()
    .unsupported(&[], "virtual GPUs for TensorFlow"),
    flag("platform-config-file", Kind::Path("FILE"), "", "Settings per platform")
        .unsupported(&[""], "platform configuration files (use --backend-config)"),
    flag("repoagent-directory", Kind::Path("DIR"), "", "Directory of repository agents")
        .no_effect("the server has no repository agents"),
];

const DEVICES: &[Flag] = &[
    flag(
        "pinned-memory-pool-byte-size",
        BYTES,
        "268435456",
        "Limit of the pinned memory, in bytes",
    ),
    flag(
        "cuda-memory-pool-byte-size",
        Kind::Text("GPU:BYTES"),
        "",
        "Free memory of a GPU that the server keeps for later requests, in bytes; default 67108864",
    )
    .repeats(),
    flag(
        "cuda-virtual-address-size",
        Kind::Text("GPU:BYTES"),
        "",
        "Virtual address space for growable state memory",
    )
    .repeats()
    .no_effect("the server has no growable state memory"),
    flag("buffer-manager-thread-count", ANY_INT, "", "Number of threads that copy tensors")
        .no_effect("instance threads copy their own tensors"),
    flag("enable-peer-access", Kind::Bool, "", "Enable peer access between GPUs")
        .no_effect("tensors are not copied between GPUs"),
    flag(
        "min-supported-compute-capability",
        Kind::Float,
        "0",
        "Ignore GPUs with a lower compute capability",
    ),
    flag(
        "model-load-gpu-limit",
        Kind::Text("GPU:FRACTION"),
        "",
        "Refuse model loads when a GPU's memory use is above the limit",
    )
    .repeats()
    .unsupported(&[], "a GPU memory limit for model loads"),
    flag(
        "host-policy",
        Kind::Text("NAME,KEY=VALUE"),
        "",
        "CPU cores and memory nodes of instances",
    )
    .repeats()
    .unsupported(&[], "host policies"),
    flag(
        "allow-client-shm",
        Kind::Bool,
        "false",
        "Allow v2 clients to register shared memory regions and to use them in requests; v1 clients \
         always may",
    ),
];

const SCHEDULING: &[Flag] = &[
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

const TRACING: &[Flag] = &[
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

const CLOUD: &[Flag] = &[
    flag("allow-sagemaker", Kind::Bool, "false", "Serve the SageMaker endpoints")
        .unsupported(&["false"], "the SageMaker frontend"),
    flag("sagemaker-port", PORT, "", "Port of the SageMaker frontend").no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-safe-port-range", Kind::Text("A-B"), "", "Ports that other frontends may use")
        .no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-thread-count", ANY_INT, "", "Number of threads of the SageMaker frontend")
        .no_effect(UNUSED_SAGEMAKER),
    flag("allow-vertex-ai", Kind::Bool, "false", "Serve the Vertex AI endpoints")
        .unsupported(&["false"], "the Vertex AI frontend"),
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

const OLDER: &[Flag] =
    &[flag("allow-profiling", Kind::Bool, "false", "Allow clients to start and stop a profiler")
        .unsupported(&["false"], "the profiler")];
