//! Why the access check refuses a request, and how each protocol says so.

use super::CallerProtocol;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use std::time::Duration;
use trtserver_base::access_stats::AccessRefusalReason;
use trtserver_base::error::{Code, Error};

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessRefusal {
    /// The endpoint is restricted: the request has no header of this name with the value that the
    /// start line gives.
    MissingHeader(String),
    /// Control is served at the control listener only, and inference is not served there.
    WrongListener,
    /// With the scope that the endpoint needs.
    NoToken(String),
    UnknownToken,
    MissingScope {
        name: String,
        scope: String,
    },
    TooFast {
        name: String,
        rate: u32,
        wait: Duration,
    },
    TooMany {
        name: String,
        in_flight: u32,
    },
}

impl AccessRefusal {
    /// `None` for restrictions by header, which are not counted.
    pub fn reason(&self) -> Option<AccessRefusalReason> {
        Some(match self {
            Self::MissingHeader(_) => return None,
            Self::WrongListener => AccessRefusalReason::Listener,
            Self::NoToken(_) => AccessRefusalReason::NoToken,
            Self::UnknownToken => AccessRefusalReason::UnknownToken,
            Self::MissingScope { .. } => AccessRefusalReason::Scope,
            Self::TooFast { .. } => AccessRefusalReason::Rate,
            Self::TooMany { .. } => AccessRefusalReason::InFlight,
        })
    }

    /// The text of a restriction by header is Triton's.
    pub fn message(&self, protocol: CallerProtocol) -> String {
        match self {
            Self::MissingHeader(header) => {
                let what = match protocol {
                    CallerProtocol::Http => "API",
                    CallerProtocol::Grpc => "protocol",
                };
                format!("This {what} is restricted, expecting header '{header}'")
            }
            Self::WrongListener => {
                "this endpoint is not served at this listener: the server has a control listener \
                                    (--control-address, --control-grpc-address), which serves control but no inference"
                    .to_owned()
            }
            Self::NoToken(scope) => format!(
                "expected a token (header 'Authorization: Bearer TOKEN') or a client certificate of a name with scope \
                 {scope}, found none"
            ),
            Self::UnknownToken => "the token in header 'Authorization' is not valid".to_owned(),
            Self::MissingScope { name, scope } => {
                format!("'{name}' may not do this: it lacks scope {scope}")
            }
            Self::TooFast { name, rate, .. } => {
                format!("'{name}' may send {rate} requests a second, and sent more: send it later")
            }
            Self::TooMany { name, in_flight } => {
                format!(
                    "'{name}' may have {in_flight} requests in flight, and has them: send it later"
                )
            }
        }
    }

    pub fn http_status(&self) -> StatusCode {
        match self {
            Self::MissingHeader(_) | Self::WrongListener | Self::MissingScope { .. } => {
                StatusCode::FORBIDDEN
            }
            Self::NoToken(_) | Self::UnknownToken => StatusCode::UNAUTHORIZED,
            Self::TooFast { .. } | Self::TooMany { .. } => StatusCode::TOO_MANY_REQUESTS,
        }
    }

    /// Headers that go with the HTTP status.
    pub fn add_headers(&self, headers: &mut HeaderMap) {
        let challenge = match self {
            Self::NoToken(_) => "Bearer realm=\"trtserver\"",
            Self::UnknownToken => "Bearer realm=\"trtserver\", error=\"invalid_token\"",
            Self::TooFast { wait, .. } => {
                // Rounded up: a client that comes back earlier is refused again.
                let seconds = wait.as_nanos().div_ceil(1_000_000_000).max(1);
                headers.insert(RETRY_AFTER, u64::try_from(seconds).unwrap_or(u64::MAX).into());
                return;
            }
            Self::TooMany { .. } => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
                return;
            }
            _ => return,
        };
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static(challenge));
    }

    pub fn grpc_status(&self) -> tonic::Status {
        let code = match self {
            Self::MissingHeader(_) => tonic::Code::Unavailable,
            Self::WrongListener | Self::MissingScope { .. } => tonic::Code::PermissionDenied,
            Self::NoToken(_) | Self::UnknownToken => tonic::Code::Unauthenticated,
            Self::TooFast { .. } | Self::TooMany { .. } => tonic::Code::ResourceExhausted,
        };
        tonic::Status::new(code, self.message(CallerProtocol::Grpc))
    }

    /// For a request within a call that has begun.
    pub fn error(&self) -> Error {
        let code = match self {
            Self::NoToken(_) | Self::UnknownToken => Code::Unauthenticated,
            Self::TooFast { .. } | Self::TooMany { .. } => Code::ResourceExhausted,
            _ => Code::PermissionDenied,
        };
        Error::new(code, self.message(CallerProtocol::Grpc))
    }
}
