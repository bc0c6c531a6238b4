//! Connections to one server and the exchange of whole requests and responses over them: HTTP/1.1
//! and gRPC.

pub(crate) mod body;
pub(crate) mod compress;
mod connect;
pub(crate) mod direct;
pub(crate) mod grpc;
pub(crate) mod http;
mod http2;
mod no_sigpipe;
#[cfg(feature = "tls")]
mod tls;
#[cfg(any(test, not(feature = "tls")))]
mod tls_absent;
mod verbose;

#[cfg(feature = "tls")]
pub use tls::TlsClient;
#[cfg(feature = "tls")]
use tls::tls_client;
#[cfg(not(feature = "tls"))]
pub use tls_absent::TlsClient;
#[cfg(not(feature = "tls"))]
use tls_absent::tls_client;

use crate::address::ServerAddress;
use crate::borrow::Borrow;
use crate::error::{Error, Kind, Result};
use crate::settings::{Protocol, Settings};
use crate::sync::Mutex;
use ::http::{HeaderMap, HeaderName, HeaderValue};
use connect::SocketConnector;
use direct::{DirectTransport, enter_runtime};
use http::ConnectionPool;
use http2::Http2;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// How long a connection may hold on to the memory of a request that has ended.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);

/// The connections of a client. They belong to the tokio runtime that first used them.
pub(crate) struct ClientTransport {
    pub address: ServerAddress,
    pub max_response_bytes: usize,
    headers: HeaderMap,
    verbose: bool,
    connections: Connections,
    /// Connections of a blocking client, which the calling threads use themselves.
    direct: Option<DirectTransport>,
}

enum Connections {
    Http(ConnectionPool),
    Grpc(Http2),
}

/// When the parts of an exchange happened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallTiming {
    pub start: Instant,
    /// The last byte of the request was handed to the socket.
    pub sent: Instant,
    /// The head of the response was there.
    pub first_byte: Instant,
    pub end: Instant,
}

impl ClientTransport {
    pub fn new(settings: &Settings) -> Result<Self> {
        let address = ServerAddress::parse(settings)?;
        let mut headers = HeaderMap::new();
        for (name, value) in &settings.headers {
            let refuse = || Error::invalid(format!("`{name}: {value}` is not a header"));
            let name = HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| refuse())?;
            headers.append(name, HeaderValue::from_str(value.trim()).map_err(|_| refuse())?);
        }
        let connector = SocketConnector::new(&address, settings)?;
        let connections = match address.protocol {
            Protocol::Http => Connections::Http(ConnectionPool::new(connector)),
            Protocol::Grpc => Connections::Grpc(Http2::new(connector)),
        };
        Ok(Self {
            address,
            max_response_bytes: settings.max_response_bytes,
            headers,
            verbose: settings.verbose,
            connections,
            direct: None,
        })
    }

    /// As [`new`](Self::new), for a blocking client. TLS and verbose calls need hyper.
    pub fn new_direct(settings: &Settings) -> Result<Self> {
        let mut transport = Self::new(settings)?;
        if !transport.verbose && !transport.connector().is_encrypted() {
            transport.direct = Some(DirectTransport::default());
        }
        Ok(transport)
    }

    fn connector(&self) -> &SocketConnector {
        match &self.connections {
            Connections::Http(pool) => &pool.connector,
            Connections::Grpc(http2) => &http2.connector,
        }
    }

    pub fn protocol(&self) -> Protocol {
        self.address.protocol
    }

    /// Ends every connection, also in the middle of a request: no task reads a request's memory
    /// afterwards, once the aborted tasks have run.
    pub fn abort(&self) {
        match &self.connections {
            Connections::Http(pool) => pool.abort(),
            Connections::Grpc(http2) => http2.abort(),
        }
        if let Some(direct) = &self.direct {
            direct.abort();
        }
    }

    /// Waits until no connection reads borrowed memory any more. A connection that holds on to it,
    /// because the server does not read, is ended.
    pub async fn settle(&self, borrow: &Borrow) {
        if borrow.is_released() {
            return;
        }
        enter_runtime().await;
        if tokio::time::timeout(RELEASE_LIMIT, borrow.released()).await.is_err() {
            self.abort();
            borrow.released().await;
        }
    }

    fn no_http() -> Error {
        Error::new(Kind::Unsupported, "this call needs HTTP, the client was made for gRPC")
    }

    fn no_grpc() -> Error {
        Error::new(Kind::Unsupported, "this call needs gRPC, the client was made for HTTP")
    }
}

/// The tasks of all connections of a client. It is the executor on which hyper spawns its tasks.
#[derive(Clone, Default)]
struct ConnectionTasks(Arc<Mutex<Vec<AbortHandle>>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for ConnectionTasks {
    fn execute(&self, future: F) {
        self.spawn(future);
    }
}

impl ConnectionTasks {
    fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let task = tokio::spawn(future).abort_handle();
        let mut tasks = self.0.lock();
        tasks.retain(|task| !task.is_finished());
        tasks.push(task.clone());
        task
    }

    fn abort(&self) {
        self.0.lock().drain(..).for_each(|task| task.abort());
    }
}

/// After this time a kept connection is polled before it is used, to see whether the server closed
/// it.
const STALE: Duration = Duration::from_millis(200);

/// Lets the tasks of a connection that was idle see that the server has closed it. A runtime that
/// runs on the calling thread polls its sockets at the first turn, and wakes one task after the
/// other at the next.
async fn notice_close(idle: Duration) {
    if idle > STALE {
        for _ in 0..4 {
            tokio::task::yield_now().await;
        }
    }
}

/// The point in time that a call with this limit must not pass.
pub(crate) fn deadline_after(limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| Instant::now().checked_add(limit))
}

/// Runs a call, at most until its deadline.
pub(crate) async fn within_deadline<T>(
    deadline: Option<Instant>,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    let Some(at) = deadline else { return call.await };
    let begun = Instant::now();
    match tokio::time::timeout_at(at.into(), call).await {
        Ok(result) => result,
        Err(_) => Err(deadline_exceeded(begun)),
    }
}

fn deadline_exceeded(begun: Instant) -> Error {
    let waited = begun.elapsed().as_secs_f64();
    let text = format!("deadline exceeded: no complete response after {waited:.3} seconds");
    Error::new(Kind::DeadlineExceeded, text)
}
