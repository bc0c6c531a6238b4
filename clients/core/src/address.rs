//! The URL of a server, taken apart.

use crate::error::{Error, Result};
use crate::settings::{Protocol, Settings};
use std::path::PathBuf;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SocketTarget {
    Tcp { host: String, port: u16 },
    Unix(PathBuf),
}

#[derive(Clone, Debug)]
pub(crate) struct ServerAddress {
    pub target: SocketTarget,
    pub protocol: Protocol,
    pub tls: bool,
    /// Path in front of every request, without a slash at its end.
    pub prefix: String,
    /// `scheme://host:port/prefix`, as errors name it.
    pub shown: String,
    /// Contents of the `Host` header.
    pub authority: String,
}

impl ServerAddress {
    pub fn parse(settings: &Settings) -> Result<Self> {
        let url = settings.url.trim();
        let refuse = |why: &str| Error::invalid(format!("`{}` is not a URL: {why}", settings.url));
        if let Some(path) = url.strip_prefix("unix:") {
            return Self::unix(settings, path.strip_prefix("//").unwrap_or(path), refuse);
        }
        let (scheme, rest) = match url.split_once("://") {
            Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
            None => (String::new(), url),
        };
        let (protocol, mut tls) = match scheme.as_str() {
            "" | "http" => (settings.protocol, false),
            "https" => (settings.protocol, true),
            "grpc" => (Protocol::Grpc, false),
            "grpcs" => (Protocol::Grpc, true),
            _ => return Err(refuse("the scheme must be http, https, grpc, grpcs or unix")),
        };
        tls |= settings.tls.is_some();
        let (authority, prefix) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(refuse("user names are not supported"));
        }
        let (host, port) = split_port(authority).map_err(refuse)?;
        if host.is_empty() {
            return Err(refuse("no host"));
        }
        if host.contains(|c: char| c.is_whitespace() || c.is_control() || c == '?' || c == '#') {
            return Err(refuse("the host has characters that no host has"));
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() && protocol == Protocol::Grpc {
            return Err(refuse("gRPC has no path"));
        }
        if prefix.contains(|c: char| !c.is_ascii_graphic() || c == '?' || c == '#') {
            return Err(refuse("the path has characters that must be percent-encoded"));
        }
        let port = port.unwrap_or(match (scheme.as_str(), protocol) {
            ("http", Protocol::Http) => 80,
            ("https", Protocol::Http) => 443,
            (_, Protocol::Http) => 8000,
            (_, Protocol::Grpc) => 8001,
        });
        let bracketed = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        let authority = format!("{bracketed}:{port}");
        Ok(Self {
            shown: format!("{}://{authority}{prefix}", shown_scheme(protocol, tls)),
            target: SocketTarget::Tcp { host: host.to_owned(), port },
            protocol,
            tls,
            prefix: prefix.to_owned(),
            authority,
        })
    }

    fn unix(settings: &Settings, path: &str, refuse: impl Fn(&str) -> Error) -> Result<Self> {
        if path.is_empty() {
            return Err(refuse("no path"));
        }
        if settings.tls.is_some() {
            return Err(refuse("a Unix socket has no TLS"));
        }
        Ok(Self {
            target: SocketTarget::Unix(PathBuf::from(path)),
            protocol: settings.protocol,
            tls: false,
            prefix: String::new(),
            shown: format!("unix:{path}"),
            authority: "localhost".to_owned(),
        })
    }
}

fn shown_scheme(protocol: Protocol, tls: bool) -> &'static str {
    match (protocol, tls) {
        (Protocol::Http, false) => "http",
        (Protocol::Http, true) => "https",
        (Protocol::Grpc, false) => "grpc",
        (Protocol::Grpc, true) => "grpcs",
    }
}

/// Host, without the brackets of IPv6, and port.
fn split_port(authority: &str) -> std::result::Result<(&str, Option<u16>), &'static str> {
    let number = |text: &str| text.parse().map(Some).map_err(|_| "the port is not a number");
    if let Some(rest) = authority.strip_prefix('[') {
        let (host, after) = rest.split_once(']').ok_or("`[` without `]`")?;
        return match after.strip_prefix(':') {
            Some(port) => Ok((host, number(port)?)),
            None if after.is_empty() => Ok((host, None)),
            None => Err("text after `]`"),
        };
    }
    match authority.rsplit_once(':') {
        Some((host, _)) if host.contains(':') => Err("write IPv6 addresses in brackets"),
        Some((host, port)) => Ok((host, number(port)?)),
        None => Ok((authority, None)),
    }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
