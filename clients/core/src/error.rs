//! The error of every client call: what failed, the server's text, and which request of which
//! server it was.

use std::fmt;
use trtserver_proto::v1::RequestStatusCode;

/// The result of a call.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure an [`Error`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request is wrong: refused by the server, or by a check before it was sent.
    InvalidArgument,
    /// The server has no such model, version or region.
    NotFound,
    /// There is one of this name already.
    AlreadyExists,
    /// The server is there but cannot serve this now.
    Unavailable,
    /// The server, the protocol or the model does not have what was asked for.
    Unsupported,
    /// The server does not let this client do it.
    PermissionDenied,
    /// The client has dropped or cancelled the call.
    Cancelled,
    /// The deadline has passed, of the client or of the server's queue.
    DeadlineExceeded,
    /// The server, the model or this library has failed.
    Internal,
    /// The server does not say what it is.
    Unknown,
    /// No connection: refused, unknown host, failed TLS handshake. Nothing was sent.
    Connect,
    /// The connection ended before the response was complete.
    Connection,
    /// The response is not what the protocol says.
    Protocol,
}

impl Kind {
    /// The standard name of the failure, as gRPC spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Unavailable => "UNAVAILABLE",
            Self::Unsupported => "UNIMPLEMENTED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Cancelled => "CANCELLED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::Internal => "INTERNAL",
            Self::Unknown => "UNKNOWN",
            Self::Connect => "CONNECT",
            Self::Connection => "CONNECTION",
            Self::Protocol => "PROTOCOL",
        }
    }

    /// The gRPC status code that is nearest: 14 (UNAVAILABLE) for a connection that failed.
    #[must_use]
    pub fn grpc_code(self) -> i32 {
        match self {
            Self::Cancelled => 1,
            Self::Unknown => 2,
            Self::InvalidArgument => 3,
            Self::DeadlineExceeded => 4,
            Self::NotFound => 5,
            Self::AlreadyExists => 6,
            Self::PermissionDenied => 7,
            Self::Unsupported => 12,
            Self::Internal | Self::Protocol => 13,
            Self::Unavailable | Self::Connect | Self::Connection => 14,
        }
    }

    pub(crate) fn from_grpc_code(code: i32) -> Self {
        match code {
            1 => Self::Cancelled,
            3 | 9 | 11 => Self::InvalidArgument,
            4 => Self::DeadlineExceeded,
            5 => Self::NotFound,
            6 => Self::AlreadyExists,
            7 | 16 => Self::PermissionDenied,
            8 | 14 => Self::Unavailable,
            12 => Self::Unsupported,
            10 | 13 | 15 => Self::Internal,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn from_http_status(status: u16) -> Self {
        match status {
            400 | 405 | 411 | 413 | 415 | 422 => Self::InvalidArgument,
            401 | 403 => Self::PermissionDenied,
            404 => Self::NotFound,
            408 | 504 => Self::DeadlineExceeded,
            409 => Self::AlreadyExists,
            429 | 502 | 503 => Self::Unavailable,
            499 => Self::Cancelled,
            501 => Self::Unsupported,
            500 => Self::Internal,
            _ => Self::Unknown,
        }
    }

    pub(crate) fn from_v1(code: RequestStatusCode) -> Self {
        match code {
            RequestStatusCode::NotFound => Self::NotFound,
            RequestStatusCode::InvalidArg => Self::InvalidArgument,
            RequestStatusCode::Unavailable => Self::Unavailable,
            RequestStatusCode::Unsupported => Self::Unsupported,
            RequestStatusCode::AlreadyExists => Self::AlreadyExists,
            RequestStatusCode::Internal => Self::Internal,
            RequestStatusCode::Invalid
            | RequestStatusCode::Success
            | RequestStatusCode::Unknown => Self::Unknown,
        }
    }
}

/// Why a call failed. Printed as `MESSAGE (WHAT WAS ASKED OF WHOM)`.
#[derive(Clone)]
pub struct Error(Box<ErrorParts>);

#[derive(Clone, Debug)]
struct ErrorParts {
    kind: Kind,
    message: String,
    asked: String,
    server_id: String,
    request_id: u64,
    id: String,
    from_server: bool,
    code: Option<i32>,
    v1_code: Option<RequestStatusCode>,
}

impl Error {
    /// An error of the client, of which no request is known.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self(Box::new(ErrorParts {
            kind,
            message: message.into(),
            asked: String::new(),
            server_id: String::new(),
            request_id: 0,
            id: String::new(),
            from_server: false,
            code: None,
            v1_code: None,
        }))
    }

    /// An argument that is wrong; nothing was sent.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::InvalidArgument, message)
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::new(Kind::Protocol, message)
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The text alone: the server's as it was received, or that of the failed check.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What was asked of whom: method and URL. Empty where a check failed before a request was
    /// made.
    #[must_use]
    pub fn asked(&self) -> &str {
        &self.0.asked
    }

    /// The server's name for itself; v1 only, empty for errors that are not the server's.
    #[must_use]
    pub fn server_id(&self) -> &str {
        &self.0.server_id
    }

    /// The server's number of the request; v1 only, 0 for errors that are not the server's.
    #[must_use]
    pub fn request_id(&self) -> u64 {
        self.0.request_id
    }

    /// The id that the inference request had, where it is known: errors on streams.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.0.id
    }

    /// True if the server refused or failed the request; false for local checks, connections and
    /// malformed responses.
    #[must_use]
    pub fn is_from_server(&self) -> bool {
        self.0.from_server
    }

    /// The status code as it was received (gRPC or HTTP), otherwise the gRPC code of the kind.
    #[must_use]
    pub fn code(&self) -> i32 {
        self.0.code.unwrap_or_else(|| self.0.kind.grpc_code())
    }

    /// The kind as v1 names it. Failures of the connection are INTERNAL there.
    #[must_use]
    pub fn v1_code(&self) -> RequestStatusCode {
        if let Some(code) = self.0.v1_code {
            return code;
        }
        match self.0.kind {
            Kind::InvalidArgument => RequestStatusCode::InvalidArg,
            Kind::NotFound => RequestStatusCode::NotFound,
            Kind::AlreadyExists => RequestStatusCode::AlreadyExists,
            Kind::Unavailable => RequestStatusCode::Unavailable,
            Kind::Unsupported => RequestStatusCode::Unsupported,
            Kind::Unknown => RequestStatusCode::Unknown,
            _ => RequestStatusCode::Internal,
        }
    }

    /// Names the request, unless it is named already.
    #[must_use]
    pub fn with_asked(mut self, asked: impl FnOnce() -> String) -> Self {
        if self.0.asked.is_empty() {
            self.0.asked = asked();
        }
        self
    }

    /// Adds the model to what was asked, unless it is there.
    pub(crate) fn with_model(mut self, model: &str) -> Self {
        let named = format!(", model '{model}'");
        if !self.0.asked.is_empty() && !self.0.asked.contains(&named) {
            self.0.asked += &named;
        }
        self
    }

    pub(crate) fn refused_by_server(mut self, code: i32) -> Self {
        self.0.from_server = true;
        self.0.code = Some(code);
        self
    }

    pub(crate) fn with_server(mut self, server_id: &str, request_id: u64) -> Self {
        self.0.server_id = server_id.to_owned();
        self.0.request_id = request_id;
        self
    }

    pub(crate) fn with_id(mut self, id: impl Into<String>) -> Self {
        self.0.id = id.into();
        self
    }

    pub(crate) fn with_v1_code(mut self, code: RequestStatusCode) -> Self {
        self.0.v1_code = Some(code);
        self
    }

    pub(crate) fn map_message(mut self, map: impl FnOnce(&str) -> String) -> Self {
        self.0.message = map(&self.0.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if !self.0.asked.is_empty() {
            write!(f, " ({})", self.0.asked)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Error {}

/// The root cause of an error ("Connection refused"), without its wrappers ("client error").
pub(crate) fn innermost_error(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
