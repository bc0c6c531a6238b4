//! Settings of request tracing: `--trace-config`, Triton's older flags, and those of this server.

use super::notes::StartNote;
use super::values::FlagValues;
use crate::cli::GivenFlags;
use std::time::Duration;

/// What is recorded of sampled requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceLevels {
    pub timestamps: bool,
    pub tensors: bool,
}

impl TraceLevels {
    /// Something is recorded.
    pub fn any(self) -> bool {
        self.timestamps || self.tensors
    }

    /// The names that clients see.
    pub fn names(self) -> Vec<&'static str> {
        let names = [(self.timestamps, "TIMESTAMPS"), (self.tensors, "TENSORS")];
        let names: Vec<_> = names.into_iter().filter(|(on, _)| *on).map(|(_, name)| name).collect();
        if names.is_empty() { vec!["OFF"] } else { names }
    }

    /// Adds a level by its name; MIN and MAX are those of older releases. False for another name.
    pub fn add(&mut self, name: &str) -> bool {
        match name {
            "TIMESTAMPS" | "MIN" | "MAX" => self.timestamps = true,
            "TENSORS" => self.tensors = true,
            "OFF" => {}
            _ => return false,
        }
        true
    }
}

/// The values of a trace setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceValues {
    pub levels: TraceLevels,
    /// One of so many requests is sampled.
    pub rate: u32,
    /// How many traces are sampled; -1 = any number.
    pub count: i32,
    /// Traces of one file; 0 = all.
    pub log_frequency: u32,
}

impl Default for TraceValues {
    fn default() -> Self {
        Self { levels: TraceLevels::default(), rate: 1000, count: -1, log_frequency: 0 }
    }
}

/// Who gets the traces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceMode {
    /// The trace file, in Triton's format.
    #[default]
    Triton,
    OpenTelemetry,
}

impl TraceMode {
    pub fn name(self) -> &'static str {
        match self {
            TraceMode::Triton => "triton",
            TraceMode::OpenTelemetry => "opentelemetry",
        }
    }
}

/// Tracing at the start of the server.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceConfig {
    pub values: TraceValues,
    pub mode: TraceMode,
    /// Trace file; empty = none.
    pub file: String,
    /// `opentelemetry` options, in the order given: keys without the mode.
    pub options: Vec<(String, String)>,
    /// Whether a caller's `traceparent` is followed in both directions (`parent=always`: each
    /// request with one is sampled).
    pub parent_based: bool,
    /// The rate is given, and not a default.
    pub rate_given: bool,
    /// Traces kept in memory, if the flag is given.
    pub recent: Option<usize>,
    /// Requests that took longer, and failed ones, are kept although they are not sampled.
    pub slow: Option<Duration>,
}

impl Default for TraceConfig {
    fn default() -> Self {
        Self {
            values: TraceValues::default(),
            mode: TraceMode::default(),
            file: String::new(),
            options: Vec::new(),
            parent_based: true,
            rate_given: false,
            recent: None,
            slow: None,
        }
    }
}

impl TraceConfig {
    /// Traces kept in memory unless the flag says otherwise.
    pub const DEFAULT_RECENT: usize = 256;

    /// A setting of `--trace-config`, `[MODE,]KEY=VALUE`.
    fn apply(&mut self, setting: &str, levels: &mut Vec<String>) -> Result<(), String> {
        let invalid = |expected: &str| format!("--trace-config={setting}: {expected}");
        let (mode, pair) = match setting.split_once('=').map(|(key, _)| key.split_once(',')) {
            Some(Some((mode, _))) => (mode, &setting[mode.len() + 1..]),
            Some(None) => ("", setting),
            None => return Err(invalid("expected [MODE,]KEY=VALUE")),
        };
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        match (mode, key) {
            ("", "level") => levels.push(value.to_owned()),
            ("", "rate") => {
                self.values.rate = number(value).map_err(|e| invalid(&e))?;
                self.rate_given = true;
            }
            ("", "count") => self.values.count = count(value).map_err(|e| invalid(&e))?,
            ("", "mode") => {
                self.mode = match value.to_ascii_lowercase().as_str() {
                    "triton" => TraceMode::Triton,
                    "opentelemetry" => TraceMode::OpenTelemetry,
                    _ => return Err(invalid("the mode is triton or opentelemetry")),
                }
            }
            ("triton", "file") => self.file = value.to_owned(),
            ("triton", "log-frequency" | "log_frequency") => {
                self.values.log_frequency = number(value).map_err(|e| invalid(&e))?;
            }
            ("opentelemetry", "parent") => {
                self.parent_based = match value {
                    "based" => true,
                    "always" => false,
                    _ => return Err(invalid("parent is based or always")),
                };
            }
            ("opentelemetry", "") => return Err(invalid("expected opentelemetry,KEY=VALUE")),
            ("opentelemetry", _) => self.options.push((key.to_owned(), value.to_owned())),
            ("", _) => {
                return Err(invalid(
                    "the settings are level, rate, count, mode, triton,file, triton,log-frequency \
                     and opentelemetry,KEY",
                ));
            }
            ("triton", _) => return Err(invalid("triton has the settings file and log-frequency")),
            _ => return Err(invalid("the mode is triton or opentelemetry")),
        }
        Ok(())
    }
}

/// # Errors
/// Names the flag and what it takes.
pub fn trace_config(v: &FlagValues) -> Result<TraceConfig, String> {
    let mut config = TraceConfig::default();
    let mut levels = Vec::new();
    // The older flags first: `--trace-config` overrides them.
    let text = |name: &str| v.texts(name).pop();
    let flag = |name: &str, e: String| format!("--{name}: {e}");
    levels.extend(v.texts("trace-level"));
    if let Some(path) = v.paths("trace-file").pop() {
        config.file = path.display().to_string();
    }
    if let Some(rate) = text("trace-rate") {
        config.values.rate = number(&rate).map_err(|e| flag("trace-rate", e))?;
        config.rate_given = true;
    }
    if let Some(given) = text("trace-count") {
        config.values.count = count(&given).map_err(|e| flag("trace-count", e))?;
    }
    if let Some(frequency) = text("trace-log-frequency") {
        config.values.log_frequency =
            number(&frequency).map_err(|e| flag("trace-log-frequency", e))?;
    }
    for setting in v.texts("trace-config") {
        config.apply(&setting, &mut levels)?;
    }
    for name in &levels {
        if !config.values.levels.add(&name.to_ascii_uppercase()) {
            return Err(format!(
                "the trace level {name} is unknown: the levels are OFF, TIMESTAMPS and TENSORS"
            ));
        }
    }
    if levels.last().is_some_and(|name| name.eq_ignore_ascii_case("OFF")) {
        config.values.levels = TraceLevels::default();
    }
    config.recent = v.optional_number("trace-kept")?;
    let slow: Option<u64> = v.optional_number("trace-slow-ms")?;
    config.slow = slow.map(Duration::from_millis);
    Ok(config)
}

/// Triton's older flags, and the settings that replace them.
const OLDER_FLAGS: [(&str, &str); 5] = [
    ("trace-file", "triton,file=FILE"),
    ("trace-level", "level=LEVEL"),
    ("trace-rate", "rate=N"),
    ("trace-count", "count=N"),
    ("trace-log-frequency", "triton,log-frequency=N"),
];

/// Older flags, and settings that trace nothing although a level is set.
pub fn trace_notes(flags: &GivenFlags, v: &FlagValues) -> Result<Vec<StartNote>, String> {
    let config = trace_config(v)?;
    let traces = config.values.levels.any();
    let mut notes = Vec::new();
    for (name, setting) in OLDER_FLAGS.iter().filter(|(name, _)| flags.get(name).is_some()) {
        let given = v.texts(name).join(",");
        notes.push(StartNote::Warning(format!(
            "--{name}={given}: deprecated, use --trace-config={setting}"
        )));
    }
    let mut warn = |text: &str| notes.push(StartNote::Warning(text.to_owned()));
    if traces && config.mode == TraceMode::Triton && config.file.is_empty() {
        if config.recent.is_none() {
            warn(
                "no request is traced: the trace file is not given (--trace-config=triton,file=FILE), \
                 nor how many traces are kept in memory (--trace-kept)",
            );
        }
    } else if traces && config.values.rate == 0 {
        warn("no request is traced: the trace rate is 0");
    }
    if flags.get("trace-kept").is_some() && !traces && config.slow.is_none() {
        warn("--trace-kept has no effect until a trace level is set, or without --trace-slow-ms");
    }
    Ok(notes)
}

fn number(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("expected a whole number from 0 to {}, got {text}", u32::MAX))
}

fn count(text: &str) -> Result<i32, String> {
    let count = text.parse().ok().filter(|count| *count >= -1);
    count.ok_or_else(|| format!("expected a whole number, at least -1, got {text}"))
}

#[cfg(test)]
#[path = "trace_settings_tests.rs"]
mod tests;
