//! Addresses of listeners, as `--http-address` and its siblings take them: IPv4, IPv6, host names
//! and Unix sockets.

use super::values::FlagValues;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::path::PathBuf;

/// Longest path of a Unix socket: the system's limit without the final zero.
const MAX_UNIX_PATH: usize = 107;

/// One address of a listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IPv4 address, an IPv6 address without brackets, or a host name. Listens on the port of
    /// the listener.
    Host(String),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl ListenAddress {
    pub fn is_host(&self) -> bool {
        matches!(self, Self::Host(_))
    }

    /// Other machines cannot connect to it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Host(host) if host == "localhost" => true,
            Self::Host(host) => host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback()),
        }
    }

    /// Both are one host, or one of them is all addresses of this machine.
    pub(super) fn shares_host(&self, other: &Self) -> bool {
        let (Self::Host(a), Self::Host(b)) = (self, other) else { return false };
        let is_all = |host: &str| host.parse().is_ok_and(|ip: IpAddr| ip.is_unspecified());
        a == b || is_all(a) || is_all(b)
    }

    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return parse_unix_path(path);
        }
        let host = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        let is_ipv6 = host.parse::<Ipv6Addr>().is_ok();
        match host {
            "" => Err("an address is empty".to_owned()),
            _ if host.contains('/') => Err("a path of a Unix socket begins with unix:".to_owned()),
            // An address of a network interface may end in a scope: fe80::1%eth0.
            _ if host.contains(':') && !is_ipv6 && !host.contains('%') => {
                Err("expected an address without a port, which has a flag of its own".to_owned())
            }
            _ => Ok(Self::Host(host.to_owned())),
        }
    }
}

/// The path of `unix:PATH`, or `unix:///PATH` as gRPC also writes it.
fn parse_unix_path(path: &str) -> Result<ListenAddress, String> {
    let path = match path.strip_prefix("//") {
        Some(absolute) if absolute.starts_with('/') => absolute,
        Some(_) => return Err("expected unix:PATH or unix:///ABSOLUTE/PATH".to_owned()),
        None => path,
    };
    match path.len() {
        0 => Err("expected a path after unix:".to_owned()),
        1..=MAX_UNIX_PATH => Ok(ListenAddress::Unix(path.into())),
        n => Err(format!(
            "the path of a Unix socket may have {MAX_UNIX_PATH} bytes, this one has {n}"
        )),
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(host) => f.write_str(host),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// The addresses of a repeatable flag, each value a list with commas. Without duplicates.
///
/// # Errors
/// Names the flag and the first address that is invalid; no address.
pub fn parse_addresses(v: &FlagValues, name: &str) -> Result<Vec<ListenAddress>, String> {
    let mut all = Vec::new();
    for text in v.texts(name) {
        for part in text.split(',') {
            let address =
                ListenAddress::parse(part.trim()).map_err(|e| format!("--{name}={part}: {e}"))?;
            if !all.contains(&address) {
                all.push(address);
            }
        }
    }
    if all.is_empty() {
        return Err(format!("--{name}: the list of addresses is empty"));
    }
    Ok(all)
}

/// The addresses of a listener without a flag of its own: the TCP addresses of HTTP. If HTTP has
/// only Unix sockets, the loopback address, so that nothing is open to other machines.
pub fn grpc_addresses_beside(http: &[ListenAddress]) -> Vec<ListenAddress> {
    let hosts: Vec<_> = http.iter().filter(|address| address.is_host()).cloned().collect();
    if hosts.is_empty() { vec![ListenAddress::Host("127.0.0.1".to_owned())] } else { hosts }
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
