//! TLS of the listeners: `--tls-cert` and its siblings for all of them, the flags of one listener,
//! and Triton's flags for gRPC.

use super::notes::StartNote;
use super::values::FlagValues;
use crate::cli::GivenFlags;
use std::path::PathBuf;
use std::time::Duration;

/// TLS of each listener; `None`: plain text.
#[derive(Clone, Debug, PartialEq)]
pub struct TlsSettings {
    pub http: Option<TlsFiles>,
    pub grpc: Option<TlsFiles>,
    pub metrics: Option<TlsFiles>,
    pub health: Option<TlsFiles>,
    /// Interval at which the files are read again; `None`: on SIGHUP only.
    pub reload_interval: Option<Duration>,
    pub handshake_timeout: Option<Duration>,
    /// Handshakes at a time.
    pub max_handshakes: usize,
}

/// The files of one listener, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those of its authorities.
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Clients must show a certificate that is signed by one of these.
    pub client_ca: Option<PathBuf>,
}

/// Flags of gRPC in Triton. The first two are switches.
const TRITON_FLAGS: [&str; 5] = [
    "grpc-use-ssl",
    "grpc-use-ssl-mutual",
    "grpc-server-cert",
    "grpc-server-key",
    "grpc-root-cert",
];

/// What the flags of all listeners say.
#[derive(Clone, Default)]
struct SharedFiles {
    pair: Option<(PathBuf, PathBuf)>,
    client_ca: Option<PathBuf>,
}

/// # Errors
/// Names the flag that is missing or contradicts another one.
pub fn tls_settings(flags: &GivenFlags, v: &FlagValues) -> Result<TlsSettings, String> {
    let shared =
        SharedFiles { pair: pair(v, "tls-cert", "tls-key")?, client_ca: path(v, "tls-client-ca") };
    let listeners = ["http", "grpc", "metrics", "health"];
    let any_own = listeners.iter().any(|name| path(v, &format!("{name}-tls-cert")).is_some());
    let any_triton = path(v, "grpc-server-cert").is_some();
    if shared.client_ca.is_some() && shared.pair.is_none() && !any_own && !any_triton {
        return Err("--tls-client-ca requires --tls-cert and --tls-key: only a listener with TLS can ask for certificates".to_owned());
    }
    Ok(TlsSettings {
        http: listener_files(flags, v, "http", &shared)?,
        grpc: grpc_files(flags, v, &shared)?,
        metrics: listener_files(flags, v, "metrics", &shared)?,
        health: listener_files(flags, v, "health", &shared)?,
        reload_interval: v.seconds("tls-reload-secs")?,
        handshake_timeout: v.seconds("tls-handshake-timeout-secs")?,
        max_handshakes: v.number("tls-max-handshakes")?,
    })
}

/// Triton's flags for gRPC that have no effect.
pub fn tls_notes(flags: &GivenFlags, v: &FlagValues) -> Result<Vec<StartNote>, String> {
    let [ssl, mutual, certificate, key, root] = TRITON_FLAGS;
    let is_mutual = flags.get(mutual).is_some();
    let on = is_mutual || v.bool(ssl)?;
    let unused = |name: &'static str, needs: &str| {
        let text = format!("--{name} has no effect without --{needs}");
        path(v, name).map(|_| StartNote::Warning(text))
    };
    let mut notes = Vec::new();
    if !on {
        notes.extend([certificate, key].into_iter().filter_map(|name| unused(name, ssl)));
    }
    if !is_mutual || !v.bool(mutual)? {
        notes.extend(unused(root, mutual));
    }
    Ok(notes)
}

/// A file; `None` without a value and for an empty one.
fn path(v: &FlagValues, name: &str) -> Option<PathBuf> {
    v.paths(name).pop().filter(|path| !path.as_os_str().is_empty())
}

/// A certificate and its key, which are given together.
fn pair(
    v: &FlagValues,
    certificate: &str,
    key: &str,
) -> Result<Option<(PathBuf, PathBuf)>, String> {
    match (path(v, certificate), path(v, key)) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        (Some(_), None) => {
            Err(format!("--{certificate} requires --{key}, the private key of the certificate"))
        }
        (None, Some(_)) => {
            Err(format!("--{key} requires --{certificate}, the certificate of the key"))
        }
    }
}

/// The files of a listener from its own flags and those of all listeners.
fn listener_files(
    flags: &GivenFlags,
    v: &FlagValues,
    listener: &str,
    shared: &SharedFiles,
) -> Result<Option<TlsFiles>, String> {
    let [switch, certificate, key, ca] =
        ["tls", "tls-cert", "tls-key", "tls-client-ca"].map(|name| format!("{listener}-{name}"));
    let own = pair(v, &certificate, &key)?;
    let own_ca = path(v, &ca);
    let on = flags.get(&switch).map(|_| v.bool(&switch)).transpose()?;
    if on == Some(false) {
        let given = [(&certificate, own.is_some()), (&ca, own_ca.is_some())];
        return match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(format!("--{switch}=off and --{name} contradict each other")),
            None => Ok(None),
        };
    }
    let Some((certificate_file, key)) = own.or_else(|| shared.pair.clone()) else {
        let needs = |name: &str| {
            Err(format!(
                "--{name} requires --{certificate} and --{key}, or --tls-cert and --tls-key for all listeners"
            ))
        };
        return match (on, own_ca) {
            (Some(true), _) => needs(&format!("{switch}=on")),
            (_, Some(_)) => needs(&ca),
            _ => Ok(None),
        };
    };
    // Given without a value: clients of this listener need no certificate.
    let client_ca = if flags.get(&ca).is_some() { own_ca } else { shared.client_ca.clone() };
    Ok(Some(TlsFiles { certificate: certificate_file, key, client_ca }))
}

/// The files of gRPC, from Triton's flags where one of them switches TLS on or off.
fn grpc_files(
    flags: &GivenFlags,
    v: &FlagValues,
    shared: &SharedFiles,
) -> Result<Option<TlsFiles>, String> {
    let own = ["grpc-tls", "grpc-tls-cert", "grpc-tls-key", "grpc-tls-client-ca"];
    let given =
        |names: &[&'static str]| names.iter().copied().find(|name| flags.get(name).is_some());
    if let (Some(own), Some(triton)) = (given(&own), given(&TRITON_FLAGS)) {
        return Err(format!(
            "--{own} and --{triton} both set up TLS for gRPC: use the flags of one kind"
        ));
    }
    let [ssl, mutual, certificate, key, root] = TRITON_FLAGS;
    let mutual_auth = flags.get(mutual).map(|_| v.bool(mutual)).transpose()?;
    match flags.get(ssl).map(|_| v.bool(ssl)).transpose()? {
        // Given with any value, it enables TLS (docs/protocol/v2.md trap 55).
        _ if mutual_auth.is_some() => {}
        Some(true) => {}
        Some(false) => return Ok(None),
        None => return listener_files(flags, v, "grpc", shared),
    }
    let switch = if mutual_auth.is_some() { mutual } else { ssl };
    let files = pair(v, certificate, key)?.or_else(|| shared.pair.clone());
    let (certificate_file, key_file) = files.ok_or_else(|| {
        format!("--{switch} requires --{certificate} and --{key}, or --tls-cert and --tls-key for all listeners")
    })?;
    let client_ca = match mutual_auth {
        Some(false) => None,
        None => shared.client_ca.clone(),
        Some(true) => {
            let file = path(v, root).or_else(|| shared.client_ca.clone());
            Some(file.ok_or_else(|| {
                format!(
                    "--{mutual} requires --{root}, the authorities of the clients' certificates"
                )
            })?)
        }
    };
    Ok(Some(TlsFiles { certificate: certificate_file, key: key_file, client_ca }))
}

#[cfg(test)]
#[path = "tls_settings_tests.rs"]
mod tests;
