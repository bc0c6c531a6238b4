//! One caller with one connection, who asks the same again and again and looks at every answer.

use crate::requests::Request;
use bytes::Bytes;
use h2::client::SendRequest;
use std::thread::sleep;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use trtserver_tests::{Connection, Running};

/// Between an answer and the next request, so that every thread of the server has gone to sleep: how far the server
/// has got when a request arrives would otherwise be chance.
const PAUSE: Duration = Duration::from_micros(500);
/// Larger than all answers of a row together, so that none waits.
const WINDOW: u32 = 1 << 30;

pub struct Client {
    request: Request,
    line: Line,
}

enum Line {
    Http(Connection),
    Grpc(Grpc),
}

impl Client {
    pub fn connect(server: &Running, row: &str) -> Self {
        let request = Request::of_row(row);
        let line = match request.path {
            None => Line::Http(server.connect()),
            Some(_) => Line::Grpc(Grpc::connect(server.grpc())),
        };
        Client { request, line }
    }

    /// # Panics
    /// If an answer is wrong or missing.
    pub fn ask(&mut self, times: u32) {
        for _ in 0..times {
            match &mut self.line {
                Line::Http(connection) => {
                    let answer = connection.send(&self.request.bytes).response();
                    assert_eq!(answer.status, 200, "{}", answer.text());
                    self.request.check(&answer.body);
                }
                Line::Grpc(grpc) => {
                    let path = self.request.path.unwrap_or_default();
                    let answer = grpc.call(path, self.request.bytes.clone());
                    self.request.check(&answer.unwrap_or_else(|e| panic!("{path}: {e}")));
                }
            }
            sleep(PAUSE);
        }
    }
}

/// The h2 crate on a runtime that runs only while an answer is waited for.
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
            let shake = h2::client::Builder::new()
                .initial_window_size(WINDOW)
                .initial_connection_window_size(WINDOW)
                .handshake(stream)
                .await;
            shake.unwrap_or_else(|e| wrap(&e))
        });
        // Its failures reach the calls.
        let _connection = runtime.spawn(async {
            let _ = connection.await;
        });
        Grpc { runtime, sender, address: address.to_owned(), _connection }
    }

    /// The message of the answer, with what is in front of it.
    fn call(&mut self, path: &str, message: Bytes) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
        let request = http::Request::post(format!("http://{}{path}", self.address))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())?;
        let sender = self.sender.clone();
        self.runtime.block_on(async {
            let (answer, mut send) = sender.ready().await?.send_request(request, false)?;
            send.send_data(message, true)?;
            let mut body = answer.await?.into_body();
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
