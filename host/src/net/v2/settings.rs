//! Trace and logging settings, which can be read but not changed at run time.

use crate::config::LogFormat;
use crate::error::{Error, Result};
use crate::net::context::Context;
use trtserver_proto::v2::log_settings_response::setting_value::ParameterChoice as Log;

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
pub fn trace(ctx: &Context, model: &str) -> Result<&'static [TraceSetting]> {
    if !model.is_empty() && ctx.models.get(model).is_none() {
        return Err(Error::invalid(format!("Request for unknown model : {model}")));
    }
    Ok(&TRACE)
}

pub fn cannot_change(what: &str) -> Error {
    Error::unsupported(format!("this server does not offer changing {what} settings yet"))
}

/// In the order of the protocol text.
pub fn log(ctx: &Context) -> [(&'static str, Log); 6] {
    let log = &ctx.settings.log;
    let file = log.file.as_ref().map(|f| f.display().to_string()).unwrap_or_default();
    let format = match log.format {
        LogFormat::Default => "default",
        LogFormat::Iso8601 => "ISO8601",
        LogFormat::Json => "json",
    };
    [
        ("log_file", Log::StringParam(file)),
        ("log_info", Log::BoolParam(log.info)),
        ("log_warning", Log::BoolParam(log.warning)),
        ("log_error", Log::BoolParam(log.error)),
        ("log_verbose_level", Log::Uint32Param(log.verbose)),
        ("log_format", Log::StringParam(format.to_owned())),
    ]
}
