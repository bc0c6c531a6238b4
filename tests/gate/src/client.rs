//! A client with one connection that repeats a request and checks every response.

use crate::requests::Request;
use bytes::Bytes;
use h2::client::SendRequest;
use std::thread::sleep;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trtserver_tests::{Connection, Running};

/// Pause after a response, so that all threads of the server sleep when the next request arrives
/// and the figures are reproducible.
const PAUSE: Duration = Duration::from_micros(500);
/// Flow-control window, larger than all responses of a row together.
const WINDOW: u32 = 1 << 30;

pub struct Client {
    request: Request,
    connection: Wire,
}

enum Wire {
    Http(Connection),
    Grpc(Grpc),
}

impl Client {
    pub fn connect(server: &Running, row: &str) -> Self {
        let request = Request::from_row(row);
        request.register(server);
        let connection = match request.path {
            None => Wire::Http(server.connect()),
            Some(_) => Wire::Grpc(Grpc::connect(server.grpc())),
        };
        Client { request, connection }
    }

    /// # Panics
    /// If a response is wrong or missing.
    pub fn send(&mut self, times: u32) {
        for _ in 0..times {
            match &mut self.connection {
                Wire::Http(connection) => {
                    let response = connection.send(&self.request.bytes).response();
                    assert_eq!(response.status, 200, "{}", response.text());
                    self.request.check(&response.body);
                }
                Wire::Grpc(grpc) => {
                    let path = self.request.path.unwrap_or_default();
                    let response = grpc.call(path, self.request.bytes.clone());
                    self.request.check(&response.unwrap_or_else(|e| panic!("{path}: {e}")));
                }
            }
            sleep(PAUSE);
        }
    }
}

/// The h2 crate on a runtime that runs only while a response is awaited.
struct Grpc {
    runtime: Runtime,
    sender: SendRequest<Bytes>,
    address: String,
    _connection: JoinHandle<()>,
}

impl Grpc {
    fn connect(address: &str) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.unwrap_or_else(|e| panic!("no runtime: {e}"));
        let wrap = |e: &dyn std::fmt::Display| -> ! { panic!("{address}: {e}") };
        let (sender, connection) = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap_or_else(|e| wrap(&e));
            stream.set_nodelay(true).unwrap_or_else(|e| wrap(&e));
            let handshake = h2::client::Builder::new()
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .handshake(stream)
                .await;
            handshake.unwrap_or_else(|e| wrap(&e))
        });
        // Connection errors surface in the calls.
        let _connection = runtime.spawn(async {
            let _ = connection.await;
        });
        Grpc { runtime, sender, address: address.to_owned(), _connection }
    }

    /// The message of the response with its length prefix.
    fn call(&mut self, path: &str, message: Bytes) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let request = http::Request::post(format!("http://{}{path}", self.address))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())?;
        let sender = self.sender.clone();
        self.runtime.block_on(async {
            let (response, mut send) = sender.ready().await?.send_request(request, false)?;
            send.send_data(message, true)?;
            let mut body = response.await?.into_body();
            let mut bytes = Vec::new();
            while let Some(chunk) = body.data().await {
                bytes.extend(chunk?);
            }
            let trailers = body.trailers().await?.ok_or("no trailers")?;
            match trailers.get("grpc-status") {
                Some(status) if status == "0" => Ok(bytes),
                _ => Err(format!("{trailers:?}").into()),
            }
        })
    }
}
