//! The names of the auth file, found by token and by certificate.
//!
//! A token is looked up by its SHA-256 in a hash map. How long that takes depends on the hash
//! alone, and a client cannot choose a token whose hash begins as that of another one does without
//! trying as many tokens: the time tells nothing of the tokens that are valid.

use super::endpoint::EndpointAccess;
use super::limits::{InFlightRequest, NameLimits, NameUsage};
use super::refusal::AccessRefusal;
use crate::context::FrontendContext;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use trtserver_base::access_stats::AccessStats;
use trtserver_base::clock::now_ns;
use trtserver_base::fair_clients::FairClient;
use trtserver_config::{
    ANONYMOUS, AccessKind, AccessScope, AccessedModels, ApiGroup, AuthCredential, AuthFile,
    AuthName, CertificateName, NeededScope,
};

/// What the holder of a name may do.
pub struct CallerGrant {
    pub name: Arc<str>,
    /// Of the name, and of everybody.
    scopes: Vec<AccessScope>,
    limits: NameLimits,
    pub stats: Arc<AccessStats>,
}

/// A name of the file.
pub struct NameEntry {
    pub grant: Arc<CallerGrant>,
    context: OnceLock<Arc<FrontendContext>>,
}

/// All names of the file.
pub struct NameTable {
    by_token: HashMap<[u8; 32], Arc<NameEntry>>,
    by_certificate: HashMap<CertificateName, Arc<NameEntry>>,
    /// May do nothing unless the file has a line for it.
    pub anonymous: Arc<NameEntry>,
    usages: HashMap<Arc<str>, Arc<NameUsage>>,
}

impl NameTable {
    /// The names of a file. What names of `before` have in flight is still counted.
    pub fn new(file: AuthFile, stats: &Arc<AccessStats>, before: Option<&Self>) -> Self {
        let anonymous = file.names.iter().find(|name| name.name == ANONYMOUS);
        let shared = anonymous.map(|name| name.scopes.clone()).unwrap_or_default();
        let (mut by_token, mut by_certificate) = (HashMap::new(), HashMap::new());
        let (mut usages, mut everybody) = (HashMap::new(), None);
        for name in file.names {
            let AuthName { name, credentials, mut scopes, rate, in_flight } = name;
            let is_anonymous = name == ANONYMOUS;
            if !is_anonymous {
                scopes.extend(shared.iter().cloned());
            }
            let name: Arc<str> = name.into();
            let usage = before.and_then(|table| table.usages.get(&name)).cloned();
            let usage = usage.unwrap_or_default();
            usages.insert(Arc::clone(&name), Arc::clone(&usage));
            let limits = NameLimits { rate, in_flight, usage };
            let entry =
                NameEntry::new(CallerGrant { name, scopes, limits, stats: Arc::clone(stats) });
            for credential in credentials {
                match credential {
                    AuthCredential::Token(hash) => by_token.insert(hash, Arc::clone(&entry)),
                    AuthCredential::Certificate(name) => {
                        by_certificate.insert(name, Arc::clone(&entry))
                    }
                };
            }
            if is_anonymous {
                everybody = Some(entry);
            }
        }
        let anonymous = everybody.unwrap_or_else(|| {
            let limits = NameLimits { rate: None, in_flight: None, usage: Arc::default() };
            let (name, scopes) = (ANONYMOUS.into(), Vec::new());
            NameEntry::new(CallerGrant { name, scopes, limits, stats: Arc::clone(stats) })
        });
        Self { by_token, by_certificate, anonymous, usages }
    }

    pub fn count(&self) -> usize {
        self.usages.len()
    }

    pub fn find_token(&self, token: &[u8]) -> Option<&Arc<NameEntry>> {
        let hash = Sha256::digest(token);
        self.by_token.get(hash.as_slice())
    }

    /// The first of a certificate's names that the file has.
    pub fn find_certificate(&self, names: &[CertificateName]) -> Option<&Arc<NameEntry>> {
        names.iter().find_map(|name| self.by_certificate.get(name))
    }
}

impl NameEntry {
    fn new(grant: CallerGrant) -> Arc<Self> {
        Arc::new(Self { grant: Arc::new(grant), context: OnceLock::new() })
    }

    /// The state of the frontends for requests of this name, which are not checked again.
    /// `client`: by name, where clients are served in turn.
    pub fn context(
        &self,
        base: &FrontendContext,
        client: impl FnOnce(&str) -> Option<Arc<FairClient>>,
    ) -> &Arc<FrontendContext> {
        self.context.get_or_init(|| {
            let (caller, client) = (Some(Arc::clone(&self.grant)), client(&self.grant.name));
            Arc::new(FrontendContext { access: None, caller, client, ..base.clone() })
        })
    }
}

impl CallerGrant {
    /// # Errors
    /// The name lacks a scope that the endpoint needs.
    pub fn authorize(&self, endpoint: &EndpointAccess<'_>) -> Result<(), AccessRefusal> {
        let (kind, models) = (endpoint.kind(), endpoint.models);
        let lacks = |group: &&ApiGroup| {
            !self.scopes.iter().any(|scope| scope.allows(kind, **group, models))
        };
        let Some(group) = endpoint.groups.iter().find(lacks) else { return Ok(()) };
        let scope = NeededScope { kind, group: *group, models }.to_string();
        Err(match &*self.name {
            ANONYMOUS => AccessRefusal::NoToken(scope),
            name => AccessRefusal::MissingScope { name: name.to_owned(), scope },
        })
    }

    /// The same for inference by `model`, which counts a refusal.
    ///
    /// # Errors
    /// The name may not use the model.
    pub fn authorize_inference(&self, model: &str) -> Result<(), AccessRefusal> {
        let models = AccessedModels::from_name(model);
        let endpoint = EndpointAccess::for_models(&[ApiGroup::Inference], models);
        debug_assert_eq!(endpoint.kind(), AccessKind::Infer);
        self.authorize(&endpoint).inspect_err(|refusal| self.count(refusal))
    }

    /// Counts a request, until what is returned is dropped.
    ///
    /// # Errors
    /// It exceeds a limit of the name.
    pub fn admit(&self) -> Result<Option<InFlightRequest>, AccessRefusal> {
        let NameLimits { rate: None, in_flight: None, .. } = self.limits else {
            return self.limits.admit(&self.name, now_ns());
        };
        Ok(None)
    }

    pub fn count(&self, refusal: &AccessRefusal) {
        if let Some(reason) = refusal.reason() {
            self.stats.count_refusal(reason);
        }
    }
}
