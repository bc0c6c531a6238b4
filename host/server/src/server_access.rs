//! The access check of a server from its settings, and what its log says of listeners that are open
//! to everybody.

use std::sync::Arc;
use trtserver_base::access_stats::AccessStats;
use trtserver_base::error::{Error, Result};
use trtserver_config::{ApiGroup, ApiRestrictions, ControlMode, ListenAddress, ServerSettings};
use trtserver_wire::access::{AccessGate, AccessRules, AuthReloader};

/// What a server needs to check requests.
#[derive(Default)]
pub struct ServerAccess {
    /// `None`: everybody may call everything.
    pub gate: Option<AccessGate>,
    /// Of the auth file.
    pub reloader: Option<AuthReloader>,
    /// `None` without an auth file and a control listener.
    pub stats: Option<Arc<AccessStats>>,
}

impl ServerAccess {
    /// # Errors
    /// The auth file cannot be used.
    pub fn open(settings: &Arc<ServerSettings>) -> Result<Self> {
        warn_of_open_listeners(settings);
        let access = &settings.access;
        let is_counted = access.auth_file.is_some() || access.control.is_some();
        let is_restricted =
            settings.http_restricted.is_some() || settings.grpc_restricted.is_some();
        if !is_counted && !is_restricted {
            return Ok(Self::default());
        }
        let stats = Arc::<AccessStats>::default();
        let file = access.auth_file.as_deref().map(|path| AuthReloader::open(path, &stats));
        let (names, reloader) = file.transpose().map_err(Error::invalid)?.unzip();
        let rules = AccessRules::new(Arc::clone(settings), names, Arc::clone(&stats));
        let gate = AccessGate { rules: Arc::new(rules), is_control_listener: false };
        Ok(Self { gate: Some(gate), reloader, stats: is_counted.then_some(stats) })
    }
}

/// Says which listeners let other machines change the server without a token or a certificate.
fn warn_of_open_listeners(s: &ServerSettings) {
    if s.access.auth_file.is_some() {
        return;
    }
    let control = s.access.control.as_ref().map(|control| std::slice::from_ref(&control.address));
    let moved = control.is_some();
    let demands_certificate = |files: &Option<trtserver_config::TlsFiles>| {
        files.as_ref().is_some_and(|files| files.client_ca.is_some())
    };
    let listeners = [
        (
            "HTTP",
            s.allow_http && !moved,
            &s.http_addresses[..],
            &s.tls.http,
            s.http_restricted.as_ref(),
        ),
        (
            "gRPC",
            s.allow_grpc && !moved,
            &s.grpc_addresses,
            &s.tls.grpc,
            s.grpc_restricted.as_ref(),
        ),
        ("control", moved, control.unwrap_or_default(), &s.tls.http, s.http_restricted.as_ref()),
    ];
    for (name, serves_control, addresses, tls, restrictions) in listeners {
        let open = addresses.iter().find(|address| !address.is_local());
        let Some(address) = open.filter(|_| serves_control && !demands_certificate(tls)) else {
            continue;
        };
        let loads = s.control_mode == ControlMode::Explicit
            && !is_restricted(restrictions, ApiGroup::ModelRepository);
        let how = "--auth-file, --control-address or --tls-client-ca closes that";
        if loads {
            tracing::warn!(
                "{name} listener at {address}: every machine that reaches it may load and unload models; {how}"
            );
        } else if !is_restricted(restrictions, ApiGroup::Logging) {
            tracing::info!(
                "{name} listener at {address}: every machine that reaches it may change log settings and shared memory; {how}"
            );
        }
    }
}

fn is_restricted(restrictions: Option<&ApiRestrictions>, group: ApiGroup) -> bool {
    restrictions.is_some_and(|restrictions| restrictions.for_group(group).is_some())
}

/// The addresses of the control listener; none without one.
pub fn control_addresses(s: &ServerSettings) -> (&[ListenAddress], u16) {
    match &s.access.control {
        Some(control) => (std::slice::from_ref(&control.address), control.port),
        None => (&[], 0),
    }
}
