//! Trace settings: read and changed for the server and for single models (docs/protocol/v2.md §2.17).

use std::borrow::Cow;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_config::TraceMode;
use trtserver_request_trace::{SettingChange, SettingUpdate, TraceLevels};
use trtserver_wire::context::FrontendContext;

/// Name and values of a trace setting; only the level is a list.
pub type TraceSetting = (String, Vec<String>);

/// The settings of a model, or of the server for an empty name, in Triton's order.
///
/// # Errors
/// There is no such model.
pub fn read_trace_settings(ctx: &FrontendContext, model: &str) -> Result<Vec<TraceSetting>> {
    if !model.is_empty() && ctx.models.get(model).is_none() {
        return Err(Error::invalid(format!("Request for unknown model : {model}")));
    }
    let (tracer, values) = (&ctx.tracer, ctx.tracer.values(model));
    let one = |key: &str, value: String| (key.to_owned(), vec![value]);
    let levels = values.levels.names().into_iter().map(str::to_owned).collect();
    let mut settings = vec![
        ("trace_level".to_owned(), levels),
        one("trace_rate", values.rate.to_string()),
        one("trace_count", values.count.to_string()),
    ];
    if tracer.mode() == TraceMode::Triton {
        settings.push(one("log_frequency", values.log_frequency.to_string()));
        settings.push(one("trace_file", tracer.file_name().to_owned()));
    }
    settings.push(one("trace_mode", tracer.mode().name().to_owned()));
    if tracer.mode() == TraceMode::OpenTelemetry {
        settings.extend(tracer.options().iter().map(|(key, value)| one(key, value.clone())));
    }
    Ok(settings)
}

/// A change that a client asks for, setting by setting.
#[derive(Debug, Default)]
pub struct TraceChange(SettingUpdate);

impl TraceChange {
    /// Adds a new value of the setting `key`; without values, the one of the server or of the start
    /// applies again. Settings that Triton does not know, and those that it only shows, are passed
    /// over as by Triton.
    ///
    /// # Errors
    /// The value is invalid, or the setting cannot be changed.
    pub fn add(&mut self, key: &str, values: &[Cow<'_, str>]) -> Result<()> {
        match key {
            "trace_level" => self.0.levels = Some(change(values, parse_levels)?),
            "trace_rate" => self.0.rate = Some(change(values, |v| parse_number(key, v))?),
            "trace_count" => self.0.count = Some(change(values, parse_count)?),
            "log_frequency" => {
                self.0.log_frequency = Some(change(values, |v| parse_number(key, v))?);
            }
            // The file is that of the start in any case.
            "trace_file" if values.is_empty() => {}
            "trace_file" => {
                return Err(Error::unsupported(
                    "trace file location can not be updated through network protocol",
                ));
            }
            _ => {}
        }
        Ok(())
    }

    /// Changes the settings of a model, or of the server for an empty name.
    ///
    /// # Errors
    /// There is no such model, the mode allows no change, or the result traces and cannot.
    pub fn apply(&self, ctx: &FrontendContext, model: &str) -> Result<()> {
        if self.0.is_empty() {
            return Ok(());
        }
        read_trace_settings(ctx, model)?;
        if ctx.tracer.mode() == TraceMode::OpenTelemetry {
            return Err(Error::unsupported(
                "trace settings can not be updated in the trace mode opentelemetry; they are those of --trace-config",
            ));
        }
        Arc::clone(&ctx.tracer).update(model, &self.0)
    }
}

fn change<T>(
    values: &[Cow<'_, str>],
    parse: impl FnOnce(&[Cow<'_, str>]) -> Result<T>,
) -> Result<SettingChange<T>> {
    match values {
        [] => Ok(SettingChange::Clear),
        values => parse(values).map(SettingChange::Set),
    }
}

/// Names that are not known are ignored.
fn parse_levels(values: &[Cow<'_, str>]) -> Result<TraceLevels> {
    if values.len() > 1 && values.iter().any(|level| level == "OFF") {
        return Err(Error::invalid("Expect only one trace level 'OFF' is specified"));
    }
    let mut levels = TraceLevels::default();
    for level in values {
        levels.add(level);
    }
    Ok(levels)
}

fn parse_number(key: &str, values: &[Cow<'_, str>]) -> Result<u32> {
    let value = only_value(key, values)?;
    value.parse().map_err(|_| Error::invalid(format!("Unable to parse '{key}', got: {value}")))
}

fn parse_count(values: &[Cow<'_, str>]) -> Result<i32> {
    let value = only_value("trace_count", values)?;
    value.parse().ok().filter(|count| *count >= -1).ok_or_else(|| {
        Error::invalid(format!("Unable to parse 'trace_count'. Expecting value >= -1, got:{value}"))
    })
}

fn only_value<'a>(key: &str, values: &'a [Cow<'_, str>]) -> Result<&'a str> {
    match values {
        [value] => Ok(value),
        _ => Err(Error::invalid(format!("expect only 1 value for '{key}'"))),
    }
}

#[cfg(test)]
#[path = "trace_settings_tests.rs"]
mod tests;
