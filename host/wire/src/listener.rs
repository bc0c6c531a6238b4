//! Listeners: accept connections, each of which is a task, and shut down gracefully. `bind` opens
//! their sockets.

use super::access_log::{self, ConnectionAccess};
use super::bind::BoundListener;
use super::connections::{
    CLOSED_BY_ORDER, ConnectionEntry, ConnectionPeer, ConnectionState, Connections, CountStreams,
    GuardedConnection, MovingConnection, ParkingConnection, PeerAddress, PrefaceWatch, Wire,
};
use super::disconnect::DisconnectWatch;
use super::grpc::first_poll::{self, NewStreams};
use super::http::body::BoxError;
use super::http::head_copy;
use super::infallible_response::InfallibleResponse;
use super::request_body::RequestBody;
use super::request_id::TracedRequest;
use super::socket::SocketStream;
use super::task::Task;
use super::tls::TlsEndpoint;
use super::unread::ConnectionUnread;
use super::watched_body::WatchedBody;
use bytes::Buf;
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::watch;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::heap;
use trtserver_config::UnreadLimits;
use trtserver_telemetry::access_log::AccessLog;

/// Grace period of a shutdown, after which idle connections and unsent responses are dropped.
const GRACE: Duration = Duration::from_secs(1);
/// Failures to accept come in floods: one log line per this time.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// Flow-control windows of HTTP/2: a tensor of some megabytes is sent without waiting for window
/// updates.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
const MAX_FRAME: u32 = 1 << 20;
const MAX_STREAMS: u32 = 1000;
/// Headers of one call, each with 32 bytes in addition to its own: as much as gRPC's own servers
/// accept.
const MAX_HEADER_LIST: u32 = 16 << 10;
/// Streams that the client resets before they are accepted ("rapid reset"). hyper's default is 20,
/// beyond which it closes the connection: a client that cancels all its calls would lose the others
/// with them.
const MAX_PENDING_RESETS: usize = MAX_STREAMS as usize;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    Http1,
    /// HTTP/2, for gRPC.
    Http2 {
        ping: Option<Ping>,
    },
}

impl Protocol {
    /// As the access log names it.
    fn wire_name(self) -> &'static str {
        match self {
            Self::Http1 => "http",
            Self::Http2 { .. } => "grpc",
        }
    }

    fn wire(self) -> Wire {
        match self {
            Self::Http1 => Wire::Http1,
            Self::Http2 { .. } => Wire::Http2,
        }
    }
}

/// HTTP/2 keep-alive pings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ping {
    pub interval: Duration,
    /// After which a connection without an answer is closed.
    pub timeout: Duration,
}

/// Limits of one connection.
#[derive(Clone, Copy)]
pub struct ConnectionLimits {
    /// Interval of TCP keep-alive probes.
    pub tcp_keepalive: Option<Duration>,
    pub unread: UnreadLimits,
}

/// How the connections of a listener are served.
#[derive(Clone)]
pub struct ListenerService<H> {
    pub protocol: Protocol,
    pub handler: H,
    pub limits: ConnectionLimits,
    /// `None`: plain text. Unix sockets have plain text in any case.
    pub tls: Option<Arc<TlsEndpoint>>,
    /// `None`: its requests are not in the access log.
    pub access_log: Option<Arc<AccessLog>>,
    /// The runtime of heavy connections ([`MovingConnection`]).
    pub heavy: Handle,
}

/// Serves the requests of a listener.
pub trait Handler: Clone + Send + Sync + 'static {
    type Body: Body<Data: Buf + Send, Error = BoxError> + Send + 'static;

    /// The handler of one connection: what each request counts a reference to is of that connection
    /// alone, so that connections on other processors do not wait for its cache line.
    fn for_connection(&self) -> Self {
        self.clone()
    }

    /// Serves `request`, whose head was read at `received_ns`. Dropping the future cancels the
    /// request.
    fn handle(
        &self,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<Self::Body>> + Send + use<Self>;
}

impl<H, F, B> Handler for H
where
    H: Fn(Request<RequestBody>, u64) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<B>> + Send + 'static,
    B: Body<Data: Buf + Send, Error = BoxError> + Send + 'static,
{
    type Body = B;

    fn handle(
        &self,
        request: Request<RequestBody>,
        received_ns: u64,
    ) -> impl Future<Output = Response<B>> + Send + use<H, F, B> {
        self(request, received_ns)
    }
}

/// Serves a listener until `stop` turns true, then lets connections complete their requests within
/// the grace period.
pub async fn serve_connections(
    bound: BoundListener,
    service: ListenerService<impl Handler>,
    connections: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
) -> Result<()> {
    let address = bound.address.clone();
    let service = Arc::new(service);
    let listener = bound.into_listener().map_err(|e| Error::internal(format!("{address}: {e}")))?;
    let mut warned = None;
    loop {
        let accept = async {
            connections.admit().await;
            if service.tls.is_some() {
                connections.admit_handshake().await;
            }
            listener.accept().await
        };
        let accepted = tokio::select! {
            accepted = accept => accepted,
            _ = stop.changed() => break,
        };
        match accepted {
            Ok(accepted) => begin_connection(accepted, Arc::clone(&service), &connections),
            Err(e) => {
                // Most likely out of file descriptors: close an idle connection, and wait for
                // others to close.
                connections.evict();
                if warned.is_none_or(|at: Instant| at.elapsed() > WARN_EVERY) {
                    tracing::warn!("{address}: failed to accept a connection: {e}");
                    warned = Some(Instant::now());
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    drop(listener);
    connections.end_all(GRACE).await;
    Ok(())
}

/// Shakes hands if the listener has TLS, and serves the connection.
fn begin_connection(
    (stream, address): (SocketStream, PeerAddress),
    service: Arc<ListenerService<impl Handler>>,
    connections: &Arc<Connections>,
) {
    stream.configure(service.limits.tcp_keepalive);
    let entry = connections.add(service.protocol.wire());
    match (service.tls.clone(), stream) {
        (Some(tls), SocketStream::Tcp(stream)) => {
            let handshake = entry.begin_handshake();
            tokio::spawn(async move {
                let encrypted = tls.accept(stream, entry.state()).await;
                drop(handshake);
                if let Some(stream) = encrypted {
                    entry.state().handshake_ended();
                    serve_stream(stream, address, service, entry);
                }
            });
        }
        (_, stream) => serve_stream(stream, address, service, entry),
    }
}

fn serve_stream<H: Handler>(
    stream: SocketStream,
    address: PeerAddress,
    service: Arc<ListenerService<H>>,
    entry: ConnectionEntry,
) {
    let certificate_names = stream.certificate_names();
    entry.state().set_peer(ConnectionPeer { address, certificate_names });
    let (state, heavy) = (Arc::clone(entry.state()), service.heavy.clone());
    match service.protocol {
        Protocol::Http1 => {
            let make_service = move |watch| http1_service(&service, watch);
            let connection = ParkingConnection::new(stream, make_service, entry);
            Task::spawn(MovingConnection::new(connection, state, heavy));
        }
        Protocol::Http2 { ping } => {
            let io = PrefaceWatch::new(stream, Arc::clone(&state));
            let new_streams = NewStreams::default();
            let executor =
                CountStreams { executor: new_streams.clone(), state: Arc::clone(&state) };
            let mut builder = http2::Builder::new(executor);
            if let Some(ping) = ping {
                // hyper then takes a lock and reads the clock for every frame.
                builder.timer(TokioTimer::new());
                builder.keep_alive_interval(ping.interval).keep_alive_timeout(ping.timeout);
            }
            let connection = builder
                .auto_date_header(false)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .max_frame_size(MAX_FRAME)
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(MAX_HEADER_LIST)
                .max_pending_accept_reset_streams(MAX_PENDING_RESETS)
                .serve_connection(TokioIo::new(io), http2_service(&service, Arc::clone(&state)));
            let connection = Box::pin(GuardedConnection::new(connection, entry));
            let connection = first_poll::FirstPollConnection::new(connection, new_streams);
            let connection = Box::pin(async move {
                match connection.await {
                    Some(Ok(())) => {}
                    Some(Err(e)) => tracing::debug!("gRPC connection ended: {e}"),
                    None => tracing::debug!("gRPC connection ended: {CLOSED_BY_ORDER}"),
                }
                heap::trim_soon();
            });
            Task::spawn(MovingConnection::new(connection, state, heavy));
        }
    }
}

/// What the access log knows of the requests of a connection.
fn connection_access<H>(
    service: &ListenerService<H>,
    state: &ConnectionState,
) -> Option<ConnectionAccess> {
    let log = service.access_log.clone()?;
    let peer = state.connection_peer().address.to_string().into();
    Some(ConnectionAccess { log, wire: service.protocol.wire_name(), peer })
}

/// Serves the requests of an HTTP/1 connection until it parks.
fn http1_service<H: Handler>(
    service: &ListenerService<H>,
    watch: DisconnectWatch,
) -> impl Service<
    Request<Incoming>,
    Response = Response<WatchedBody<H::Body>>,
    Error = Infallible,
    Future: Send,
> + Send
+ use<H> {
    let handler = service.handler.for_connection();
    let access = connection_access(service, watch.state());
    let unread = ConnectionUnread::new(service.limits.unread);
    service_fn(move |mut request: Request<Incoming>| {
        head_copy::release_read_buffer(&mut request);
        let seen = watch.clone();
        if request.version() < Version::HTTP_11 {
            seen.set_http10();
        }
        seen.head_arrived();
        let traced = trace(&request, access.as_ref());
        let request = request.map(|body| RequestBody::http1(body, &seen, &unread));
        let response = handle_traced(&handler, request, traced.as_deref());
        InfallibleResponse { response, watch: Some(seen), traced }
    })
}

/// Serves the calls of an HTTP/2 connection.
fn http2_service<H: Handler>(
    service: &ListenerService<H>,
    state: Arc<ConnectionState>,
) -> impl Service<
    Request<Incoming>,
    Response = Response<WatchedBody<H::Body>>,
    Error = Infallible,
    Future: Send + 'static,
> + Send
+ use<H> {
    let handler = service.handler.for_connection();
    let access = connection_access(service, &state);
    let unread = ConnectionUnread::new(service.limits.unread);
    service_fn(move |request: Request<Incoming>| {
        let traced = trace(&request, access.as_ref());
        let request = request.map(|body| RequestBody::http2(body, &state, &unread));
        let response = handle_traced(&handler, request, traced.as_deref());
        InfallibleResponse { response, watch: None, traced }
    })
}

/// Passes a request on to the handler, for lines of the log with its id.
fn handle_traced<H: Handler>(
    handler: &H,
    mut request: Request<RequestBody>,
    traced: Option<&TracedRequest>,
) -> impl Future<Output = Response<H::Body>> + Send + use<H> {
    let received_ns = now_ns();
    let Some(traced) = traced else { return handler.handle(request, received_ns) };
    let _entered = traced.enter();
    access_log::count_received(request.body_mut(), traced.access());
    handler.handle(request, received_ns)
}

/// Logs the arrival of a request. Returns its id, if it has one or is in the access log.
fn trace(
    request: &Request<Incoming>,
    access: Option<&ConnectionAccess>,
) -> Option<Box<TracedRequest>> {
    let traced = TracedRequest::begin(request, access);
    if tracing::enabled!(tracing::Level::TRACE) {
        let _entered = traced.as_ref().map(|traced| traced.enter());
        tracing::trace!("request: {} {}", request.method(), request.uri().path());
    }
    traced
}
