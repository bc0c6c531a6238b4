//! gRPC load: one thread, few connections with several streams each, pre-encoded messages.

use super::{Meter, Pass, TIMEOUT, WARM_UP};
use crate::Result;
use crate::exchange::Exchange;
use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::client::SendRequest;
use http::{HeaderMap, Request};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::{JoinSet, LocalSet, spawn_local};

/// Flow-control windows of a client that receives large tensors.
const STREAM_WINDOW: u32 = 32 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;
const MAX_FRAME: u32 = 1 << 20;
/// Length of a message prefix.
const PREFIX: usize = 5;

pub fn run(
    address: SocketAddr,
    exchanges: &[Exchange],
    concurrency: usize,
    streams_per_connection: usize,
    meter: Meter,
) -> Result<Pass> {
    let runtime = runtime()?;
    let limit = WARM_UP + meter.length + TIMEOUT;
    let meter = Rc::new(RefCell::new(meter));
    // All requests have the same path.
    let exchanges: Rc<[Exchange]> = exchanges.into();
    let work = async {
        let mut connections = Vec::new();
        for _ in 0..concurrency.div_ceil(streams_per_connection) {
            connections.push(connect(address).await?);
        }
        let mut workers = JoinSet::new();
        for i in 0..concurrency {
            let sender = connections[i % connections.len()].clone();
            let rotation = Rotation { exchanges: Rc::clone(&exchanges), turn: i };
            let request = request(address, exchanges.first().map_or("", |first| &first.path))?;
            workers.spawn_local(worker(sender, request, rotation, Rc::clone(&meter)));
        }
        // All in-flight responses are awaited, so that nothing is cancelled.
        let mut pass = Err("nothing to do".to_owned());
        while let Some(result) = workers.join_next().await {
            pass = Ok(result.map_err(|e| e.to_string())??);
        }
        pass
    };
    let pass =
        LocalSet::new().block_on(&runtime, async { tokio::time::timeout(limit, work).await });
    pass.unwrap_or_else(|_| Err(format!("no response within {} s", TIMEOUT.as_secs())))
}

pub fn runtime() -> Result<Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|e| format!("no runtime: {e}"))
}

pub async fn connect(address: SocketAddr) -> Result<SendRequest<Bytes>> {
    let wrap = |e: &dyn std::fmt::Display| format!("{address}: {e}");
    let stream = TcpStream::connect(address).await.map_err(|e| wrap(&e))?;
    stream.set_nodelay(true).map_err(|e| wrap(&e))?;
    let (sender, connection) = h2::client::Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(MAX_FRAME)
        .enable_push(false)
        .handshake(stream)
        .await
        .map_err(|e| wrap(&e))?;
    // Connection errors surface in the requests.
    spawn_local(connection);
    Ok(sender)
}

pub fn request(address: SocketAddr, path: &str) -> Result<Request<()>> {
    Request::post(format!("http://{address}{path}"))
        .version(http::Version::HTTP_2)
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(())
        .map_err(|e| e.to_string())
}

/// A worker's requests in turn.
struct Rotation {
    exchanges: Rc<[Exchange]>,
    turn: usize,
}

/// Sends requests until the pass is over.
async fn worker(
    mut sender: SendRequest<Bytes>,
    request: Request<()>,
    Rotation { exchanges, turn }: Rotation,
    meter: Rc<RefCell<Meter>>,
) -> Result<Pass> {
    let text = |e: h2::Error| e.to_string();
    let mut buffer = BytesMut::new();
    for exchange in exchanges.iter().cycle().skip(turn % exchanges.len()) {
        sender = sender.ready().await.map_err(text)?;
        let sent_at = Instant::now();
        let (response, mut stream) = sender.send_request(request.clone(), false).map_err(text)?;
        // Bytes beyond the window wait in the stream's queue.
        stream.send_data(exchange.message.clone(), true).map_err(text)?;
        let (head, body) = response.await.map_err(text)?.into_parts();
        if head.status != 200 {
            return Err(format!("HTTP status {}", head.status));
        }
        refused(&head.headers)?;
        let bytes = receive(body, exchange, &mut buffer).await?;
        let mut meter = meter.borrow_mut();
        if !meter.record(sent_at, bytes)? {
            return meter.result();
        }
    }
    Err("no requests".to_owned())
}

/// Reads and checks one message; returns its length with the prefix.
async fn receive(
    mut body: RecvStream,
    exchange: &Exchange,
    buffer: &mut BytesMut,
) -> Result<usize> {
    let text = |e: h2::Error| e.to_string();
    buffer.clear();
    let mut only: Option<Bytes> = None;
    while let Some(chunk) = body.data().await {
        let chunk = chunk.map_err(text)?;
        body.flow_control().release_capacity(chunk.len()).map_err(text)?;
        // Usually one frame holds the message.
        if only.is_none() && buffer.is_empty() {
            only = Some(chunk);
        } else {
            if let Some(first) = only.take() {
                buffer.extend_from_slice(&first);
            }
            buffer.extend_from_slice(&chunk);
        }
    }
    let trailers = body.trailers().await.map_err(text)?.ok_or("a response without trailers")?;
    refused(&trailers)?;
    let message = only.as_deref().unwrap_or(buffer);
    let (prefix, message) = message.split_at_checked(PREFIX).ok_or("no message")?;
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]);
    if length as usize != message.len() {
        return Err(format!("{} bytes of a message that has {length}", message.len()));
    }
    exchange.expect.check(message)?;
    Ok(PREFIX + message.len())
}

/// An error if these headers carry a status other than OK.
pub fn refused(headers: &HeaderMap) -> Result<()> {
    match headers.get("grpc-status") {
        Some(status) if status != "0" => {
            let message = headers.get("grpc-message").map_or("", |m| m.to_str().unwrap_or(""));
            Err(format!("gRPC status {}: {message}", String::from_utf8_lossy(status.as_bytes())))
        }
        _ => Ok(()),
    }
}
