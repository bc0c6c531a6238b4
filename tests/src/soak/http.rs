//! HTTP/1.1 keep-alive client; dropped during a request, it disconnects.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

type Result<T> = std::result::Result<T, String>;

pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub async fn connect(address: &str) -> Result<Client> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.map_err(|e| format!("cannot connect to {address}: {e}"))?;
        stream.set_nodelay(true).map_err(|e| e.to_string())?;
        Ok(Client { stream, buffer: Vec::new() })
    }

    pub async fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).await.map_err(|e| format!("cannot send: {e}"))
    }

    /// The body of the response; an error unless the status is 200.
    pub async fn body(&mut self) -> Result<Vec<u8>> {
        self.buffer.clear();
        let (head, whole) = loop {
            if let Some(ends) = ends(&self.buffer)? {
                break ends;
            }
            self.read().await?;
        };
        while self.buffer.len() < whole {
            self.read().await?;
        }
        let head_text = String::from_utf8_lossy(&self.buffer[..head]);
        if !head_text.starts_with("HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&self.buffer[..whole.min(600)]).into_owned());
        }
        Ok(self.buffer[head..whole].to_vec())
    }

    async fn read(&mut self) -> Result<()> {
        match self.stream.read_buf(&mut self.buffer).await {
            Ok(0) => Err("the server closed the connection".to_owned()),
            Ok(_) => Ok(()),
            Err(e) => Err(format!("cannot receive: {e}")),
        }
    }
}

/// Ends of head and body, once the head is complete.
fn ends(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.and_then(|length| length.trim().parse::<usize>().ok());
    let length = length.ok_or_else(|| format!("no length in {head}"))?;
    Ok(Some((at + 4, at + 4 + length)))
}
