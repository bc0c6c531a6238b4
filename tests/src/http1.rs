//! HTTP/1.1 on a plain socket: sends exactly the given bytes, so that malformed requests arrive as
//! they are.

use crate::process::TIMEOUT;
use crate::socket::connect;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

/// One connection to a server.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

/// An HTTP response.
#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Connection {
    #[track_caller]
    pub fn open(address: &str) -> Self {
        Self::try_open(address).unwrap_or_else(|e| panic!("cannot connect to {address}: {e}"))
    }

    /// # Errors
    /// The system's reason.
    pub fn try_open(address: &str) -> io::Result<Self> {
        let stream = connect(address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Sends these bytes. If the server has already refused the request and closed the connection,
    /// its response can still be read.
    #[track_caller]
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let stream = self.stream.get_mut();
        match stream.write_all(bytes.as_ref()).and_then(|()| stream.flush()) {
            Ok(()) => {}
            Err(e) if is_disconnect(&e) => {}
            Err(e) => panic!("cannot send: {e}"),
        }
        self
    }

    /// Closes the sending side.
    pub fn finish(&mut self) -> &mut Self {
        let _ = self.stream.get_ref().shutdown(Shutdown::Write);
        self
    }

    /// Reads one response.
    #[track_caller]
    pub fn response(&mut self) -> Response {
        self.try_response()
            .unwrap_or_else(|| panic!("the server closed the connection without a response"))
    }

    /// Reads one response; `None` if the server closes the connection instead.
    #[track_caller]
    pub fn try_response(&mut self) -> Option<Response> {
        match Response::read(&mut self.stream) {
            Ok(response) => response,
            Err(e) if is_disconnect(&e) => None,
            Err(e) => panic!("no response: {e}"),
        }
    }

    /// Reads the head of a response whose body is read by [`Connection::chunk`].
    #[track_caller]
    pub fn head(&mut self) -> Response {
        match Response::read_head(&mut self.stream) {
            Ok(Some(head)) => head,
            Ok(None) => panic!("the server closed the connection without a response"),
            Err(e) => panic!("no response: {e}"),
        }
    }

    /// Reads one chunk of a body; the last one is empty.
    #[track_caller]
    pub fn chunk(&mut self) -> Vec<u8> {
        chunk(&mut self.stream).unwrap_or_else(|e| panic!("no chunk: {e}"))
    }

    /// Reads one interim response and returns its status.
    #[track_caller]
    pub fn interim_status(&mut self) -> u16 {
        let mut lines = [String::new(), String::new()];
        for line in &mut lines {
            self.stream.read_line(line).unwrap_or_else(|e| panic!("no interim response: {e}"));
        }
        let status = lines[0].split(' ').nth(1).and_then(|code| code.parse().ok());
        assert_eq!(lines[1], "\r\n", "an interim response has no headers here");
        status.unwrap_or_else(|| panic!("not a status line: {:?}", lines[0]))
    }

    /// Waits until the server closes the connection; true if it sent nothing more.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        match self.stream.read_to_end(&mut rest) {
            Ok(_) => rest.is_empty(),
            Err(e) => is_disconnect(&e),
        }
    }
}

fn is_disconnect(e: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionAborted, ConnectionReset, UnexpectedEof};
    matches!(e.kind(), BrokenPipe | ConnectionAborted | ConnectionReset | UnexpectedEof)
}

impl Response {
    fn read_head(from: &mut impl BufRead) -> io::Result<Option<Response>> {
        let mut line = String::new();
        if from.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let status = line.split(' ').nth(1).and_then(|code| code.parse().ok());
        let status = status.ok_or_else(|| wrong(&format!("not a status line: {line:?}")))?;
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            if from.read_line(&mut line)? == 0 {
                return Err(wrong("the headers have no end"));
            }
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                break;
            }
            let (name, value) =
                line.split_once(':').ok_or_else(|| wrong(&format!("not a header: {line:?}")))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if status == 100 {
            return Self::read_head(from);
        }
        Ok(Some(Response { status, headers, body: Vec::new() }))
    }

    pub(crate) fn read(from: &mut impl BufRead) -> io::Result<Option<Response>> {
        let Some(mut response) = Self::read_head(from)? else { return Ok(None) };
        if let Some(length) = response.header("content-length") {
            let length = length.parse().map_err(|_| wrong(&format!("content-length: {length}")))?;
            response.body.resize(length, 0);
            from.read_exact(&mut response.body)?;
        } else if response.header("transfer-encoding") == Some("chunked") {
            response.body = chunks(from)?;
        } else if response.status != 204 && response.status != 304 {
            from.read_to_end(&mut response.body)?;
        }
        Ok(Some(response))
    }

    /// A header's value by its lowercase name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}", self.text()))
    }

    /// The error message: `{"error": …}` of v2, NV-Status of v1, or else the body.
    pub fn error_text(&self) -> String {
        if let Some(status) = self.header("nv-status") {
            return status.to_owned();
        }
        let json: Option<Value> = serde_json::from_slice(&self.body).ok();
        match json.as_ref().and_then(|json| json["error"].as_str()) {
            Some(error) => error.to_owned(),
            None => self.text(),
        }
    }
}

fn chunks(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let chunk = chunk(from)?;
        if chunk.is_empty() {
            return Ok(body);
        }
        body.extend(chunk);
    }
}

fn chunk(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let size = line.trim_end().split(';').next().unwrap_or_default();
    let size = usize::from_str_radix(size, 16)
        .map_err(|_| wrong(&format!("not a chunk size: {line:?}")))?;
    let mut chunk = vec![0; size + 2];
    from.read_exact(&mut chunk)?;
    chunk.truncate(size);
    Ok(chunk)
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// A complete request with these headers and Content-Length.
pub fn request(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n").into_bytes();
    for (name, value) in headers {
        bytes.extend(format!("{name}: {value}\r\n").bytes());
    }
    if method != "GET" || !body.is_empty() {
        bytes.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
    }
    bytes.extend(b"\r\n");
    bytes.extend(body);
    bytes
}
