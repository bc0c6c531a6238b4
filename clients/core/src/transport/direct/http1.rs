//! HTTP/1.1 on the calling thread: one request at a time.

use super::socket::{DirectChannel, SocketProblem};
use super::{CallFailure, ReusableConnection, SentState, broken, closed, to_error};
use crate::address::ServerAddress;
use crate::error::{Error, Result};
use crate::transport::grpc::AGENT;
use crate::transport::http::{HttpExchange, MAX_HEAD, TRUSTED_LENGTH, too_large};
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue};
use http::header::{TRANSFER_ENCODING, USER_AGENT};
use httparse::Status;
use std::io::Write;
use std::time::Instant;

/// Bytes that are received at once while the head is incomplete.
const CHUNK: usize = 16 << 10;
const MAX_HEADERS: usize = 100;

pub(super) struct Http1Connection {
    channel: DirectChannel,
    /// What was received, and how much of it was taken.
    input: Vec<u8>,
    taken: usize,
    open: bool,
}

/// A whole response.
pub(super) struct Http1Response {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub sent: Instant,
    pub first_byte: Instant,
}

/// The request as it is sent.
pub(super) fn encode(
    exchange: HttpExchange<'_>,
    address: &ServerAddress,
    headers: &HeaderMap,
) -> Result<Vec<u8>> {
    let uri = || format!("{}{}", address.prefix, exchange.path);
    if !exchange.path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Error::invalid(format!("`{}` is not a path", uri())));
    }
    let length = exchange.body.len();
    let mut out = Vec::with_capacity(512 + length);
    for part in [exchange.method.as_str(), " ", &address.prefix, exchange.path, " HTTP/1.1\r\n"] {
        out.extend_from_slice(part.as_bytes());
    }
    let mut field = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            out.extend_from_slice(part);
        }
    };
    let own = |name: &HeaderName| headers.contains_key(name);
    if !own(&HOST) {
        field("host", address.authority.as_bytes());
    }
    if !own(&USER_AGENT) {
        field("user-agent", AGENT.as_bytes());
    }
    if let Some(value) = exchange.content_type {
        field("content-type", value.as_bytes());
    }
    for (name, value) in exchange.headers.iter().chain(headers) {
        if name != CONTENT_LENGTH {
            field(name.as_str(), value.as_bytes());
        }
    }
    // Writing to a vector cannot fail.
    if length > 0 || exchange.method == http::Method::POST {
        let _ = write!(out, "content-length: {length}\r\n");
    }
    out.extend_from_slice(b"\r\n");
    exchange.body.finish().iter().for_each(|segment| out.extend_from_slice(segment));
    Ok(out)
}

/// How long the body of a response is.
enum BodyLength {
    Bytes(u64),
    Chunked,
    UntilClose,
}

struct Http1Head {
    status: u16,
    headers: HeaderMap,
    length: BodyLength,
    keep_alive: bool,
}

impl ReusableConnection for Http1Connection {
    fn is_reusable(&self) -> bool {
        // Bytes that no request asked for end a connection.
        self.open && self.pending().is_empty()
    }

    fn is_open(&mut self) -> bool {
        self.input.clear();
        self.taken = 0;
        matches!(self.channel.receive_now(&mut self.input), Ok(None))
    }
}

impl Http1Connection {
    pub fn new(channel: DirectChannel) -> Self {
        Self { channel, input: Vec::with_capacity(CHUNK), taken: 0, open: true }
    }

    fn pending(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Sends a request and reads its response. After an error the connection is closed.
    pub fn exchange(
        &mut self,
        request: &[u8],
        deadline: Option<Instant>,
        limit: usize,
    ) -> std::result::Result<Http1Response, CallFailure> {
        self.open = false;
        let mut refused = None;
        if let Err((problem, count)) = self.channel.send(request, deadline) {
            let state = if count == 0 { SentState::No } else { SentState::Perhaps };
            match problem {
                // The server may have responded before it stopped reading.
                SocketProblem::Errno(errno) if count > 0 => refused = Some(errno),
                problem => return Err(CallFailure::new(state, to_error(problem))),
            }
        }
        let sent = Instant::now();
        let (head, first_byte) = match self.head(deadline) {
            Ok(Some(found)) => found,
            Ok(None) => {
                let error = refused.map_or_else(closed, broken);
                return Err(CallFailure::new(SentState::Perhaps, error));
            }
            Err(failure) => return Err(failure),
        };
        let wrap = |error| CallFailure::new(SentState::Yes, error);
        let body = match head.length {
            BodyLength::Bytes(length) => self.body(length, deadline, limit).map_err(wrap)?,
            BodyLength::Chunked => self.chunks(deadline, limit).map_err(wrap)?,
            BodyLength::UntilClose => self.rest(deadline, limit).map_err(wrap)?,
        };
        self.open = head.keep_alive && refused.is_none();
        let Http1Head { status, headers, .. } = head;
        Ok(Http1Response { status, headers, body, sent, first_byte })
    }

    /// Receives more; false at the end of the connection.
    fn more(&mut self, deadline: Option<Instant>) -> std::result::Result<bool, SocketProblem> {
        if self.taken == self.input.len() {
            self.input.clear();
            self.taken = 0;
        }
        self.input.reserve(CHUNK);
        Ok(self.channel.receive(&mut self.input, deadline)? > 0)
    }

    /// The head, and when its first byte arrived. `None` if the connection ended without a byte.
    fn head(
        &mut self,
        deadline: Option<Instant>,
    ) -> std::result::Result<Option<(Http1Head, Instant)>, CallFailure> {
        let wrap = |error| CallFailure::new(SentState::Yes, error);
        let mut first_byte = None;
        loop {
            let before = self.pending().len();
            let more = self.more(deadline).map_err(|problem| {
                let state = if before == 0 { SentState::Perhaps } else { SentState::Yes };
                CallFailure::new(state, to_error(problem))
            })?;
            if !more && before == 0 {
                return Ok(None);
            }
            let first = *first_byte.get_or_insert_with(Instant::now);
            // A head ends with a line; parsing every piece of a long one would take quadratic time.
            let may_end = before == 0 || !more || self.pending()[before..].contains(&b'\n');
            while may_end && let Some((head, length)) = parse_head(self.pending()).map_err(wrap)? {
                self.taken += length;
                // Others are interim responses.
                if head.status >= 200 {
                    return Ok(Some((head, first)));
                }
            }
            if !more {
                return Err(wrap(closed()));
            }
            if self.pending().len() > MAX_HEAD {
                let text = format!("its head is longer than {MAX_HEAD} bytes");
                return Err(wrap(not_http(&text)));
            }
        }
    }

    /// The next bytes of the response.
    fn body(&mut self, length: u64, deadline: Option<Instant>, limit: usize) -> Result<Bytes> {
        if length > limit as u64 {
            return Err(too_large(length, limit));
        }
        let length = length as usize;
        if let Some(whole) = self.pending().get(..length) {
            let body = Bytes::copy_from_slice(whole);
            self.taken += length;
            return Ok(body);
        }
        let mut body = Vec::with_capacity(length.min(TRUSTED_LENGTH));
        body.extend_from_slice(self.pending());
        self.taken = self.input.len();
        while body.len() < length {
            let next = (length - body.len()).min(TRUSTED_LENGTH.max(body.len()));
            body.reserve_exact(next);
            if self.channel.receive(&mut body, deadline).map_err(to_error)? == 0 {
                return Err(closed());
            }
        }
        self.input.clear();
        self.input.extend_from_slice(&body[length..]);
        self.taken = 0;
        body.truncate(length);
        Ok(body.into())
    }

    fn rest(&mut self, deadline: Option<Instant>, limit: usize) -> Result<Bytes> {
        while self.more(deadline).map_err(to_error)? {
            if self.pending().len() > limit {
                return Err(too_large(self.pending().len() as u64, limit));
            }
        }
        let rest = Bytes::copy_from_slice(self.pending());
        self.taken = self.input.len();
        Ok(rest)
    }

    fn chunks(&mut self, deadline: Option<Instant>, limit: usize) -> Result<Bytes> {
        let mut all = Vec::new();
        loop {
            let (head, size) = loop {
                match httparse::parse_chunk_size(self.pending()) {
                    Ok(Status::Complete(found)) => break found,
                    Ok(Status::Partial) if self.pending().len() < CHUNK => {}
                    _ => return Err(not_http("invalid chunk size")),
                }
                if !self.more(deadline).map_err(to_error)? {
                    return Err(closed());
                }
            };
            self.taken += head;
            if size == 0 {
                return self.trailers(deadline).map(|()| all.into());
            }
            let total = size.saturating_add(all.len() as u64);
            if total > limit as u64 {
                return Err(too_large(total, limit));
            }
            all.extend_from_slice(&self.body(size, deadline, limit)?);
            if &self.body(2, deadline, 2)?[..] != b"\r\n" {
                return Err(not_http("a chunk is longer than its size"));
            }
        }
    }

    /// Skips the fields behind the last chunk.
    fn trailers(&mut self, deadline: Option<Instant>) -> Result<()> {
        let mut skipped = 0;
        loop {
            while let Some(at) = self.pending().iter().position(|byte| *byte == b'\n') {
                let is_last = matches!(&self.pending()[..=at], b"\n" | b"\r\n");
                self.taken += at + 1;
                skipped += at + 1;
                if is_last {
                    return Ok(());
                }
            }
            if skipped + self.pending().len() > MAX_HEAD {
                return Err(not_http("endless trailers"));
            }
            if !self.more(deadline).map_err(to_error)? {
                return Err(closed());
            }
        }
    }
}

fn not_http(why: &str) -> Error {
    Error::protocol(format!("the response is not HTTP: {why}"))
}

/// A head and its length; `None` while it is incomplete.
fn parse_head(input: &[u8]) -> Result<Option<(Http1Head, usize)>> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(input) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(e) => return Err(not_http(&e.to_string())),
    };
    let status = response.code.unwrap_or_default();
    let mut headers = HeaderMap::with_capacity(response.headers.len());
    for field in response.headers.iter() {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        let (Ok(name), Ok(value)) = (name, value) else {
            return Err(not_http(&format!("the header `{}` is invalid", field.name)));
        };
        headers.append(name, value);
    }
    let text = |value: &HeaderValue| value.to_str().unwrap_or_default().trim().to_ascii_lowercase();
    let has = |value: &str, token: &str| value.split(',').any(|each| each.trim() == token);
    let connection = headers.get(CONNECTION).map(text).unwrap_or_default();
    let mut keep_alive = match response.version {
        Some(0) => has(&connection, "keep-alive"),
        _ => !has(&connection, "close"),
    };
    let length_of_body = if status < 200 || status == 204 || status == 304 {
        BodyLength::Bytes(0)
    } else if let Some(encoding) = headers.get(TRANSFER_ENCODING) {
        if !has(&text(encoding), "chunked") {
            return Err(not_http("an unknown transfer-encoding"));
        }
        BodyLength::Chunked
    } else if let Some(length) = headers.get(CONTENT_LENGTH) {
        let same = headers.get_all(CONTENT_LENGTH).iter().all(|other| other == length);
        let digits = text(length);
        let number = digits.parse().ok().filter(|_| same && !digits.starts_with('+'));
        BodyLength::Bytes(number.ok_or_else(|| not_http("invalid content-length"))?)
    } else {
        keep_alive = false;
        BodyLength::UntilClose
    };
    Ok(Some((Http1Head { status, headers, length: length_of_body, keep_alive }, length)))
}
