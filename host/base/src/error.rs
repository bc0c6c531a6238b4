//! The error type of the server: a code, and a message for the client.
//!
//! `net` maps codes to HTTP and gRPC statuses.

use std::fmt;

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
    /// A limit on memory: the client may try later, or send less.
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
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), model_broken: false }
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
