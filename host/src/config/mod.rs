//! What was meant: every setting of the server with its type, checked and defaulted.
//!
//! Pure: nothing here exits, prints, binds or looks into the repository. The one file it reads is
//! the one `--config` names.

mod check;
mod value;

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::{self, Asked, Typed};
use value::Values;

/// Everything the server's parts need to know at start.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    pub server_id: String,
    /// What the server says its version is.
    pub server_version: String,
    pub exit_on_error: bool,
    /// How long shutdown waits for running requests.
    pub exit_timeout: Duration,
    pub strict_readiness: bool,
    pub log: LogSettings,

    /// At least one, in the order given, none twice. Not looked at yet.
    pub model_repositories: Vec<PathBuf>,
    /// Answer as the releases of 18.04 and 18.05 did: the flag of that time was used.
    pub era_a: bool,
    pub strict_model_config: bool,
    pub model_load_thread_count: usize,
    pub control_mode: ControlMode,
    /// What is loaded at start in explicit mode; `*` alone stands for everything.
    pub load_models: Vec<String>,

    pub allow_http: bool,
    pub http_address: String,
    /// 0 takes any free port, here and below.
    pub http_port: u16,
    /// A further port that serves health alone; none when health is on the HTTP port only.
    pub http_health_port: Option<u16>,
    pub http_max_input_size: u64,

    pub allow_grpc: bool,
    pub grpc_address: String,
    pub grpc_port: u16,

    pub allow_metrics: bool,
    pub metrics_address: String,
    pub metrics_port: u16,
    pub allow_gpu_metrics: bool,
    pub metrics_interval: Duration,

    /// Where to look for plugins; empty when not said.
    pub backend_dirs: Vec<PathBuf>,
    /// Plugin name to its settings; those for all plugins are under the empty name.
    pub backend_config: BTreeMap<String, BTreeMap<String, String>>,
    /// Leave GPUs alone: the environment says so.
    pub cpu_only: bool,
}

/// What to log, where to and in which form.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    pub info: bool,
    pub warning: bool,
    pub error: bool,
    pub verbose: u32,
    pub format: LogFormat,
    /// Standard error when none.
    pub file: Option<PathBuf>,
    /// Keep control characters of a message from looking like the log's own. False only when the
    /// environment asks for the raw text.
    pub escape: bool,
}

impl LogSettings {
    /// The highest level of `trtserver_plugin_api`'s numbers whose records would be printed.
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

/// When models are loaded and unloaded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControlMode {
    /// At start and never again.
    None,
    /// On request.
    Explicit,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogFormat {
    Default,
    Iso8601,
    Json,
}

/// The server may start.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    pub settings: Settings,
    /// What to log once logging is set up.
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Note {
    Info(String),
    Warning(String),
}

/// The program is to end at once, with this exit code, after printing these texts.
#[derive(Clone, Debug, PartialEq)]
pub struct Stop {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

/// From the words of a command line, the program's own name first, to settings. `abi` is the
/// version of the plugin interface, for `--version`.
pub fn from_args(
    args: impl IntoIterator<Item = OsString>,
    env: &dyn Fn(&str) -> Option<String>,
    abi: &str,
) -> Result<Start, Stop> {
    let refuse = |complaint: String| Stop {
        code: 1,
        stdout: String::new(),
        stderr: format!("{complaint}\nUsage: {}\ntrtserver --help lists the flags.\n", cli::USAGE),
    };
    let typed = match cli::parse(args, &cli::version_text(abi)).map_err(refuse)? {
        Asked::Serve(typed) => cli::with_file(typed).map_err(refuse)?,
        Asked::Print(stdout) => return Err(Stop { code: 0, stdout, stderr: String::new() }),
    };
    start(&typed, env).map_err(refuse)
}

fn start(typed: &Typed, env: &dyn Fn(&str) -> Option<String>) -> Result<Start, String> {
    let values = Values::check(typed)?;
    let notes = check::notes(typed, &values)?;
    let settings = settings(typed, &values, env)?;
    check::conflicts(&settings)?;
    Ok(Start { settings, notes })
}

fn settings(
    typed: &Typed,
    v: &Values,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Settings, String> {
    let mut model_repositories = v.paths("model-repository");
    model_repositories.extend(v.paths("model_base_path"));
    model_repositories.retain(|path| !path.as_os_str().is_empty());
    let http_address = v.text("http-address")?;
    let metrics_address = match typed.get("metrics-address") {
        Some(_) => v.text("metrics-address")?,
        None => http_address.clone(),
    };
    let http_port = v.number("http-port")?;
    let health_port = v.optional_number("http-health-port")?;
    let set = |name: &str| env(name).is_some();
    Ok(Settings {
        server_id: v.text("id")?,
        server_version: env("TENSORRT_SERVER_VERSION")
            .filter(|version| !version.is_empty())
            .unwrap_or_else(|| env!("CARGO_PKG_VERSION").to_owned()),
        exit_on_error: v.bool("exit-on-error")?,
        exit_timeout: Duration::from_secs(v.number("exit-timeout-secs")?),
        strict_readiness: v.bool("strict-readiness")?,
        log: log(typed, v, env)?,
        model_repositories: without_repeats(model_repositories),
        era_a: typed.get("model_base_path").is_some(),
        strict_model_config: strict_model_config(typed, v)?,
        model_load_thread_count: v.number("model-load-thread-count")?,
        control_mode: control_mode(typed, v)?,
        load_models: v.texts("load-model"),
        allow_http: v.bool("allow-http")?,
        http_address,
        http_port,
        // Two zeros are two free ports, not one.
        http_health_port: health_port.filter(|port| *port != http_port || *port == 0),
        http_max_input_size: v.number("http-max-input-size")?,
        allow_grpc: v.bool("allow-grpc")?,
        grpc_address: v.text("grpc-address")?,
        grpc_port: v.number("grpc-port")?,
        allow_metrics: v.bool("allow-metrics")?,
        metrics_address,
        metrics_port: v.number("metrics-port")?,
        allow_gpu_metrics: v.bool("allow-gpu-metrics")?,
        metrics_interval: v.milliseconds("metrics-interval-ms")?,
        backend_dirs: without_repeats(v.paths("backend-dir")),
        backend_config: backend_config(typed, v)?,
        cpu_only: set("TENSORRT_SERVER_CPU_ONLY") || set("TRITON_SERVER_CPU_ONLY"),
    })
}

fn log(
    typed: &Typed,
    v: &Values,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<LogSettings, String> {
    let format = match v.text("log-format")?.as_str() {
        "ISO8601" => LogFormat::Iso8601,
        "json" => LogFormat::Json,
        _ => LogFormat::Default,
    };
    let json = v.bool("log-json")?;
    if json && typed.get("log-format").is_some() && format != LogFormat::Json {
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

/// The flag of today decides; without it that of before, which could not be had together with polling, and polling
/// was on unless switched off.
fn control_mode(typed: &Typed, v: &Values) -> Result<ControlMode, String> {
    if typed.get("model-control-mode").is_some() {
        return Ok(match v.text("model-control-mode")?.as_str() {
            "explicit" => ControlMode::Explicit,
            _ => ControlMode::None,
        });
    }
    if !v.bool("allow-model-control")? {
        return Ok(ControlMode::None);
    }
    let may_poll = v.texts("allow-poll-model-repository").pop().is_none_or(|text| text == "true");
    match may_poll {
        true => Err("--allow-model-control and --allow-poll-model-repository can not be both set \
                     to true"
            .to_owned()),
        false => Ok(ControlMode::Explicit),
    }
}

fn strict_model_config(typed: &Typed, v: &Values) -> Result<bool, String> {
    let strict = v.bool("strict-model-config")?;
    if !v.bool("disable-auto-complete-config")? {
        return Ok(strict);
    }
    if typed.get("strict-model-config").is_some() && !strict {
        return Err("--disable-auto-complete-config and --strict-model-config=false contradict \
                    each other"
            .to_owned());
    }
    Ok(true)
}

/// `[NAME,]KEY=VALUE`, a comma belonging to the name only when it comes before the equals sign.
fn backend_config(
    typed: &Typed,
    v: &Values,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, String> {
    let mut config: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for flag in ["tf-allow-soft-placement", "tf-gpu-memory-fraction"] {
        if let Some(value) = v.texts(flag).pop() {
            let key = flag.trim_start_matches("tf-").to_owned();
            config.entry("tensorflow".to_owned()).or_default().insert(key, value);
        }
    }
    let origin = typed.get("backend-config").map(|g| g.origin.to_string()).unwrap_or_default();
    for (name, settings) in backend_settings(v.texts("backend-config").iter().map(String::as_str))
        .map_err(|e| format!("{origin}{e}"))?
    {
        config.entry(name).or_default().extend(settings);
    }
    Ok(config)
}

/// Settings by backend name, as `--backend-config` spells them; the empty name is for all.
pub fn backend_settings<'a>(
    texts: impl Iterator<Item = &'a str>,
) -> Result<BTreeMap<String, BTreeMap<String, String>>, String> {
    let mut config: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for text in texts {
        let wrong = || format!("--backend-config={text}: expected [NAME,]KEY=VALUE");
        let (left, value) = text.split_once('=').ok_or_else(wrong)?;
        let (plugin, key) = match left.split_once(',') {
            Some(("", _)) => return Err(wrong()),
            Some(pair) => pair,
            None => ("", left),
        };
        if key.is_empty() {
            return Err(wrong());
        }
        config.entry(plugin.to_owned()).or_default().insert(key.to_owned(), value.to_owned());
    }
    Ok(config)
}

fn without_repeats(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut once: Vec<PathBuf> = Vec::new();
    for path in paths {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    once
}
