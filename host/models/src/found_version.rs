//! The result of a look-up for inference, and the version that executes the request: the one that
//! was found, or the one on which the request's sequence began.

use super::OpenVersion;
use std::ops::Deref;
use std::sync::Arc;
use trtserver_request::RequestSequence;

/// The version that a request for inference found. Its signature is what the request is read by.
#[derive(Clone)]
pub struct FoundVersion {
    served: Arc<OpenVersion>,
    /// The request names the version.
    exact: bool,
}

impl FoundVersion {
    pub(super) fn new(served: Arc<OpenVersion>, exact: bool) -> Self {
        Self { served, exact }
    }

    /// The same for a request that names no version.
    #[must_use]
    pub fn as_default(self) -> Self {
        Self { exact: false, ..self }
    }

    /// The version that executes a request of this sequence, before its tensors are read: the
    /// replaced version on which the sequence began, if the request continues it, else the version
    /// that was found.
    pub fn executing(&self, sequence: &RequestSequence) -> Arc<OpenVersion> {
        let began = self.served.begun_on(sequence, self.exact);
        began.unwrap_or_else(|| Arc::clone(&self.served))
    }

    /// As [`FoundVersion::executing`] for a request whose tensors were read for the version that
    /// was found: a replaced version with other tensors cannot execute it.
    pub fn executing_as_read(&self, sequence: &RequestSequence) -> Arc<OpenVersion> {
        let began = self.served.begun_on(sequence, self.exact);
        let began = began.filter(|began| began.signature.has_same_tensors(&self.served.signature));
        began.unwrap_or_else(|| Arc::clone(&self.served))
    }

    /// The version that was found.
    pub fn into_served(self) -> Arc<OpenVersion> {
        self.served
    }
}

impl Deref for FoundVersion {
    type Target = OpenVersion;

    fn deref(&self) -> &OpenVersion {
        &self.served
    }
}
