//! `X-Request-Id`: the response repeats the header of the request, on every endpoint of every
//! listener, and log lines that are written while the request is served contain it. A request of
//! the access log is followed in the same way, with or without the header.

use crate::access_log::{AccessEntry, ConnectionAccess};
use http::{HeaderMap, HeaderName, HeaderValue, Request};
use std::sync::Arc;
use trtserver_base::request_id::{RequestId, RequestIdScope};

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// A request that has an id, or is in the access log.
pub struct TracedRequest {
    header: Option<HeaderValue>,
    logged: RequestId,
    /// Until the response takes it.
    access: Option<Box<AccessEntry>>,
    /// Set while the request is dropped.
    entered: Option<RequestIdScope>,
}

impl TracedRequest {
    /// Boxed, because most requests have no id.
    pub fn begin<B>(request: &Request<B>, access: Option<&ConnectionAccess>) -> Option<Box<Self>> {
        let header = header_value(request.headers());
        let (logged, access) = match access {
            None => (RequestId::new(header.as_ref()?.as_bytes()), None),
            Some(access) => {
                let entry = AccessEntry::begin(access, request, header.clone());
                let observer = Arc::clone(entry.call()) as _;
                let id = header.as_ref().map(HeaderValue::as_bytes);
                (RequestId::observed(id, observer), Some(Box::new(entry)))
            }
        };
        Some(Box::new(Self { header, logged, access, entered: None }))
    }

    /// Lines of this thread contain the id until the result is dropped.
    pub fn enter(&self) -> RequestIdScope {
        self.logged.enter()
    }

    /// The same until `self` is dropped.
    pub fn enter_for_drop(&mut self) {
        self.entered = Some(self.logged.enter());
    }

    pub fn add_to(&self, headers: &mut HeaderMap) {
        if let Some(header) = &self.header {
            headers.insert(NAME, header.clone());
        }
    }

    /// `None` unless the request is in the access log.
    pub fn access(&self) -> Option<&AccessEntry> {
        self.access.as_deref()
    }

    /// The response goes on with it.
    pub fn take_access(&mut self) -> Option<Box<AccessEntry>> {
        self.access.take()
    }
}

fn header_value(headers: &HeaderMap) -> Option<HeaderValue> {
    // Fewer instructions than a look-up, which computes a hash.
    if !headers.keys().any(|name| name.as_str().len() == NAME.as_str().len() && name == NAME) {
        return None;
    }
    headers.get(NAME).cloned()
}
