//! `--auth-file` and `--control-address`: who may do what, and where.

use super::ListenAddress;
use super::values::FlagValues;
use crate::cli::GivenFlags;
use std::path::PathBuf;
use std::time::Duration;

/// Who may call which endpoint, beside the restrictions by header.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessSettings {
    /// Names, their tokens and scopes; `None`: everybody may call everything.
    pub auth_file: Option<PathBuf>,
    /// Interval at which the file is read again; `None`: on SIGHUP only.
    pub reload_interval: Option<Duration>,
    /// The listener that alone serves control.
    pub control: Option<ControlAddress>,
}

/// Where the control listener listens.
#[derive(Clone, Debug, PartialEq)]
pub struct ControlAddress {
    pub address: ListenAddress,
    /// 0 selects a free port, and belongs to a Unix socket.
    pub port: u16,
}

/// # Errors
/// Names the flag whose value cannot be used.
pub fn access_settings(flags: &GivenFlags, v: &FlagValues) -> Result<AccessSettings, String> {
    let given = |name: &str| flags.get(name).is_some();
    let auth_file = v.paths("auth-file").pop().filter(|path| !path.as_os_str().is_empty());
    if auth_file.is_none() && given("auth-file") {
        // Such as of a variable that is not set: without the file everybody may do everything.
        return Err("--auth-file: expected the path of a file, found an empty value".to_owned());
    }
    let control = v.texts("control-address").pop().filter(|_| given("control-address"));
    Ok(AccessSettings {
        auth_file,
        reload_interval: v.seconds("auth-reload-secs")?,
        control: control.map(|text| read_control_address(&text)).transpose()?,
    })
}

fn read_control_address(text: &str) -> Result<ControlAddress, String> {
    let wrong = |e: &str| format!("--control-address={text}: {e}");
    let (host, port) = match text.rsplit_once(':') {
        _ if text.starts_with("unix:") => (text, 0),
        Some((host, port)) => {
            let port = port.parse().map_err(|_| wrong("expected HOST:PORT or unix:PATH"))?;
            (host, port)
        }
        None => return Err(wrong("expected HOST:PORT or unix:PATH")),
    };
    let address = ListenAddress::parse(host).map_err(|e| wrong(&e))?;
    Ok(ControlAddress { address, port })
}

#[cfg(test)]
#[path = "access_settings_tests.rs"]
mod tests;
