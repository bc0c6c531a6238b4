//! Settings of a client: where the server is, how to speak to it, and the limits of every call.

use crate::deadline::Deadline;
use crate::error::{Error, Result};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Limit of one attempt to connect, TLS handshake included.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest response, decompressed: the limit of gRPC.
pub const DEFAULT_MAX_RESPONSE_BYTES: usize = i32::MAX as usize;

/// The wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// HTTP/1.1.
    #[default]
    Http,
    /// gRPC over HTTP/2.
    Grpc,
}

impl FromStr for Protocol {
    type Err = Error;

    /// Any case, as the v1 Python library has it.
    fn from_str(text: &str) -> Result<Self> {
        match text.to_ascii_lowercase().as_str() {
            "http" => Ok(Self::Http),
            "grpc" => Ok(Self::Grpc),
            _ => {
                Err(Error::invalid(format!("unexpected protocol: {text}, expecting HTTP or gRPC")))
            }
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http => "HTTP",
            Self::Grpc => "gRPC",
        })
    }
}

/// Compression of request and response bodies: v2 over HTTP, and gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compression {
    /// The gzip format.
    Gzip,
    /// The zlib format.
    Deflate,
}

impl Compression {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Deflate => "deflate",
        }
    }
}

/// How a server is verified and a client identifies itself. All contents are PEM.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Tls {
    /// Certificates of the authorities to trust, instead of the system's.
    pub authorities: Option<Vec<u8>>,
    /// The client's certificate chain; needs `key`.
    pub certificate: Option<Vec<u8>>,
    /// The key of `certificate`.
    pub key: Option<Vec<u8>>,
    /// The name that the server's certificate must have, instead of the host of the URL.
    pub server_name: Option<String>,
    /// Accepts any certificate. For tests: the connection is encrypted, but may lead anywhere.
    pub insecure: bool,
}

impl fmt::Debug for Tls {
    /// Shows all fields except the private key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("authorities", &self.authorities.is_some())
            .field("certificate", &self.certificate.is_some())
            .field("server_name", &self.server_name)
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

/// Everything a client is made from. `Settings::new(url)` has the defaults.
///
/// URLs: `HOST`, `HOST:PORT`, `http://HOST:PORT/PREFIX`, `https://…`, `grpc://…`, `grpcs://…`,
/// `unix:PATH`. Without a port, `http` and `https` mean 80 and 443, everything else the server's
/// defaults, 8000 (HTTP) and 8001 (gRPC).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// See above.
    pub url: String,
    /// The schemes `grpc` and `grpcs` choose gRPC whatever is set here.
    pub protocol: Protocol,
    /// Sent with every request: HTTP headers, or gRPC metadata.
    pub headers: Vec<(String, String)>,
    /// Limit of every call. gRPC servers are informed of it.
    pub deadline: Deadline,
    /// Limit of making a connection, TLS handshake included.
    pub connect_timeout: Duration,
    /// How often a refused connection is tried again, after 50, 100, 200 ms and so on, within the
    /// deadline. A request that may have reached the server is never sent twice.
    pub connect_retries: u32,
    /// `https` and `grpcs` use TLS also without it.
    pub tls: Option<Tls>,
    /// Compression of requests; the response is asked for in the same.
    pub compression: Option<Compression>,
    /// Larger responses are refused before memory is allocated for them.
    pub max_response_bytes: usize,
    /// Writes requests and responses, without tensors, to standard error.
    pub verbose: bool,
}

impl Settings {
    /// The defaults, for this address.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            protocol: Protocol::default(),
            headers: Vec::new(),
            deadline: Deadline::default(),
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            connect_retries: 0,
            tls: None,
            compression: None,
            max_response_bytes: DEFAULT_MAX_RESPONSE_BYTES,
            verbose: false,
        }
    }

    /// The wire, unless the scheme of the URL chooses it.
    #[must_use]
    pub fn protocol(mut self, protocol: Protocol) -> Self {
        self.protocol = protocol;
        self
    }

    /// One more header of every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Limit of every call; `None` waits for ever.
    #[must_use]
    pub fn deadline(mut self, deadline: Option<Duration>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// The limit of a call that gives none; calls that load or unload a model may have a longer
    /// one.
    ///
    /// # Errors
    /// The environment variable of the usual deadline is not a number.
    pub fn call_deadline(&self) -> Result<Option<Duration>> {
        Ok(self.deadline.limits()?.call)
    }

    /// Compression of requests and responses; `None`: none.
    #[must_use]
    pub fn compression(mut self, compression: Option<Compression>) -> Self {
        self.compression = compression;
        self
    }

    /// TLS with these settings, whatever the scheme.
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Whether requests and responses are written to standard error.
    #[must_use]
    pub fn verbose(mut self, verbose: bool) -> Self {
        self.verbose = verbose;
        self
    }
}
