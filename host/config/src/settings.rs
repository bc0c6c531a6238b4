//! Settings of the server, as `build` makes them from flags.

use super::ProgramName;
use super::access_settings::AccessSettings;
use super::address::ListenAddress;
use super::backend_config::BackendConfig;
use super::cache_settings::CacheSettings;
use super::cors_origins::CorsOrigins;
use super::fairness_settings::FairnessSettings;
use super::header_pattern::HeaderPattern;
use super::rate_limit_settings::RateLimitSettings;
use super::restrictions::ApiRestrictions;
use super::tls_settings::TlsSettings;
use super::trace_settings::TraceConfig;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use trtserver_base::host_policy::HostPolicy;
use trtserver_base::stats::LatencySettings;

/// Settings of the server, checked and with defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerSettings {
    pub program: ProgramName,
    /// In v1 status and responses.
    pub server_id: String,
    /// In v2 metadata.
    pub server_name: String,
    /// Server version that clients see.
    pub server_version: String,
    /// The environment gives a TRTIS release before v1.13 as the server's version: the v1 status
    /// has the fields and, in JSON, the lowerCamelCase names of that time.
    pub before_v1_13: bool,
    pub exit_on_error: bool,
    /// Grace period for in-flight requests at shutdown.
    pub exit_timeout: Duration,
    /// Grace period for sequences that have not ended, within `exit_timeout`.
    pub exit_sequence_timeout: Duration,
    /// How long requests are accepted after SIGTERM, while the server is not ready.
    pub drain_delay: Duration,
    pub strict_readiness: bool,
    /// Which responses tell how busy the server is.
    pub load_reports: LoadReportMode,
    /// The wait in a queue that is still good.
    pub queue_wait_target: Duration,
    /// Requests that would wait too long are refused at once.
    pub refuse_late_requests: bool,
    /// v1 clients may start and stop the CUDA profiler.
    pub allow_profiling: bool,
    /// The models that strict readiness looks at; empty: all.
    pub ready_models: Vec<String>,
    pub log: LogSettings,
    /// Where a line is written for each request; `-` is standard output. `None`: nowhere.
    pub access_log: Option<PathBuf>,

    /// Directories and URLs of object stores: at least one, in the order given, without duplicates.
    /// Not checked for existence.
    pub model_repositories: Vec<PathBuf>,
    /// Directories of repositories may appear after the start; set by the environment.
    pub repositories_come_late: bool,
    /// Respond like releases 18.04 and 18.05, because their flag `--model_base_path` was used.
    pub emulate_18_04: bool,
    /// Cache of models from object stores; `None`: in the user's cache directory.
    pub model_cache_dir: Option<PathBuf>,
    /// Bytes of the cache; `None`: no limit.
    pub model_cache_size: Option<u64>,
    /// How long an object store may send nothing.
    pub store_timeout: Duration,
    /// The start line is one of TRTIS: configurations follow the rules of v1.x.
    pub trtis_rules: bool,
    pub strict_model_config: bool,
    /// A flag says that configurations must be complete, also those of bare repositories.
    pub strict_bare_models: bool,
    /// Name of the model of a bare repository.
    pub bare_model_name: Option<String>,
    /// The same, from the environment.
    pub inference_service: Option<String>,
    pub model_load_thread_count: usize,
    /// How often the opening of a version is tried again.
    pub model_load_retries: u64,
    /// Use `configs/NAME.pbtxt` of the models that have it.
    pub model_config_name: Option<String>,
    pub model_namespacing: bool,
    /// `None`: derived from the limits of the system.
    pub max_instances: Option<usize>,
    pub max_instances_per_model: usize,
    /// Bytes of labels, initial states and warm-up data of one model.
    pub max_load_memory: u64,
    /// `None`: no limit.
    pub warmup_timeout: Option<Duration>,
    pub control_mode: ControlMode,
    /// Directories to which links of models may lead, beside the repositories.
    pub model_link_dirs: Vec<PathBuf>,
    /// Load requests may bring models that can run code.
    pub allow_uploaded_code: bool,
    /// Interval between two looks at the repository, in poll mode.
    pub poll_interval: Duration,
    /// Files must have been unchanged for this time before they are loaded.
    pub settle_time: Duration,
    /// Models loaded at start in explicit mode; `*` alone stands for all.
    pub load_models: Vec<String>,

    /// The ports for requests and metrics open when the models are loaded, not before.
    pub listen_when_ready: bool,
    pub allow_http: bool,
    pub http_addresses: Vec<ListenAddress>,
    /// 0 selects a free port for each address, here and below.
    pub http_port: u16,
    /// Other processes may listen on the port, too (SO_REUSEPORT).
    pub reuse_http_port: bool,
    /// Addresses of the additional listener that serves only the health endpoints; empty = no
    /// listener.
    pub health_addresses: Vec<ListenAddress>,
    pub http_health_port: Option<u16>,
    /// HTTP serves the health endpoints.
    pub http_health: bool,
    pub http_max_input_size: u64,
    /// The status page is served, and the last lines of the log are kept for it.
    pub ui: bool,
    /// Whose pages may call the HTTP listener from a browser; `None`: its own page only.
    pub cors_origins: Option<CorsOrigins>,
    /// Headers that are forwarded to models as parameters.
    pub http_header_forward: Option<HeaderPattern>,
    pub grpc_header_forward: Option<HeaderPattern>,
    /// Endpoints that require a header; `None` if none does.
    pub http_restricted: Option<ApiRestrictions>,
    pub grpc_restricted: Option<ApiRestrictions>,
    /// Level of flate2 at which inference responses are compressed for clients that accept it.
    pub grpc_compression: Option<u32>,

    pub allow_grpc: bool,
    pub grpc_addresses: Vec<ListenAddress>,
    pub grpc_port: u16,
    pub reuse_grpc_port: bool,

    /// Bytes that requests and responses may hold; `None`: a share of the memory that the process
    /// may use.
    pub max_request_memory: Option<u64>,
    pub unread: UnreadLimits,
    /// Limits of a request body as it is sent.
    pub http_max_body_size: u64,
    pub grpc_max_message_size: usize,
    /// Limit of a compressed gRPC message after decompression.
    pub grpc_max_expanded_size: usize,
    /// `None`: one per CPU core.
    pub decode_thread_count: Option<usize>,

    pub connections: ConnectionSettings,
    pub tls: TlsSettings,
    pub access: AccessSettings,
    pub trace: TraceConfig,

    /// `None` without a response cache.
    pub response_cache: Option<CacheSettings>,

    pub allow_metrics: bool,
    pub metrics_addresses: Vec<ListenAddress>,
    pub metrics_port: u16,
    /// The HTTP port serves the metrics page, too.
    pub http_metrics: bool,
    pub allow_gpu_metrics: bool,
    pub allow_cpu_metrics: bool,
    pub metrics_interval: Duration,
    pub latency_metrics: LatencySettings,

    /// Directories to search for plugins; empty if none was given.
    pub backend_dirs: Vec<PathBuf>,
    /// Settings by backend name; those for all backends under the empty name.
    pub backend_config: BackendConfig,
    /// Settings by platform, in the form of TRTIS; `backend_config` takes precedence.
    pub platform_config_file: Option<PathBuf>,
    /// GPUs with a lower compute capability are not used.
    pub min_compute_capability: f64,
    /// v2 clients may register shared memory; v1 clients always may.
    pub allow_client_shm: bool,
    /// Use no GPU; set by the environment.
    pub cpu_only: bool,
    /// Bytes of pinned memory.
    pub pinned_pool: u64,
    /// Bytes of free memory that the pool of a GPU keeps, by ordinal; default for the others.
    pub gpu_pools: BTreeMap<i32, u64>,
    /// Share of a GPU's memory that may be in use when an instance is opened there, by ordinal.
    pub gpu_load_limits: BTreeMap<i32, f64>,
    /// By name.
    pub host_policies: BTreeMap<String, HostPolicy>,
    /// `None`: instances execute as soon as they are idle.
    pub rate_limit: Option<RateLimitSettings>,
    /// `None`: requests are served in the order of arrival, whoever sends them.
    pub fairness: Option<FairnessSettings>,
}

/// Limits of connections. `None` = no limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConnectionSettings {
    pub max: MaxConnections,
    /// gRPC calls of all connections together.
    pub max_open_calls: Option<usize>,
    /// For the first message of a gRPC stream.
    pub first_message_timeout: Option<Duration>,
    pub header_timeout: Option<Duration>,
    pub body_timeout: Option<Duration>,
    /// Bytes a second.
    pub body_min_rate: u64,
    pub idle_timeout: Option<Duration>,
    pub max_age: Option<Duration>,
    /// For gRPC, in place of `max_age`.
    pub grpc_max_age: Option<Duration>,
    pub grpc_max_age_grace: Option<Duration>,
    pub tcp_keepalive: Option<Duration>,
    pub grpc_keepalive_time: Option<Duration>,
    pub grpc_keepalive_timeout: Duration,
}

/// How many connections may be open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxConnections {
    /// The number that the limit of open files allows.
    Derived,
    Unlimited,
    Limited(usize),
}

/// Settings of the log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    pub info: bool,
    pub warning: bool,
    pub error: bool,
    pub verbose: u32,
    pub format: LogFormat,
    /// `None`: standard error.
    pub file: Option<PathBuf>,
    /// Escape control characters in messages, so that a message cannot imitate a log line. False
    /// only if the environment disables it.
    pub escape: bool,
}

impl LogSettings {
    /// The most verbose level that is printed, as a number of `trtserver_plugin_api`.
    pub fn plugin_level(&self) -> u32 {
        match self {
            Self { verbose: 2.., .. } => 5,
            Self { verbose: 1, .. } => 4,
            Self { info: true, .. } => 3,
            Self { warning: true, .. } => 2,
            Self { error: true, .. } => 1,
            _ => 0,
        }
    }
}

impl Default for LogSettings {
    fn default() -> LogSettings {
        LogSettings {
            info: true,
            warning: true,
            error: true,
            verbose: 0,
            format: LogFormat::Default,
            file: None,
            escape: true,
        }
    }
}

/// Which responses to inference tell how busy the server is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoadReportMode {
    Off,
    /// Those whose request asks for it.
    #[default]
    OnRequest,
    Always,
}

/// When models are loaded and unloaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControlMode {
    /// At start only.
    None,
    /// Models are loaded and unloaded when files change.
    Poll,
    /// By request.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogFormat {
    Default,
    Iso8601,
    Json,
}

/// Limits of the responses that a client has not read, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreadLimits {
    pub per_stream: usize,
    pub per_connection: usize,
    /// A backend that waits for a client which reads nothing for this time gets an error.
    pub timeout: Duration,
}
