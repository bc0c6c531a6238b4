//! The access check of a server from its settings, and what its log says of listeners that are open
//! to everybody.

use std::sync::Arc;
use trtserver_base::access_stats::AccessStats;
use trtserver_base::error::{Error, Result};
use trtserver_base::fair_clients::FairClients;
use trtserver_config::{
    ApiGroup, ApiRestrictions, ControlAddress, ControlMode, ListenAddress, ServerSettings, TlsFiles,
};
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
    /// Clients that are served in turn.
    pub clients: Option<Arc<FairClients>>,
}

impl ServerAccess {
    /// # Errors
    /// The auth file cannot be used.
    pub fn open(settings: &Arc<ServerSettings>) -> Result<Self> {
        warn_of_open_listeners(settings);
        let access = &settings.access;
        let is_counted = access.auth_file.is_some() || access.has_control_listener();
        let is_restricted =
            settings.http_restricted.is_some() || settings.grpc_restricted.is_some();
        if !is_counted && !is_restricted && settings.fairness.is_none() {
            return Ok(Self::default());
        }
        let stats = Arc::<AccessStats>::default();
        let file = access.auth_file.as_deref().map(|path| AuthReloader::open(path, &stats));
        let (names, reloader) = file.transpose().map_err(Error::invalid)?.unzip();
        let rules = AccessRules::new(Arc::clone(settings), names, Arc::clone(&stats));
        let clients = rules.fairness.as_ref().map(|lookup| Arc::clone(&lookup.clients));
        let gate = AccessGate { rules: Arc::new(rules), is_control_listener: false };
        Ok(Self { gate: Some(gate), reloader, stats: is_counted.then_some(stats), clients })
    }
}

/// A listener as its clients see it.
struct ListenerExposure<'s> {
    name: &'static str,
    serves_control: bool,
    addresses: &'s [ListenAddress],
    tls: &'s Option<TlsFiles>,
    restrictions: &'s Option<ApiRestrictions>,
}

/// Says which listeners let other machines change the server without a token or a certificate, and
/// at which tokens are not safe.
fn warn_of_open_listeners(s: &ServerSettings) {
    let serves_control = !s.access.has_control_listener();
    let http = ListenerExposure {
        name: "HTTP",
        serves_control,
        addresses: if s.allow_http { &s.http_addresses } else { &[] },
        tls: &s.tls.http,
        restrictions: &s.http_restricted,
    };
    let grpc = ListenerExposure {
        name: "gRPC",
        serves_control,
        addresses: if s.allow_grpc { &s.grpc_addresses } else { &[] },
        tls: &s.tls.grpc,
        restrictions: &s.grpc_restricted,
    };
    let control = ListenerExposure {
        name: "control",
        serves_control: true,
        addresses: ControlAddress::list(&s.access.control),
        ..http
    };
    let control_grpc = ListenerExposure {
        name: "gRPC control",
        serves_control: true,
        addresses: ControlAddress::list(&s.access.control_grpc),
        ..grpc
    };
    [http, grpc, control, control_grpc].iter().for_each(|listener| listener.warn(s));
}

impl ListenerExposure<'_> {
    /// The first address at which other machines reach it stands for all.
    fn warn(&self, s: &ServerSettings) {
        let Self { name, serves_control, addresses, tls, restrictions } = self;
        let Some(address) = addresses.iter().find(|address| !address.is_local()) else { return };
        if s.access.auth_file.is_some() {
            if tls.is_none() {
                tracing::info!(
                    "{name} listener at {address}: without TLS, tokens can be read on their way"
                );
            }
            return;
        }
        let demands_certificate = tls.as_ref().is_some_and(|files| files.client_ca.is_some());
        if !serves_control || demands_certificate {
            return;
        }
        let is_open = |group| !is_restricted(restrictions.as_ref(), group);
        let how = "--auth-file, --control-address or --tls-client-ca closes that";
        if s.control_mode == ControlMode::Explicit && is_open(ApiGroup::ModelRepository) {
            tracing::warn!(
                "{name} listener at {address}: every machine that reaches it may load and unload models; {how}"
            );
        } else if is_open(ApiGroup::Logging) {
            tracing::info!(
                "{name} listener at {address}: every machine that reaches it may change log settings and shared memory; {how}"
            );
        }
    }
}

fn is_restricted(restrictions: Option<&ApiRestrictions>, group: ApiGroup) -> bool {
    restrictions.is_some_and(|restrictions| restrictions.for_group(group).is_some())
}
