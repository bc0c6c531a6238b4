//! Trace settings, which can be read but not changed at run time.

use std::borrow::Cow;
use trtserver_base::error::{Error, Result};
use trtserver_wire::context::FrontendContext;

/// Name and values of a trace setting; only the level is a list.
pub type TraceSetting = (&'static str, &'static [&'static str]);

const TRACE: [TraceSetting; 6] = [
    ("trace_level", &["OFF"]),
    ("trace_rate", &["1000"]),
    ("trace_count", &["-1"]),
    ("log_frequency", &["0"]),
    ("trace_file", &[""]),
    ("trace_mode", &["triton"]),
];

/// The settings of a model, or of the server for an empty name. Tracing is not implemented.
pub fn read_trace_settings(ctx: &FrontendContext, model: &str) -> Result<&'static [TraceSetting]> {
    if !model.is_empty() && ctx.models.get(model).is_none() {
        return Err(Error::invalid(format!("Request for unknown model : {model}")));
    }
    Ok(&TRACE)
}

/// Accepts a new value of the setting `key` if it is the one that it has: none restores that of the
/// start. Settings that Triton does not know, and those that it only shows, are passed over as by
/// Triton.
///
/// # Errors
/// The value is invalid, or another one.
pub fn expect_unchanged(key: &str, values: &[Cow<'_, str>]) -> Result<()> {
    let Some((name, current)) = TRACE.iter().find(|(name, _)| *name == key) else { return Ok(()) };
    let Some(value) = values.first() else { return Ok(()) };
    let invalid = |text: &str| Err(Error::invalid(format!("{text}{value}")));
    match *name {
        "trace_level" if values.len() > 1 && values.iter().any(|level| level == "OFF") => {
            let text = "Expect only one trace level 'OFF' is specified";
            return Err(Error::invalid(text));
        }
        "trace_rate" | "log_frequency" if value.parse::<u32>().is_err() => {
            return invalid(&format!("Unable to parse '{key}', got: "));
        }
        "trace_count" if !value.parse::<i32>().is_ok_and(|count| count >= -1) => {
            return invalid("Unable to parse 'trace_count'. Expecting value >= -1, got:");
        }
        "trace_file" => {
            let text = "trace file location can not be updated through network protocol";
            return Err(Error::unsupported(text));
        }
        "trace_mode" => return Ok(()),
        _ => {}
    }
    match values.iter().eq(current.iter()) {
        true => Ok(()),
        false => Err(Error::unsupported(format!(
            "this server does not offer changing trace settings yet: '{key}' remains {}",
            current.join(", ")
        ))),
    }
}

#[cfg(test)]
#[path = "trace_settings_tests.rs"]
mod tests;
