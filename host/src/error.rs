//! The one error that leaves a part of the server: a code, and a message written for the caller.
//!
//! How a code looks on a wire is decided in `net` alone; nothing here knows HTTP or gRPC.

use std::fmt;

/// Classes of failure, the same for both protocol generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    Unknown,
    Internal,
    NotFound,
    /// The caller's mistake.
    InvalidArg,
    /// Not now: server or model not ready, queue full, deadline passed in the queue.
    Unavailable,
    Unsupported,
    AlreadyExists,
    /// Nobody waits for the answer any more.
    Cancelled,
}

/// A failure that a caller sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub code: Code,
    /// Starts with the subject, names model and tensor, shows what was expected and what was found.
    pub message: String,
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
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
