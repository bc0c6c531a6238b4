//! Every flag there is: names, kind, default, help, and what giving it does.
//!
//! Parsing, `--help`, the keys of a `--config` file and the refusals at start all read this table,
//! so adding a flag is one entry here and one line in `config`.

/// One flag. Names are without the leading dashes.
#[derive(Debug)]
pub struct Flag {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub kind: Kind,
    /// What it means when not given; empty when that is "nothing".
    pub default: &'static str,
    pub repeatable: bool,
    pub help: &'static str,
    pub status: Status,
}

/// What kind of value a flag takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// true or false; the flag alone means true.
    Bool,
    /// A whole number within bounds.
    Int {
        min: i64,
        max: i64,
    },
    /// A whole number; a negative one counts as 0.
    Count,
    /// A count, or true (1) or false (0).
    Verbosity,
    Float,
    /// Free text, with the word the help shows for it.
    Text(&'static str),
    Path(&'static str),
    Choice(&'static [&'static str]),
}

/// What giving the flag does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Status {
    Effective,
    /// Accepted; this server has no use for it, for this reason. Said once at start.
    NoEffect(&'static str),
    /// Accepted with a warning, unless the value is one of `quiet`.
    Warns {
        quiet: &'static [&'static str],
        why: &'static str,
    },
    /// Refused, unless the value is one of `off`: doing something else in silence would be worse.
    NotYet {
        off: &'static [&'static str],
        missing: &'static str,
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
    const fn no_effect(mut self, why: &'static str) -> Flag {
        self.status = Status::NoEffect(why);
        self
    }
    const fn warns(mut self, quiet: &'static [&'static str], why: &'static str) -> Flag {
        self.status = Status::Warns { quiet, why };
        self
    }
    const fn not_yet(mut self, off: &'static [&'static str], missing: &'static str) -> Flag {
        self.status = Status::NotYet { off, missing };
        self
    }
}

const fn flag(name: &'static str, kind: Kind, default: &'static str, help: &'static str) -> Flag {
    Flag { name, aliases: &[], kind, default, repeatable: false, help, status: Status::Effective }
}

/// The entry a name or an alias stands for.
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

const OWN_THREADS: &str = "the number of threads follows the processors";
const NO_POOL: &str = "no such pool is kept";
const NO_TLS: &str = "gRPC over TLS";
const NO_POLL: &str = "polling of the model repository";
const NO_TRACE: &str = "request tracing";
const NO_LIMITER: &str = "the rate limiter";
const NO_CACHE: &str = "the response cache";
const NO_KEEPALIVE: &str = "connections are kept alive on the defaults of the HTTP/2 library";
const UNUSED_TRACE: &str = "it only tunes request tracing, which is not there yet";
const UNUSED_SAGEMAKER: &str = "it only tunes --allow-sagemaker, which is not there yet";
const UNUSED_VERTEX: &str = "it only tunes --allow-vertex-ai, which is not there yet";
const READ_ONCE: &str = "the repository is not polled: changes made to it after the start are picked up by request \
                         alone, see --model-control-mode";

pub const SECTIONS: &[(&str, &[Flag])] = &[
    ("General", GENERAL),
    ("Logging", LOGGING),
    ("Model repository", REPOSITORY),
    ("HTTP", HTTP),
    ("gRPC", GRPC),
    ("Metrics", METRICS),
    ("Plugins", PLUGINS),
    ("Memory and devices", DEVICES),
    ("Scheduling and cache", SCHEDULING),
    ("Tracing", TRACING),
    ("Cloud front ends", CLOUD),
    ("From older releases", OLDER),
];

const GENERAL: &[Flag] = &[
    flag(
        "config",
        Kind::Path("FILE"),
        "",
        "Read flags from a TOML file; its keys are the names listed here, lists stand for \
         repeated flags, and the command line wins over it",
    ),
    flag("id", Kind::Text("NAME"), "inference:0", "The name this server reports of itself"),
    flag("exit-on-error", Kind::Bool, "true", "Exit when the server cannot be set up completely"),
    flag(
        "exit-timeout-secs",
        Kind::Count,
        "30",
        "How long to wait at shutdown for requests that are still running",
    ),
    flag(
        "strict-readiness",
        Kind::Bool,
        "true",
        "Report the server ready only while every version of every model is",
    ),
    flag("api-version", Kind::Int { min: 1, max: 2 }, "", "The protocol generation to serve")
        .no_effect("both generations are always served"),
];

const LOGGING: &[Flag] = &[
    flag("log-info", Kind::Bool, "true", "Log what happens"),
    flag("log-warning", Kind::Bool, "true", "Log what looks wrong"),
    flag("log-error", Kind::Bool, "true", "Log what failed"),
    flag(
        "log-verbose",
        Kind::Verbosity,
        "0",
        "Log details: 1 steps, 2 each request, 3 and 4 also those of the libraries",
    ),
    flag(
        "log-format",
        Kind::Choice(&["default", "ISO8601", "json"]),
        "default",
        "The form of a log line",
    ),
    flag("log-json", Kind::Bool, "false", "The same as --log-format=json"),
    flag("log-file", Kind::Path("FILE"), "", "Append the log to a file instead of standard error"),
];

const REPOSITORY: &[Flag] = &[
    flag(
        "model-repository",
        Kind::Path("DIR"),
        "",
        "Directory of models to serve; required, and may be given more than once",
    )
    .also(&["model-store", "modelstore"])
    .repeats(),
    flag(
        "model_base_path",
        Kind::Path("DIR"),
        "",
        "As --model-repository, and answer as the releases that had this name did",
    )
    .also(&["model-base-path"])
    .repeats(),
    flag(
        "strict-model-config",
        Kind::Bool,
        "true",
        "Require a complete configuration file of every model; false fills in what is missing",
    ),
    flag(
        "disable-auto-complete-config",
        Kind::Bool,
        "false",
        "The same as --strict-model-config=true",
    ),
    flag("model-load-thread-count", POSITIVE, "4", "How many models are loaded at the same time"),
    flag("model-load-retry-count", Kind::Count, "0", "How often a failed load is tried again")
        .not_yet(&["0"], "trying a failed load again"),
    flag(
        "model-control-mode",
        Kind::Choice(&["none", "poll", "explicit"]),
        "none",
        "none: models are loaded once, at start; explicit: on request, see --load-model",
    )
    .not_yet(&["none", "explicit"], NO_POLL),
    flag(
        "allow-model-control",
        Kind::Bool,
        "false",
        "As --model-control-mode=explicit; needs --allow-poll-model-repository=false",
    ),
    flag(
        "load-model",
        Kind::Text("NAME"),
        "",
        "A model to load at start in explicit mode, * for all; may be given more than once",
    )
    .repeats(),
    flag("allow-poll-model-repository", Kind::Bool, "", "Look for changes of the repository")
        .also(&["allow-model-load-unload"])
        .warns(&["false"], READ_ONCE),
    flag("repository-poll-secs", Kind::Count, "", "Seconds between two looks at the repository")
        .also(&["file-system-poll-secs"])
        .warns(&["0"], READ_ONCE),
    flag(
        "model-config-name",
        Kind::Text("NAME"),
        "",
        "Use configs/NAME.pbtxt of a model as its configuration",
    )
    .not_yet(&[""], "configurations by name"),
    flag("model-namespacing", Kind::Bool, "false", "Let two repositories have models of one name")
        .not_yet(&["false"], "namespaces of models"),
];

const HTTP: &[Flag] = &[
    flag("allow-http", Kind::Bool, "true", "Serve HTTP"),
    flag("http-address", Kind::Text("ADDRESS"), "0.0.0.0", "The address HTTP is served on"),
    flag("http-port", PORT, "8000", "The port HTTP is served on; 0 takes any free one"),
    flag(
        "http-health-port",
        PORT,
        "",
        "Serve the health endpoint on a port of its own; when not given it is on the HTTP port",
    ),
    flag(
        "http-max-input-size",
        Kind::Int { min: 1, max: i64::MAX },
        "67108864",
        "The largest request body accepted, in bytes",
    ),
    flag("http-thread-count", ANY_INT, "", "Threads that serve HTTP").no_effect(OWN_THREADS),
    flag("reuse-http-port", Kind::Bool, "false", "Share the HTTP port with other processes")
        .not_yet(&["false"], "sharing a port between processes"),
    flag(
        "http-header-forward-pattern",
        Kind::Text("REGEX"),
        "",
        "Request headers to hand to models as parameters",
    )
    .not_yet(&[""], "forwarding of headers"),
    flag("http-restricted-api", Kind::Text("APIS:KEY=VALUE"), "", "Endpoints that need a header")
        .repeats()
        .not_yet(&[], "restricted endpoints"),
];

const GRPC: &[Flag] = &[
    flag("allow-grpc", Kind::Bool, "true", "Serve gRPC"),
    flag("grpc-address", Kind::Text("ADDRESS"), "0.0.0.0", "The address gRPC is served on"),
    flag("grpc-port", PORT, "8001", "The port gRPC is served on; 0 takes any free one"),
    flag("reuse-grpc-port", Kind::Bool, "false", "Share the gRPC port with other processes")
        .not_yet(&["false"], "sharing a port between processes"),
    flag(
        "grpc-header-forward-pattern",
        Kind::Text("REGEX"),
        "",
        "Request metadata to hand to models as parameters",
    )
    .not_yet(&[""], "forwarding of headers"),
    flag("grpc-infer-thread-count", ANY_INT, "", "Threads that serve inference calls")
        .no_effect(OWN_THREADS),
    flag("grpc-stream-infer-thread-count", ANY_INT, "", "Threads that serve inference streams")
        .no_effect(OWN_THREADS),
    flag("grpc-infer-allocation-pool-size", ANY_INT, "", "Request states kept for reuse")
        .no_effect(NO_POOL),
    flag("grpc-max-response-pool-size", ANY_INT, "", "Responses one stream may have waiting")
        .no_effect("a stream is slowed down to the speed of its reader"),
    flag("grpc-use-ssl", Kind::Bool, "false", "Serve gRPC over TLS").not_yet(&["false"], NO_TLS),
    // The original turns TLS on when this is given at all, so "=false" is not off.
    flag("grpc-use-ssl-mutual", Kind::Bool, "false", "Ask gRPC clients for a certificate")
        .not_yet(&[], NO_TLS),
    flag("grpc-server-cert", Kind::Path("FILE"), "", "Certificate of the server, PEM")
        .not_yet(&[""], NO_TLS),
    flag("grpc-server-key", Kind::Path("FILE"), "", "Key of that certificate, PEM")
        .not_yet(&[""], NO_TLS),
    flag("grpc-root-cert", Kind::Path("FILE"), "", "Certificates that sign clients', PEM")
        .not_yet(&[""], NO_TLS),
    flag(
        "grpc-infer-response-compression-level",
        Kind::Choice(&["none", "low", "medium", "high"]),
        "none",
        "How hard responses are compressed",
    )
    .not_yet(&["none"], "compressing responses unasked"),
    flag("grpc-keepalive-time", Kind::Count, "7200000", "Milliseconds between two pings")
        .warns(&["7200000"], NO_KEEPALIVE),
    flag("grpc-keepalive-timeout", Kind::Count, "20000", "Milliseconds a ping may take")
        .warns(&["20000"], NO_KEEPALIVE),
    flag("grpc-keepalive-permit-without-calls", Kind::Bool, "false", "Ping when no call runs")
        .warns(&["false"], NO_KEEPALIVE),
    flag("grpc-http2-max-pings-without-data", Kind::Count, "2", "Pings between two data frames")
        .warns(&["2"], NO_KEEPALIVE),
    flag(
        "grpc-http2-min-recv-ping-interval-without-data",
        Kind::Count,
        "300000",
        "Milliseconds a client must leave between two pings",
    )
    .warns(&["300000"], NO_KEEPALIVE),
    flag("grpc-http2-max-ping-strikes", Kind::Count, "2", "Pings too many that are forgiven")
        .warns(&["2"], NO_KEEPALIVE),
    flag("grpc-max-connection-age", Kind::Count, "", "Milliseconds a connection may live")
        .not_yet(&[], "an age limit of connections"),
    flag("grpc-max-connection-age-grace", Kind::Count, "", "Milliseconds more for running calls")
        .not_yet(&[], "an age limit of connections"),
    flag("grpc-restricted-protocol", Kind::Text("APIS:KEY=VALUE"), "", "Calls that need a header")
        .repeats()
        .not_yet(&[], "restricted endpoints"),
];

const METRICS: &[Flag] = &[
    flag("allow-metrics", Kind::Bool, "true", "Serve metrics"),
    flag(
        "metrics-address",
        Kind::Text("ADDRESS"),
        "",
        "The address metrics are served on; when not given it is that of HTTP",
    ),
    flag("metrics-port", PORT, "8002", "The port metrics are served on; 0 takes any free one"),
    flag("allow-gpu-metrics", Kind::Bool, "true", "Include what GPUs report of themselves"),
    flag("allow-cpu-metrics", Kind::Bool, "", "Include processor and memory use")
        .no_effect("no processor metrics are collected"),
    flag("metrics-interval-ms", Kind::Float, "2000", "Milliseconds between two looks at a GPU"),
    flag("metrics-config", Kind::Text("KEY=VALUE"), "", "Choose which latencies are kept, and how")
        .repeats()
        .not_yet(&[], "choosing metric families"),
];

const PLUGINS: &[Flag] = &[
    flag(
        "backend-dir",
        Kind::Path("DIR"),
        "",
        "Directory to look for plugins in; may be given more than once",
    )
    .also(&["backend-directory"])
    .repeats(),
    flag(
        "backend-config",
        Kind::Text("[NAME,]KEY=VALUE"),
        "",
        "A setting for the plugin NAME, or for all plugins; may be given more than once",
    )
    .repeats(),
    flag(
        "tf-allow-soft-placement",
        Kind::Bool,
        "",
        "The same as --backend-config=tensorflow,allow-soft-placement=…",
    ),
    flag(
        "tf-gpu-memory-fraction",
        Kind::Float,
        "",
        "The same as --backend-config=tensorflow,gpu-memory-fraction=…",
    ),
    flag("tf-add-vgpu", Kind::Text("GPU;COUNT;MB"), "", "Split a GPU for TensorFlow")
        .repeats()
        .not_yet(&[], "virtual GPUs of TensorFlow"),
    flag("platform-config-file", Kind::Path("FILE"), "", "Settings of each platform's adapter")
        .not_yet(&[""], "platform configuration files (see --backend-config)"),
    flag("repoagent-directory", Kind::Path("DIR"), "", "Directory of repository agents")
        .no_effect("there are no repository agents"),
];

const DEVICES: &[Flag] = &[
    flag("pinned-memory-pool-byte-size", BYTES, "", "Bytes of pinned host memory kept for copies")
        .no_effect(NO_POOL),
    flag("cuda-memory-pool-byte-size", Kind::Text("GPU:BYTES"), "", "Bytes of GPU memory kept")
        .repeats()
        .no_effect(NO_POOL),
    flag(
        "cuda-virtual-address-size",
        Kind::Text("GPU:BYTES"),
        "",
        "Address space for growing state",
    )
    .repeats()
    .no_effect("no state grows in GPU memory"),
    flag("buffer-manager-thread-count", ANY_INT, "", "Threads that copy tensors")
        .no_effect("each instance copies its own tensors"),
    flag("enable-peer-access", Kind::Bool, "", "Let GPUs read each other's memory")
        .no_effect("no tensor moves between GPUs"),
    flag("min-supported-compute-capability", Kind::Float, "0", "Leave out older GPUs")
        .not_yet(&["0"], "leaving GPUs out by their age"),
    flag("model-load-gpu-limit", Kind::Text("GPU:FRACTION"), "", "Refuse loads on a full GPU")
        .repeats()
        .not_yet(&[], "a limit of GPU memory for loading"),
    flag("host-policy", Kind::Text("NAME,KEY=VALUE"), "", "Processors and memory of an instance")
        .repeats()
        .not_yet(&[], "host policies"),
    flag("allow-client-shm", Kind::Bool, "false", "Let clients pass tensors in shared memory")
        .not_yet(&["false"], "shared memory of clients"),
];

const SCHEDULING: &[Flag] = &[
    flag("rate-limit", Kind::Choice(&["off", "execution_count"]), "off", "Limit executions")
        .not_yet(&["off"], NO_LIMITER),
    flag("rate-limit-resource", Kind::Text("NAME:COUNT[:DEVICE]"), "", "A resource to share out")
        .repeats()
        .not_yet(&[], NO_LIMITER),
    flag("cache-config", Kind::Text("NAME,KEY=VALUE"), "", "Keep responses, and where")
        .repeats()
        .not_yet(&[], NO_CACHE),
    flag("cache-directory", Kind::Path("DIR"), "", "Directory of cache implementations")
        .no_effect("there are none to load"),
    flag("response-cache-byte-size", BYTES, "0", "Bytes of responses to keep")
        .not_yet(&["0"], NO_CACHE),
];

const TRACING: &[Flag] = &[
    flag("trace-config", Kind::Text("[MODE,]KEY=VALUE"), "", "What to trace, and where to")
        .repeats()
        .not_yet(&["level=OFF"], NO_TRACE),
    flag(
        "trace-level",
        Kind::Choice(&["OFF", "MIN", "MAX", "TIMESTAMPS", "TENSORS"]),
        "OFF",
        "How much to trace",
    )
    .repeats()
    .not_yet(&["OFF"], NO_TRACE),
    flag("trace-file", Kind::Path("FILE"), "", "File for traces").not_yet(&[""], NO_TRACE),
    flag("trace-rate", ANY_INT, "", "Trace one request in so many").no_effect(UNUSED_TRACE),
    flag("trace-count", ANY_INT, "", "Stop after so many traces").no_effect(UNUSED_TRACE),
    flag("trace-log-frequency", ANY_INT, "", "Traces in one file").no_effect(UNUSED_TRACE),
];

const CLOUD: &[Flag] = &[
    flag("allow-sagemaker", Kind::Bool, "false", "Serve the endpoints SageMaker calls")
        .not_yet(&["false"], "the SageMaker front end"),
    flag("sagemaker-port", PORT, "", "The port of the SageMaker front end")
        .no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-safe-port-range", Kind::Text("A-B"), "", "Ports the other front ends may have")
        .no_effect(UNUSED_SAGEMAKER),
    flag("sagemaker-thread-count", ANY_INT, "", "Threads of the SageMaker front end")
        .no_effect(UNUSED_SAGEMAKER),
    flag("allow-vertex-ai", Kind::Bool, "false", "Serve the endpoints Vertex AI calls")
        .not_yet(&["false"], "the Vertex AI front end"),
    flag("vertex-ai-port", PORT, "", "The port of the Vertex AI front end")
        .no_effect(UNUSED_VERTEX),
    flag("vertex-ai-thread-count", ANY_INT, "", "Threads of the Vertex AI front end")
        .no_effect(UNUSED_VERTEX),
    flag("vertex-ai-default-model", Kind::Text("NAME"), "", "The model Vertex AI means")
        .no_effect(UNUSED_VERTEX),
];

const OLDER: &[Flag] =
    &[flag("allow-profiling", Kind::Bool, "false", "Let clients start and stop a profiler")
        .not_yet(&["false"], "the profiler")];
