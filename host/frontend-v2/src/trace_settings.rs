//! Trace settings, which can be read but not changed at run time.

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

pub fn cannot_change() -> Error {
    Error::unsupported("this server does not offer changing trace settings yet")
}
