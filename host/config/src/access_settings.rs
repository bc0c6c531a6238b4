//! `--auth-file`, `--control-address` and `--control-grpc-address`: who may do what, and where.

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
    /// The listeners that alone serve control, over HTTP and gRPC.
    pub control: Option<ControlAddress>,
    pub control_grpc: Option<ControlAddress>,
}

impl AccessSettings {
    /// Control is served at listeners of its own.
    pub fn has_control_listener(&self) -> bool {
        self.control.is_some() || self.control_grpc.is_some()
    }
}

impl ControlAddress {
    /// The address in a list; none without a listener.
    pub fn list(control: &Option<Self>) -> &[ListenAddress] {
        control.as_ref().map(|control| std::slice::from_ref(&control.address)).unwrap_or_default()
    }
}

/// Where a control listener listens.
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
    let control = |flag: &str| {
        let text = v.texts(flag).pop().filter(|_| given(flag));
        text.map(|text| read_control_address(flag, &text)).transpose()
    };
    Ok(AccessSettings {
        auth_file,
        reload_interval: v.seconds("auth-reload-secs")?,
        control: control("control-address")?,
        control_grpc: control("control-grpc-address")?,
    })
}

fn read_control_address(flag: &str, text: &str) -> Result<ControlAddress, String> {
    let wrong = |e: &str| format!("--{flag}={text}: {e}");
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
