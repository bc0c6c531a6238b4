//! Which client a request is of, where clients are served in turn: by a header, or by the names of
//! the auth file.

use http::HeaderMap;
use std::sync::Arc;
use trtserver_base::fair_clients::{FairClient, FairClients};
use trtserver_config::{ClientSource, FairnessSettings};

/// Tells clients apart.
pub struct ClientLookup {
    source: ClientSource,
    pub clients: Arc<FairClients>,
}

impl ClientLookup {
    pub fn new(settings: &FairnessSettings) -> Self {
        let clients = FairClients::new(&settings.weights);
        Self { source: settings.source.clone(), clients }
    }

    /// The client of a request with these headers; `None` where names tell them apart.
    pub fn by_header(&self, headers: &HeaderMap) -> Option<Arc<FairClient>> {
        let ClientSource::Header(header) = &self.source else { return None };
        let value = headers.get(header).filter(|value| !value.is_empty());
        Some(match value {
            // Any bytes are a name.
            Some(value) => self.clients.named(&String::from_utf8_lossy(value.as_bytes())),
            None => self.clients.unnamed(),
        })
    }

    /// The client with a name of the auth file; `None` where a header tells them apart.
    pub fn by_name(&self, name: &str) -> Option<Arc<FairClient>> {
        (self.source == ClientSource::AuthNames).then(|| self.clients.named(name))
    }
}

#[cfg(test)]
#[path = "fairness_tests.rs"]
mod tests;
