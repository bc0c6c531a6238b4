//! Settings of the exporter, from flags and from the variables of OpenTelemetry.
//!
//! A flag wins over a variable, and a variable for traces over one for all signals. An empty
//! variable counts as absent, as the standard says; a value that cannot be read is an error that
//! names the variable.

use percent_encoding::percent_decode_str;
use std::path::PathBuf;
use std::time::Duration;

/// Looks up an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

const HTTP_ENDPOINT: &str = "http://localhost:4318";
const GRPC_ENDPOINT: &str = "http://localhost:4317";
const TRACES_PATH: &str = "/v1/traces";
const SERVICE_NAME: &str = "triton-inference-server";

/// What the command line says; each option wins over variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExporterOptions {
    /// As given: for HTTP with the path.
    pub url: Option<String>,
    pub protocol: Option<OtlpProtocol>,
    /// Attributes of the server.
    pub resource: Vec<(String, String)>,
    pub max_queue_size: Option<usize>,
    pub schedule_delay_ms: Option<u64>,
    pub max_export_batch_size: Option<usize>,
}

impl ExporterOptions {
    /// Options of `--trace-config=opentelemetry,KEY=VALUE`.
    ///
    /// # Errors
    /// Names the option that is unknown, or whose value cannot be used.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Self, String> {
        let mut options = Self::default();
        for (key, value) in pairs {
            options
                .set(key, value)
                .map_err(|e| format!("--trace-config=opentelemetry,{key}={value}: {e}"))?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        match key {
            "url" => self.url = Some(checked_url(value)?),
            "protocol" => self.protocol = Some(OtlpProtocol::parse(value)?),
            "resource" => match value.split_once('=') {
                Some((name, value)) if !name.is_empty() => {
                    self.resource.push((name.to_owned(), value.to_owned()));
                }
                _ => return Err("expected resource=NAME=VALUE".to_owned()),
            },
            "bsp_max_queue_size" => self.max_queue_size = Some(positive(value)?),
            "bsp_schedule_delay" => {
                self.schedule_delay_ms = Some(milliseconds(value)?.as_millis() as u64);
            }
            "bsp_max_export_batch_size" => self.max_export_batch_size = Some(positive(value)?),
            _ => {
                return Err(
                    "the options are url, protocol, resource, parent, bsp_max_queue_size, bsp_schedule_delay and \
                     bsp_max_export_batch_size"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }
}

/// Where spans are sent, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct ExporterSettings {
    pub url: String,
    pub protocol: OtlpProtocol,
    /// Headers of each request, or metadata over gRPC.
    pub headers: Vec<(String, String)>,
    /// Of one request to the collector.
    pub timeout: Duration,
    pub gzip: bool,
    /// Authorities of the collector's certificate in place of the system's, PEM.
    pub certificate: Option<PathBuf>,
    /// Attributes of the server, `service.name` first.
    pub resource: Vec<(String, String)>,
    pub limits: QueueLimits,
}

/// Spans that wait, in number and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueLimits {
    /// Spans that wait; more are dropped.
    pub max_queue_size: usize,
    /// A span waits no longer for others of its batch.
    pub schedule_delay: Duration,
    pub max_export_batch_size: usize,
    /// For one batch, with all attempts.
    pub export_timeout: Duration,
}

/// How requests are sent to a collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtlpProtocol {
    Grpc,
    /// Protobuf messages over HTTP.
    HttpProtobuf,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            max_queue_size: 2048,
            schedule_delay: Duration::from_secs(5),
            max_export_batch_size: 512,
            export_timeout: Duration::from_secs(30),
        }
    }
}

impl OtlpProtocol {
    /// # Errors
    /// The name is not one of a protocol.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "grpc" => Ok(Self::Grpc),
            "http/protobuf" => Ok(Self::HttpProtobuf),
            _ => Err(format!("expected grpc or http/protobuf, got '{name}'")),
        }
    }
}

impl ExporterSettings {
    /// `None`: the environment switches the exporter off.
    ///
    /// # Errors
    /// Names the variable whose value cannot be used.
    pub fn read(options: &ExporterOptions, env: Environment) -> Result<Option<Self>, String> {
        if is_disabled(env)? {
            return Ok(None);
        }
        let protocol = match options.protocol {
            Some(protocol) => protocol,
            None => for_traces(env, "PROTOCOL", OtlpProtocol::parse)?
                .unwrap_or(OtlpProtocol::HttpProtobuf),
        };
        Ok(Some(Self {
            url: endpoint(options, protocol, env)?,
            protocol,
            headers: for_traces(env, "HEADERS", parse_pairs)?.unwrap_or_default(),
            timeout: for_traces(env, "TIMEOUT", milliseconds)?.unwrap_or(Duration::from_secs(10)),
            gzip: for_traces(env, "COMPRESSION", is_gzip)?.unwrap_or(false),
            certificate: for_traces(env, "CERTIFICATE", |path| Ok(PathBuf::from(path)))?,
            resource: resource(options, env)?,
            limits: limits(options, env)?,
        }))
    }
}

/// The value of a variable; `None` without one and for an empty one.
fn variable<T>(
    env: Environment,
    name: &str,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    let value = env(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty());
    let parsed = value.map(|value| parse(&value)).transpose();
    parsed.map_err(|e| format!("environment variable {name}: {e}"))
}

/// The variable for traces, or the one for all signals.
fn for_traces<T>(
    env: Environment,
    name: &str,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    match variable(env, &format!("OTEL_EXPORTER_OTLP_TRACES_{name}"), &parse)? {
        Some(value) => Ok(Some(value)),
        None => variable(env, &format!("OTEL_EXPORTER_OTLP_{name}"), &parse),
    }
}

fn is_disabled(env: Environment) -> Result<bool, String> {
    let disabled =
        variable(env, "OTEL_SDK_DISABLED", |value| match value.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("expected true or false, got '{value}'")),
        })?;
    let without = variable(env, "OTEL_TRACES_EXPORTER", |value| match value {
        "otlp" => Ok(false),
        "none" => Ok(true),
        _ => Err(format!("expected otlp or none, got '{value}'")),
    })?;
    Ok(disabled.unwrap_or(false) || without.unwrap_or(false))
}

/// The address of the collector. What is given for all signals lacks the path of traces.
fn endpoint(
    options: &ExporterOptions,
    protocol: OtlpProtocol,
    env: Environment,
) -> Result<String, String> {
    if let Some(url) = &options.url {
        return Ok(url.clone());
    }
    if let Some(url) = variable(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", checked_url)? {
        return Ok(url);
    }
    let base = variable(env, "OTEL_EXPORTER_OTLP_ENDPOINT", checked_url)?;
    Ok(match protocol {
        OtlpProtocol::Grpc => base.unwrap_or_else(|| GRPC_ENDPOINT.to_owned()),
        OtlpProtocol::HttpProtobuf => {
            let base = base.unwrap_or_else(|| HTTP_ENDPOINT.to_owned());
            format!("{}{TRACES_PATH}", base.trim_end_matches('/'))
        }
    })
}

/// An address with a scheme and a host.
fn checked_url(url: &str) -> Result<String, String> {
    let has_host = ["http://", "https://"].iter().any(|scheme| {
        url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'))
    });
    let parsed = url.parse::<http::Uri>().is_ok();
    (has_host && parsed)
        .then(|| url.to_owned())
        .ok_or_else(|| format!("expected an address such as http://localhost:4318, got '{url}'"))
}

/// `key=value` pairs between commas, percent-encoded.
fn parse_pairs(text: &str) -> Result<Vec<(String, String)>, String> {
    let decode = |text: &str| {
        let decoded = percent_decode_str(text.trim()).decode_utf8();
        decoded
            .map(|text| text.into_owned())
            .map_err(|_| format!("'{text}' is not UTF-8 once its percent signs are decoded"))
    };
    let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => Ok((decode(key)?, decode(value)?)),
            // The text may be a secret, so it is not shown.
            _ => Err("expected key=value pairs with commas between them".to_owned()),
        })
        .collect()
}

fn is_gzip(name: &str) -> Result<bool, String> {
    match name {
        "gzip" => Ok(true),
        "none" => Ok(false),
        _ => Err(format!("expected gzip or none, got '{name}'")),
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("expected milliseconds, at least 1, got '{text}'")),
        Ok(number) => Ok(Duration::from_millis(number)),
    }
}

fn positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err(format!("expected a number, at least 1, got '{text}'")),
        Ok(number) => Ok(number),
    }
}

/// The name of the service, then what flags and variables add. A key has one value.
fn resource(options: &ExporterOptions, env: Environment) -> Result<Vec<(String, String)>, String> {
    let mut resource = vec![("service.name".to_owned(), SERVICE_NAME.to_owned())];
    let mut set =
        |key: String, value: String| match resource.iter_mut().find(|(other, _)| *other == key) {
            Some(entry) => entry.1 = value,
            None => resource.push((key, value)),
        };
    let given = variable(env, "OTEL_RESOURCE_ATTRIBUTES", parse_pairs)?.unwrap_or_default();
    given.into_iter().for_each(|(key, value)| set(key, value));
    if let Some(name) = variable(env, "OTEL_SERVICE_NAME", |name| Ok(name.to_owned()))? {
        set("service.name".to_owned(), name);
    }
    options.resource.iter().cloned().for_each(|(key, value)| set(key, value));
    Ok(resource)
}

fn limits(options: &ExporterOptions, env: Environment) -> Result<QueueLimits, String> {
    let default = QueueLimits::default();
    let size = |given: Option<usize>, name: &str, default: usize| match given {
        Some(size) => Ok::<_, String>(size),
        None => Ok(variable(env, name, positive)?.unwrap_or(default)),
    };
    let max_queue_size =
        size(options.max_queue_size, "OTEL_BSP_MAX_QUEUE_SIZE", default.max_queue_size)?;
    let batch = size(
        options.max_export_batch_size,
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
        default.max_export_batch_size.min(max_queue_size),
    )?;
    if batch > max_queue_size {
        return Err(format!(
            "a batch of {batch} spans (bsp_max_export_batch_size, OTEL_BSP_MAX_EXPORT_BATCH_SIZE) is never full in a queue \
             of {max_queue_size} (bsp_max_queue_size, OTEL_BSP_MAX_QUEUE_SIZE)"
        ));
    }
    let delay = match options.schedule_delay_ms {
        Some(ms) => Some(Duration::from_millis(ms.max(1))),
        None => variable(env, "OTEL_BSP_SCHEDULE_DELAY", milliseconds)?,
    };
    let export_timeout = variable(env, "OTEL_BSP_EXPORT_TIMEOUT", milliseconds)?;
    Ok(QueueLimits {
        max_queue_size,
        schedule_delay: delay.unwrap_or(default.schedule_delay),
        max_export_batch_size: batch,
        export_timeout: export_timeout.unwrap_or(default.export_timeout),
    })
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
