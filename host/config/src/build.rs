//! Settings from the values of flags.

use super::access_settings::{AccessSettings, ControlAddress, access_settings};
use super::address::{grpc_addresses_beside, parse_addresses};
use super::backend_config::backend_config;
use super::cache_settings::cache_settings;
use super::cors_origins::CorsOrigins;
use super::device_flags::{gpu_load_limits, gpu_pools, host_policies};
use super::fairness_settings::fairness_settings;
use super::header_pattern::HeaderPattern;
use super::metrics_config::latency_metrics;
use super::rate_limit_settings::rate_limit_settings;
use super::restrictions::ApiRestrictions;
use super::tls_settings::tls_settings;
use super::trace_settings::trace_config;
use super::values::FlagValues;
use super::{
    ApiGroup, ConnectionSettings, ControlMode, ListenAddress, LoadReportMode, LogFormat,
    LogSettings, MaxConnections, ProgramName, ServerSettings, UnreadLimits,
};
use crate::cli::{FlagOrigin, GivenFlags};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use trtserver_base::disk::{is_entry, is_ignored};

pub fn build_settings(
    flags: &GivenFlags,
    v: &FlagValues,
    program: ProgramName,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<ServerSettings, String> {
    let model_repositories = model_repositories(flags, v);
    let http_addresses = parse_addresses(v, "http-address")?;
    let metrics_addresses = match flags.get("metrics-address") {
        Some(_) => parse_addresses(v, "metrics-address")?,
        None => grpc_addresses_beside(&http_addresses),
    };
    let allow_http = v.bool("allow-http")?;
    let (http_port, grpc_port) = (read_port(v, "http-port")?, read_port(v, "grpc-port")?);
    let health_flag: Option<i64> = v.optional_number("http-health-port")?;
    let (health_addresses, http_health_port) =
        health_settings(flags, v, &http_addresses, http_port)?;
    let set = |name: &str| env(name).is_some();
    let (http_restricted, grpc_restricted) = (
        parse_restrictions("http-restricted-api", "api", "", v)?,
        parse_restrictions("grpc-restricted-protocol", "protocol", "triton-grpc-protocol-", v)?,
    );
    let grpc_addresses = parse_addresses(v, "grpc-address")?;
    let allow_grpc = v.bool("allow-grpc")? && grpc_port.is_some();
    let access = access_settings(flags, v)?;
    let allow_uploaded_code = match flags.get("allow-uploaded-code") {
        Some(_) => v.bool("allow-uploaded-code")?,
        None => is_control_private(&access).unwrap_or_else(|| {
            let http = allow_http && http_port.is_some();
            are_loads_private(http, &http_addresses, http_restricted.as_ref())
                && are_loads_private(allow_grpc, &grpc_addresses, grpc_restricted.as_ref())
        }),
    };
    let release = env("TENSORRT_SERVER_VERSION").filter(|version| !version.is_empty());
    Ok(ServerSettings {
        program,
        server_id: v.texts("id").pop().unwrap_or_else(|| "inference:0".to_owned()),
        server_name: v.texts("id").pop().unwrap_or_else(|| "triton".to_owned()),
        before_v1_13: release.as_deref().is_some_and(is_before_1_13),
        server_version: release.unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        exit_on_error: v.bool("exit-on-error")?,
        exit_timeout: Duration::from_secs(v.number("exit-timeout-secs")?),
        exit_sequence_timeout: Duration::from_secs(v.number("exit-sequence-timeout-secs")?),
        drain_delay: Duration::from_secs(v.number("drain-delay-secs")?),
        strict_readiness: v.bool("strict-readiness")?,
        load_reports: load_report_mode(v)?,
        queue_wait_target: Duration::from_millis(v.number("queue-wait-target-ms")?),
        refuse_late_requests: v.bool("refuse-late-requests")?,
        allow_profiling: v.bool("allow-profiling")?,
        ready_models: ready_models(flags, v)?,
        log: log_settings(flags, v, env)?,
        access_log: v.paths("access-log").pop().filter(|path| !path.as_os_str().is_empty()),
        model_repositories: without_duplicates(model_repositories),
        repositories_come_late: env("MODEL_INIT_MODE").as_deref() == Some("async"),
        model_cache_dir: v
            .paths("model-cache-dir")
            .pop()
            .filter(|path| !path.as_os_str().is_empty()),
        model_cache_size: v.optional_number("model-cache-size")?,
        store_timeout: Duration::from_secs(v.number("store-timeout-secs")?),
        emulate_18_04: flags.get("model_base_path").is_some(),
        trtis_rules: is_trtis_start_line(flags, program),
        strict_model_config: strict_model_config(flags, v, program)?,
        strict_bare_models: strict_bare_models(flags, v)?,
        bare_model_name: bare_model_name(v)?,
        inference_service: env("INFERENCE_SERVICE_NAME").filter(|name| !name.is_empty()),
        model_load_thread_count: v.number("model-load-thread-count")?,
        model_load_retries: v.number("model-load-retry-count")?,
        model_config_name: model_config_name(v)?,
        model_namespacing: v.bool("model-namespacing")?,
        max_instances: v.optional_number("max-instances")?,
        max_instances_per_model: v.number("max-instances-per-model")?,
        max_load_memory: v.number("max-load-memory")?,
        warmup_timeout: v.seconds("warmup-timeout-secs")?,
        control_mode: control_mode(flags, v)?,
        model_link_dirs: without_duplicates(v.paths("model-link-dir")),
        allow_uploaded_code,
        poll_interval: Duration::from_secs(poll_secs(v)?),
        settle_time: v.decimal_seconds("repository-settle-secs")?,
        load_models: v.texts("load-model"),
        listen_when_ready: match flags.get("listen-when-ready") {
            Some(_) => v.bool("listen-when-ready")?,
            // Triton opens its ports when its models are loaded.
            None => program == ProgramName::Tritonserver,
        },
        allow_http: allow_http && http_port.is_some(),
        http_addresses,
        http_port: http_port.unwrap_or_default(),
        reuse_http_port: v.bool("reuse-http-port")?,
        health_addresses: if allow_http { health_addresses } else { Vec::new() },
        http_health_port: http_health_port.filter(|_| allow_http),
        http_health: health_flag.is_none_or(|port| port >= 0),
        http_max_input_size: v.number("http-max-input-size")?,
        http_header_forward: header_forward("http-header-forward-pattern", v)?,
        grpc_header_forward: header_forward("grpc-header-forward-pattern", v)?,
        http_restricted,
        grpc_restricted,
        grpc_compression: match v.text("grpc-infer-response-compression-level")?.as_str() {
            "low" => Some(1),
            "medium" => Some(6),
            "high" => Some(9),
            _ => None,
        },
        allow_grpc,
        grpc_addresses,
        grpc_port: grpc_port.unwrap_or_default(),
        reuse_grpc_port: v.bool("reuse-grpc-port")?,
        max_request_memory: v.optional_number("max-request-memory")?,
        unread: UnreadLimits {
            per_stream: v.number("max-unread-per-stream")?,
            per_connection: v.number("max-unread-per-connection")?,
            timeout: Duration::from_secs(v.number("unread-timeout-secs")?),
        },
        ui: v.bool("ui")?,
        cors_origins: CorsOrigins::parse(&v.texts("http-cors-origin"))?,
        http_max_body_size: v.number("http-max-body-size")?,
        grpc_max_message_size: v.number("grpc-max-message-size")?,
        grpc_max_expanded_size: v.number("grpc-max-expanded-size")?,
        decode_thread_count: v.optional_number("decode-thread-count")?,
        connections: connection_settings(v)?,
        tls: tls_settings(flags, v)?,
        access,
        trace: trace_config(v)?,
        response_cache: cache_settings(flags, v)?,
        allow_metrics: v.bool("allow-metrics")?,
        metrics_addresses,
        metrics_port: v.number("metrics-port")?,
        http_metrics: v.bool("http-metrics")?,
        allow_gpu_metrics: v.bool("allow-gpu-metrics")?,
        allow_cpu_metrics: v.bool("allow-cpu-metrics")?,
        metrics_interval: v.milliseconds("metrics-interval-ms")?,
        latency_metrics: latency_metrics(flags, v)?,
        backend_dirs: without_duplicates(v.paths("backend-dir")),
        backend_config: backend_config(flags, v)?,
        platform_config_file: v
            .paths("platform-config-file")
            .pop()
            .filter(|path| !path.as_os_str().is_empty()),
        min_compute_capability: v.decimal("min-supported-compute-capability")?,
        allow_client_shm: v.bool("allow-client-shm")?,
        pinned_pool: v.number("pinned-memory-pool-byte-size")?,
        gpu_pools: gpu_pools(flags, v)?,
        gpu_load_limits: gpu_load_limits(flags, v)?,
        host_policies: host_policies(flags, v)?,
        rate_limit: rate_limit_settings(v)?,
        fairness: fairness_settings(v)?,
        cpu_only: set("TENSORRT_SERVER_CPU_ONLY") || set("TRITON_SERVER_CPU_ONLY"),
    })
}

/// Whether no other machine can send load requests to these addresses, or only one that has the
/// key.
fn are_loads_private(
    served: bool,
    addresses: &[ListenAddress],
    restricted: Option<&ApiRestrictions>,
) -> bool {
    let has_key =
        restricted.is_some_and(|groups| groups.for_group(ApiGroup::ModelRepository).is_some());
    !served || has_key || addresses.iter().all(ListenAddress::is_local)
}

/// Whether no other machine can send load requests to the control listeners; `None` without one.
fn is_control_private(access: &AccessSettings) -> Option<bool> {
    let listeners = [&access.control, &access.control_grpc];
    let is_local = |address: &ListenAddress| address.is_local();
    access
        .has_control_listener()
        .then(|| listeners.into_iter().flat_map(ControlAddress::list).all(is_local))
}

fn header_forward(flag: &str, v: &FlagValues) -> Result<Option<HeaderPattern>, String> {
    HeaderPattern::parse(flag, &v.texts(flag).pop().unwrap_or_default())
}

fn parse_restrictions(
    flag: &str,
    what: &str,
    prefix: &str,
    v: &FlagValues,
) -> Result<Option<ApiRestrictions>, String> {
    ApiRestrictions::parse(flag, what, prefix, &v.texts(flag))
}

/// Addresses and port of the additional listener for health. It exists where one of its two flags
/// is given; a port that is HTTP's needs no listener of its own.
fn health_settings(
    flags: &GivenFlags,
    v: &FlagValues,
    http: &[ListenAddress],
    http_port: Option<u16>,
) -> Result<(Vec<ListenAddress>, Option<u16>), String> {
    let port = read_port(v, "http-health-port")?;
    if flags.get("http-health-address").is_none() {
        // Two zeros select two different free ports.
        let port = port.filter(|port| Some(*port) != http_port || *port == 0);
        return Ok((port.map(|_| grpc_addresses_beside(http)).unwrap_or_default(), port));
    }
    let addresses = parse_addresses(v, "http-health-address")?;
    match addresses.iter().find(|address| address.is_host()) {
        Some(host) if port.is_none() => {
            Err(format!("--http-health-address={host} requires --http-health-port"))
        }
        _ => Ok((addresses, port)),
    }
}

/// A port; `None` without a value and for -1, which means that nothing is served.
fn read_port(v: &FlagValues, name: &str) -> Result<Option<u16>, String> {
    let number: Option<i64> = v.optional_number(name)?;
    Ok(number.and_then(|port| u16::try_from(port).ok()))
}

/// A release of TRTIS before v1.13, such as `1.11.0`.
fn is_before_1_13(version: &str) -> bool {
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().ok());
    match (numbers.next().flatten(), numbers.next().flatten()) {
        (Some(0), _) => true,
        (Some(1), minor) => minor.is_some_and(|minor| minor < 13),
        _ => false,
    }
}

fn connection_settings(v: &FlagValues) -> Result<ConnectionSettings, String> {
    let max_age = v.seconds("max-connection-age-secs")?;
    Ok(ConnectionSettings {
        max: match v.optional_number("max-connections")? {
            None => MaxConnections::Derived,
            Some(0) => MaxConnections::Unlimited,
            Some(max) => MaxConnections::Limited(max),
        },
        max_open_calls: v.optional_number("max-open-calls")?.filter(|max| *max > 0),
        first_message_timeout: v.seconds("first-message-timeout-secs")?,
        header_timeout: v.seconds("request-header-timeout-secs")?,
        body_timeout: v.seconds("request-body-timeout-secs")?,
        body_min_rate: v.number("request-body-min-rate")?,
        idle_timeout: v.seconds("idle-timeout-secs")?,
        max_age,
        grpc_max_age: v.optional_millis("grpc-max-connection-age")?.or(max_age),
        grpc_max_age_grace: v.optional_millis("grpc-max-connection-age-grace")?,
        tcp_keepalive: v.seconds("tcp-keepalive-secs")?,
        grpc_keepalive_time: v.optional_millis("grpc-keepalive-time")?,
        grpc_keepalive_timeout: Duration::from_millis(v.number("grpc-keepalive-timeout")?),
    })
}

fn log_settings(
    flags: &GivenFlags,
    v: &FlagValues,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<LogSettings, String> {
    let format = match v.text("log-format")?.as_str() {
        "ISO8601" => LogFormat::Iso8601,
        "json" => LogFormat::Json,
        _ => LogFormat::Default,
    };
    let json = v.bool("log-json")?;
    if json && flags.get("log-format").is_some() && format != LogFormat::Json {
        return Err("--log-json and --log-format ask for two different formats".to_owned());
    }
    Ok(LogSettings {
        info: v.bool("log-info")?,
        warning: v.bool("log-warning")?,
        error: v.bool("log-error")?,
        verbose: v.number("log-verbose")?,
        format: if json { LogFormat::Json } else { format },
        file: v.paths("log-file").pop().filter(|path| !path.as_os_str().is_empty()),
        escape: env("TRITON_SERVER_ESCAPE_LOG_MESSAGES").as_deref() != Some("0"),
    })
}

/// `--model-control-mode` takes precedence. Without it `--allow-model-control` decides, which
/// excludes polling, then the flags of polling: TRTIS polled without any of them, which this server
/// and Triton do not. An interval of 0 disables polling.
fn load_report_mode(v: &FlagValues) -> Result<LoadReportMode, String> {
    Ok(match v.text("load-reports")?.as_str() {
        "off" => LoadReportMode::Off,
        "always" => LoadReportMode::Always,
        _ => LoadReportMode::OnRequest,
    })
}

fn control_mode(flags: &GivenFlags, v: &FlagValues) -> Result<ControlMode, String> {
    let polls = match poll_secs(v)? {
        0 => ControlMode::None,
        _ => ControlMode::Poll,
    };
    if flags.get("model-control-mode").is_some() {
        return Ok(match v.text("model-control-mode")?.as_str() {
            "explicit" => ControlMode::Explicit,
            "poll" => polls,
            _ => ControlMode::None,
        });
    }
    let allowed = v.texts("allow-poll-model-repository").pop().map(|text| text == "true");
    if v.bool("allow-model-control")? {
        return match allowed {
            Some(false) => Ok(ControlMode::Explicit),
            _ => {
                Err("--allow-model-control and --allow-poll-model-repository can not be both set \
                      to true"
                    .to_owned())
            }
        };
    }
    Ok(match allowed {
        Some(true) => polls,
        None if flags.get("repository-poll-secs").is_some() => polls,
        _ => ControlMode::None,
    })
}

/// Negative intervals are 0, as in TRTIS.
fn poll_secs(v: &FlagValues) -> Result<u64, String> {
    v.number("repository-poll-secs")
}

/// The name of a file without its extension; an empty one counts as none.
fn model_config_name(v: &FlagValues) -> Result<Option<String>, String> {
    let name = v.texts("model-config-name").pop().unwrap_or_default();
    if name.contains('/') {
        return Err(format!("--model-config-name={name}: expected the name of a file, not a path"));
    }
    Ok(Some(name).filter(|name| !name.is_empty()))
}

/// Repositories of the flag's three spellings. The command line replaces the repositories of the
/// `--config` file.
fn model_repositories(flags: &GivenFlags, v: &FlagValues) -> Vec<PathBuf> {
    let names = REPOSITORY_FLAGS.into_iter().filter(|name| flags.get(name).is_some());
    let typed = |name: &&str| flags.get(name).is_some_and(|g| g.origin == FlagOrigin::CommandLine);
    let any_typed = names.clone().any(|name| typed(&name));
    let used = names.filter(|name| !any_typed || typed(name));
    let paths = used.flat_map(|name| v.paths(name));
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
}

const REPOSITORY_FLAGS: [&str; 3] = ["model-repository", "model-store", "model_base_path"];

/// Names of models, each value of the flag a list with commas.
fn ready_models(flags: &GivenFlags, v: &FlagValues) -> Result<Vec<String>, String> {
    if flags.get("ready-models").is_none() {
        return Ok(Vec::new());
    }
    let values = v.texts("ready-models");
    let names = values.iter().flat_map(|text| text.split(',')).map(str::trim);
    let names: BTreeSet<String> = names.map(str::to_owned).collect();
    if names.is_empty() || names.contains("") {
        return Err(format!(
            "--ready-models={}: expected names of models, separated by commas",
            values.join(",")
        ));
    }
    if !v.bool("strict-readiness")? {
        return Err("--ready-models and --strict-readiness=false contradict each other: without strict readiness no \
                    model matters"
            .to_owned());
    }
    Ok(names.into_iter().collect())
}

/// A bare repository needs no configuration unless a flag, and not the spelling of the repository's
/// flag, asks for it: KServe's start line is `--model-store`.
fn strict_bare_models(flags: &GivenFlags, v: &FlagValues) -> Result<bool, String> {
    let given = flags.get("strict-model-config").is_some() && v.bool("strict-model-config")?;
    Ok(given || v.bool("disable-auto-complete-config")?)
}

fn bare_model_name(v: &FlagValues) -> Result<Option<String>, String> {
    let Some(name) = v.texts("model-name").pop() else { return Ok(None) };
    if !is_entry(&name) || is_ignored(&name) {
        return Err(format!(
            "--model-name={name}: expected the name of a model, without path separators"
        ));
    }
    Ok(Some(name))
}

/// A start line of TRTIS: the repository is given by a flag of TRTIS alone. Under Triton's name
/// `--model-store` is Triton's alias of `--model-repository`; charts use it.
fn is_trtis_start_line(flags: &GivenFlags, program: ProgramName) -> bool {
    let is_given = |name: &str| flags.get(name).is_some();
    let is_alias = program == ProgramName::Tritonserver && !is_given("model_base_path");
    !is_given("model-repository") && !is_alias
}

/// Without a flag that says it, the start line decides: one of Triton completes configurations, one
/// of TRTIS does not.
fn strict_model_config(
    flags: &GivenFlags,
    v: &FlagValues,
    program: ProgramName,
) -> Result<bool, String> {
    let given = flags.get("strict-model-config").is_some();
    let strict = match given {
        true => v.bool("strict-model-config")?,
        false => is_trtis_start_line(flags, program),
    };
    if !v.bool("disable-auto-complete-config")? {
        return Ok(strict);
    }
    if given && !strict {
        return Err("--disable-auto-complete-config and --strict-model-config=false contradict \
                    each other"
            .to_owned());
    }
    Ok(true)
}

fn without_duplicates(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut unique: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !unique.contains(&path) {
            unique.push(path);
        }
    }
    unique
}

#[cfg(test)]
#[path = "build_tests.rs"]
mod tests;
