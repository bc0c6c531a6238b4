//! A minimal gRPC client over HTTP/2 that sends and receives message by message and can reset a
//! call.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Request};
use prost::Message;
use tokio::net::TcpStream;

type Result<T> = std::result::Result<T, String>;

const WINDOW: u32 = 8 << 20;

pub struct Client {
    sender: SendRequest<Bytes>,
    address: String,
}

impl Client {
    pub async fn connect(address: &str) -> Result<Client> {
        let wrap = |e: &dyn std::fmt::Display| format!("cannot connect to {address}: {e}");
        let stream = TcpStream::connect(address).await.map_err(|e| wrap(&e))?;
        stream.set_nodelay(true).map_err(|e| wrap(&e))?;
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .handshake(stream)
            .await
            .map_err(|e| wrap(&e))?;
        // Connection errors surface in the calls.
        tokio::task::spawn_local(connection);
        Ok(Client { sender, address: address.to_owned() })
    }

    pub async fn call(&mut self, path: &str) -> Result<Call> {
        let request = Request::post(format!("http://{}{path}", self.address))
            .version(http::Version::HTTP_2)
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .body(())
            .map_err(|e| e.to_string())?;
        let mut sender = self.sender.clone().ready().await.map_err(text)?;
        let (response, send) = sender.send_request(request, false).map_err(text)?;
        Ok(Call { send, response: Some(response), body: None, buffer: BytesMut::new() })
    }
}

/// One call. Dropped before its end, it is reset.
pub struct Call {
    send: SendStream<Bytes>,
    response: Option<ResponseFuture>,
    body: Option<RecvStream>,
    buffer: BytesMut,
}

impl Call {
    pub fn send(&mut self, message: &impl Message, last: bool) -> Result<()> {
        let length = message.encoded_len();
        let mut bytes = BytesMut::with_capacity(5 + length);
        bytes.put_u8(0);
        bytes.put_u32(length as u32);
        message.encode(&mut bytes).map_err(|e| e.to_string())?;
        self.send.send_data(bytes.freeze(), last).map_err(text)
    }

    /// Half-closes the call.
    pub fn finish(&mut self) -> Result<()> {
        self.send.send_data(Bytes::new(), true).map_err(text)
    }

    /// The next message; `None` when the call has ended with status OK.
    pub async fn next<M: Message + Default>(&mut self) -> Result<Option<M>> {
        if let Some(response) = self.response.take() {
            let (head, body) = response.await.map_err(text)?.into_parts();
            if head.status != 200 {
                return Err(format!("HTTP status {}", head.status));
            }
            refused(&head.headers)?;
            self.body = Some(body);
        }
        let body = self.body.as_mut().ok_or("the call has failed before")?;
        loop {
            if let Some(message) = message(&mut self.buffer)? {
                return Ok(Some(message));
            }
            let Some(chunk) = body.data().await else { break };
            let chunk = chunk.map_err(text)?;
            body.flow_control().release_capacity(chunk.len()).map_err(text)?;
            self.buffer.extend_from_slice(&chunk);
        }
        let trailers = body.trailers().await.map_err(text)?;
        trailers.as_ref().map_or(Ok(()), refused)?;
        if self.buffer.is_empty() { Ok(None) } else { Err("half a message".to_owned()) }
    }

    /// Resets the call.
    pub fn cancel(mut self) {
        self.send.send_reset(Reason::CANCEL);
    }
}

fn text(e: h2::Error) -> String {
    e.to_string()
}

fn message<M: Message + Default>(buffer: &mut BytesMut) -> Result<Option<M>> {
    let Some(prefix) = buffer.first_chunk::<5>() else { return Ok(None) };
    let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
    if buffer.len() < 5 + length {
        return Ok(None);
    }
    buffer.advance(5);
    let bytes = buffer.split_to(length).freeze();
    M::decode(bytes).map(Some).map_err(|e| e.to_string())
}

/// An error if these headers carry a status other than OK.
fn refused(headers: &HeaderMap) -> Result<()> {
    match headers.get("grpc-status") {
        Some(status) if status != "0" => {
            let message = headers.get("grpc-message").map_or("", |m| m.to_str().unwrap_or(""));
            Err(format!("gRPC status {}: {message}", String::from_utf8_lossy(status.as_bytes())))
        }
        _ => Ok(()),
    }
}
