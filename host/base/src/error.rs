//! The error type of the server: a code, and a message for the client.
//!
//! `net` maps codes to HTTP and gRPC statuses.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

/// What a refused client is advised to wait unless the error says it, in seconds (`Retry-After`).
const RETRY_AFTER_SECS: u32 = 1;

/// Error codes, the same for both protocol generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    Unknown,
    Internal,
    NotFound,
    /// The request is invalid.
    InvalidArg,
    /// Server or model not ready, queue full, queue timeout.
    Unavailable,
    Unsupported,
    AlreadyExists,
    /// The client cancelled the request.
    Cancelled,
    /// A limit on memory, or the request would wait too long: the client may try later, or send
    /// less.
    ResourceExhausted,
    /// The client sent the request too slowly.
    RequestTimeout,
    /// The request needs a token.
    Unauthenticated,
    /// The name of the caller may not do this.
    PermissionDenied,
}

impl Code {
    /// The caller may not do what the request asks for.
    pub fn is_access_refusal(self) -> bool {
        matches!(self, Self::Unauthenticated | Self::PermissionDenied)
    }

    /// As Triton writes it before the text of an error in its log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "Unknown",
            Self::Internal => "Internal",
            Self::NotFound => "Not found",
            Self::InvalidArg => "Invalid argument",
            Self::Unavailable => "Unavailable",
            Self::Unsupported => "Unsupported",
            Self::AlreadyExists => "Already exists",
            Self::Cancelled => "Cancelled",
            Self::ResourceExhausted => "Resource exhausted",
            Self::RequestTimeout => "Request timeout",
            Self::Unauthenticated => "Unauthenticated",
            Self::PermissionDenied => "Permission denied",
        }
    }
}

/// An error that a client sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    /// Names its subject (model, tensor or file), what was expected and what was found.
    pub message: String,
    /// The backend reports that the instance which sends this cannot execute any more.
    pub model_broken: bool,
    /// Refused early: when it is worth to try again, in milliseconds.
    pub retry_after_ms: Option<NonZeroU32>,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), model_broken: false, retry_after_ms: None }
    }

    /// RESOURCE_EXHAUSTED for a request that may be sent again after `wait`.
    pub fn retry_later(message: impl Into<String>, wait: Duration) -> Self {
        // Rounded up: a client that comes back earlier is refused again.
        let ms = u32::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX);
        let retry_after_ms = Some(NonZeroU32::new(ms).unwrap_or(NonZeroU32::MIN));
        Self { retry_after_ms, ..Self::new(Code::ResourceExhausted, message) }
    }

    /// The value of `Retry-After`, if the client may try later.
    pub fn retry_after_secs(&self) -> Option<u32> {
        (self.code == Code::ResourceExhausted)
            .then(|| self.retry_after_ms.map_or(RETRY_AFTER_SECS, |ms| ms.get().div_ceil(1000)))
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArg, message)
    }

    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Code::Unavailable, message)
    }

    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Code::Unsupported, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
