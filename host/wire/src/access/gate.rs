//! The access check of a server that restricts who may call what.

use super::audit;
use super::endpoint::EndpointAccess;
use super::fairness::ClientLookup;
use super::limits::InFlightRequest;
use super::names::{NameEntry, NameTable};
use super::refusal::AccessRefusal;
use super::{CallerProtocol, missing_header};
use crate::connections::ConnectionPeer;
use crate::context::FrontendContext;
use arc_swap::ArcSwap;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use std::sync::{Arc, OnceLock};
use trtserver_base::access_stats::AccessStats;
use trtserver_base::request_id::current_observer;
use trtserver_config::ServerSettings;

/// What decides for all listeners of a server.
pub struct AccessRules {
    settings: Arc<ServerSettings>,
    /// `None` without an auth file.
    names: Option<ArcSwap<NameTable>>,
    pub stats: Arc<AccessStats>,
    /// `None`: clients are not told apart.
    pub fairness: Option<ClientLookup>,
    /// For requests without a name.
    unnamed: OnceLock<Arc<FrontendContext>>,
}

/// The access check of a listener.
#[derive(Clone)]
pub struct AccessGate {
    pub rules: Arc<AccessRules>,
    pub is_control_listener: bool,
}

/// What is known of the caller of a request.
pub struct Caller<'a> {
    pub protocol: CallerProtocol,
    /// The headers of the request's head; gRPC calls them metadata.
    pub headers: &'a HeaderMap,
    pub peer: &'a ConnectionPeer,
}

/// A request that may be served.
pub struct AdmittedRequest {
    /// With the caller's name, and without a further check.
    pub context: Arc<FrontendContext>,
    pub in_flight: Option<InFlightRequest>,
}

impl AccessRules {
    pub fn new(
        settings: Arc<ServerSettings>,
        names: Option<NameTable>,
        stats: Arc<AccessStats>,
    ) -> Self {
        let names = names.map(ArcSwap::from_pointee);
        let fairness = settings.fairness.as_ref().map(ClientLookup::new);
        Self { settings, names, stats, fairness, unnamed: OnceLock::new() }
    }

    /// Requests from now on are checked by these names.
    pub(super) fn replace(&self, make: impl FnOnce(&NameTable) -> NameTable) {
        if let Some(names) = &self.names {
            let table = make(&names.load());
            names.store(Arc::new(table));
        }
    }
}

impl AccessGate {
    /// Admits a request to `endpoint`. `counts`: it counts for the limits of its name.
    ///
    /// # Errors
    /// The request is to be refused. That is counted, and of control it is logged.
    pub fn admit(
        &self,
        base: &FrontendContext,
        caller: &Caller<'_>,
        endpoint: &EndpointAccess<'_>,
        counts: bool,
    ) -> Result<AdmittedRequest, AccessRefusal> {
        self.check(base, caller, endpoint, counts).inspect_err(|refusal| {
            if let Some(reason) = refusal.reason() {
                self.rules.stats.count_refusal(reason);
            }
            // Over gRPC the status has the text.
            if let (CallerProtocol::Http, Some(observer)) = (caller.protocol, current_observer()) {
                observer.request_refused(&refusal.message(caller.protocol));
            }
            if let Some(action) = &endpoint.control {
                audit::log_refused(&self.rules.stats, caller.peer, action, refusal);
            }
        })
    }

    fn check(
        &self,
        base: &FrontendContext,
        caller: &Caller<'_>,
        endpoint: &EndpointAccess<'_>,
        counts: bool,
    ) -> Result<AdmittedRequest, AccessRefusal> {
        let settings = &self.rules.settings;
        let restrictions = match caller.protocol {
            CallerProtocol::Http => &settings.http_restricted,
            CallerProtocol::Grpc => &settings.grpc_restricted,
        };
        if let Some(restrictions) = restrictions
            && let Some(header) = missing_header(restrictions, endpoint.groups, caller.headers)
        {
            return Err(AccessRefusal::MissingHeader(header.to_owned()));
        }
        if settings.access.has_control_listener() {
            let is_wrong = match self.is_control_listener {
                true => endpoint.is_inference(),
                false => endpoint.is_for_control_listener(),
            };
            if is_wrong {
                return Err(AccessRefusal::WrongListener);
            }
        }
        let Some(names) = &self.rules.names else {
            let context = self.rules.unnamed.get_or_init(|| {
                Arc::new(FrontendContext { access: None, caller: None, ..base.clone() })
            });
            let context = self.with_client(context, caller, endpoint);
            return Ok(AdmittedRequest { context, in_flight: None });
        };
        let names = names.load();
        let entry = find_name(&names, caller)?;
        if let Some(observer) = current_observer() {
            observer.caller_named(&entry.grant.name);
        }
        entry.grant.authorize(endpoint)?;
        let in_flight = if counts { entry.grant.admit()? } else { None };
        let fairness = self.rules.fairness.as_ref();
        let context = entry.context(base, |name| fairness?.by_name(name));
        Ok(AdmittedRequest { context: self.with_client(context, caller, endpoint), in_flight })
    }

    /// The state of the frontends for a request of the client that its headers name.
    fn with_client(
        &self,
        context: &Arc<FrontendContext>,
        caller: &Caller<'_>,
        endpoint: &EndpointAccess<'_>,
    ) -> Arc<FrontendContext> {
        let lookup = self.rules.fairness.as_ref().filter(|_| endpoint.is_inference());
        match lookup.and_then(|lookup| lookup.by_header(caller.headers)) {
            Some(client) => {
                Arc::new(FrontendContext { client: Some(client), ..(**context).clone() })
            }
            None => Arc::clone(context),
        }
    }
}

/// The name of a caller: by its token, else by its certificate.
fn find_name<'t>(
    names: &'t NameTable,
    caller: &Caller<'_>,
) -> Result<&'t Arc<NameEntry>, AccessRefusal> {
    if let Some(token) = read_token(caller.headers) {
        return names.find_token(token).ok_or(AccessRefusal::UnknownToken);
    }
    Ok(names.find_certificate(&caller.peer.certificate_names).unwrap_or(&names.anonymous))
}

/// The token of `Authorization: Bearer TOKEN`. Other schemes are for a proxy before the server.
fn read_token(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get_all(AUTHORIZATION).iter().find_map(|value| {
        let (scheme, token) = value.as_bytes().split_at_checked(7)?;
        scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
    })
}

/// Takes the token out of the headers, so that none reaches a model whose headers are forwarded.
pub fn remove_token(headers: &mut HeaderMap) {
    if read_token(headers).is_some() {
        headers.remove(AUTHORIZATION);
    }
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
