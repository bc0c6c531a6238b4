//! `X-Request-Id`: the response repeats the header of the request, on every endpoint of every
//! listener, and log lines that are written while the request is served contain it.

use http::{HeaderMap, HeaderName, HeaderValue};
use trtserver_base::request_id::{RequestId, RequestIdScope};

const NAME: HeaderName = HeaderName::from_static("x-request-id");

/// The id of a request that has one.
pub struct TracedRequest {
    header: HeaderValue,
    logged: RequestId,
    /// Set while the request is dropped.
    entered: Option<RequestIdScope>,
}

impl TracedRequest {
    /// Boxed, because most requests have none.
    pub fn from_headers(headers: &HeaderMap) -> Option<Box<Self>> {
        // Fewer instructions than a look-up, which computes a hash.
        if !headers.keys().any(|name| name.as_str().len() == NAME.as_str().len() && name == NAME) {
            return None;
        }
        let header = headers.get(NAME)?.clone();
        let logged = RequestId::new(header.as_bytes());
        Some(Box::new(Self { header, logged, entered: None }))
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
        headers.insert(NAME, self.header.clone());
    }
}
