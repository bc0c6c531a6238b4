//! Minimal hyper and tonic echo servers: the floor for the cost of a request.

use crate::Result;
use crate::options::Floor;
use crate::socket_floor;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::io::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tonic::Streaming;
use tonic::body::Body;
use tonic::transport::server::TcpIncoming;
use tonic_prost::ProstCodec;

pub const ECHO_PATH: &str = "/bench.Echo/Call";
pub const ECHO_STREAM_PATH: &str = "/bench.Echo/Stream";
/// The limits of tonic are below the largest payload.
const MAX_MESSAGE: usize = 1 << 30;

#[derive(Clone, PartialEq, prost::Message)]
pub struct Echo {
    #[prost(bytes = "bytes", tag = "1")]
    pub data: Bytes,
}

/// Serves on a free port of this machine until the process is ended.
/// The echoes of hyper and tonic keep a core busy for `busy` before each response.
pub fn serve(floor: Floor, busy: Duration) -> Result<()> {
    let wrap = |e: std::io::Error| format!("the floor cannot serve: {e}");
    if floor == Floor::Socket {
        return socket_floor::serve().map_err(wrap);
    }
    // The same runtime as the server's.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(wrap)?;
    runtime.block_on(async {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(wrap)?;
        let address = listener.local_addr().map_err(wrap)?;
        let kind = if floor == Floor::Hyper { "http" } else { "grpc" };
        println!("listening {kind} {address}\nready");
        std::io::stdout().flush().map_err(wrap)?;
        match floor {
            Floor::Hyper => hyper_echo(listener, busy).await.map_err(wrap),
            Floor::Tonic => tonic_echo(listener, busy).await,
            Floor::Socket => Ok(()),
        }
    })
}

async fn hyper_echo(listener: TcpListener, busy: Duration) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let service = service_fn(move |request| echo(request, busy));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection);
    }
}

async fn echo(
    request: http::Request<Incoming>,
    busy: Duration,
) -> std::result::Result<http::Response<Full<Bytes>>, hyper::Error> {
    let body = request.into_body().collect().await?.to_bytes();
    keep_busy(busy);
    Ok(http::Response::new(Full::new(body)))
}

/// Uses CPU time for this long.
fn keep_busy(busy: Duration) {
    if busy.is_zero() {
        return;
    }
    let start = Instant::now();
    while start.elapsed() < busy {
        std::hint::spin_loop();
    }
}

async fn tonic_echo(listener: TcpListener, busy: Duration) -> Result<()> {
    // Flow-control windows as large as the server's, or round trips would dominate.
    tonic::transport::Server::builder()
        .initial_stream_window_size(4 << 20)
        .initial_connection_window_size(16 << 20)
        .max_frame_size(1 << 20)
        .add_service(Service { busy })
        .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)))
        .await
        .map_err(|e| format!("the floor cannot serve: {e}"))
}

/// The service that tonic-build would generate.
#[derive(Clone)]
struct Service {
    busy: Duration,
}

impl tonic::server::NamedService for Service {
    const NAME: &'static str = "bench.Echo";
}

type HttpResponseFuture =
    Pin<Box<dyn Future<Output = std::result::Result<http::Response<Body>, Infallible>> + Send>>;

impl tower::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = HttpResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> HttpResponseFuture {
        let call = Call { busy: self.busy };
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(ProstCodec::<Echo, Echo>::default())
                .apply_max_message_size_config(Some(MAX_MESSAGE), Some(MAX_MESSAGE));
            Ok(match request.uri().path() {
                ECHO_STREAM_PATH => grpc.streaming(call, request).await,
                _ => grpc.unary(call, request).await,
            })
        })
    }
}

struct Call {
    busy: Duration,
}

type Echoed =
    Pin<Box<dyn Future<Output = std::result::Result<tonic::Response<Echo>, tonic::Status>> + Send>>;

impl tower::Service<tonic::Request<Echo>> for Call {
    type Response = tonic::Response<Echo>;
    type Error = tonic::Status;
    type Future = Echoed;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), tonic::Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Echo>) -> Echoed {
        let busy = self.busy;
        Box::pin(async move {
            keep_busy(busy);
            Ok(tonic::Response::new(request.into_inner()))
        })
    }
}

type EchoedAll = Pin<
    Box<
        dyn Future<Output = std::result::Result<tonic::Response<Streaming<Echo>>, tonic::Status>>
            + Send,
    >,
>;

impl tower::Service<tonic::Request<Streaming<Echo>>> for Call {
    type Response = tonic::Response<Streaming<Echo>>;
    type Error = tonic::Status;
    type Future = EchoedAll;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::result::Result<(), tonic::Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: tonic::Request<Streaming<Echo>>) -> EchoedAll {
        Box::pin(async move { Ok(tonic::Response::new(request.into_inner())) })
    }
}
