//! gRPC over HTTP/2 on the calling thread: one call at a time on each connection.

use super::socket::{DirectChannel, SocketProblem};
use super::{CallFailure, ReusableConnection, SentState, closed, to_error};
use crate::error::{Error, Kind, Result};
use crate::http2::frames::{self, FrameEvent, FrameSplitter};
use crate::http2::headers::{CallHeaders, HeaderBlock, HeaderReader, HeaderTable};
use crate::transport::grpc::{AGENT, GrpcBody, GrpcCall, PREFIX, added_fields};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use std::collections::VecDeque;
use std::time::Instant;

const CHUNK: usize = 64 << 10;
/// Bytes received before the server gets a window update.
const UPDATE: usize = 1 << 29;
/// The last stream id of a connection; the next call opens another connection.
const LAST_ID: u32 = 0x7fff_fff0;
/// Memory that is allocated on the word of a message's prefix.
const TRUSTED_LENGTH: usize = 64 << 20;
const NO_ERROR: u32 = 0;

/// The header fields of a call that differ between calls.
pub(super) struct Fields<'a> {
    path: &'a str,
    authority: &'a str,
    headers: &'a [(String, String)],
    more: Vec<(HeaderName, HeaderValue)>,
    deadline: Option<Instant>,
}

impl<'a> Fields<'a> {
    pub fn new(rpc: &GrpcCall<'a>, authority: &'a str) -> Self {
        let more = added_fields(rpc).collect();
        Self { path: rpc.path, authority, headers: rpc.headers, more, deadline: rpc.deadline }
    }
}

/// The header block of the last call, and what it was made of.
struct LastHeaders {
    path: String,
    headers: Vec<(String, String)>,
    more: Vec<(HeaderName, HeaderValue)>,
    block: CallHeaders,
}

/// The header block of a response.
#[derive(Clone, Default)]
struct Http2Head {
    status: u16,
    headers: HeaderMap,
}

impl HeaderBlock for Http2Head {
    fn take(&mut self, name: &[u8], value: &[u8]) {
        if name == b":status" {
            self.status = std::str::from_utf8(value).ok().and_then(|s| s.parse().ok()).unwrap_or(0);
        } else if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            self.headers.append(name, value);
        }
    }
}

pub(super) struct Http2Connection {
    channel: DirectChannel,
    input: Vec<u8>,
    out: Vec<u8>,
    splitter: FrameSplitter,
    headers: Option<LastHeaders>,
    state: Http2State,
    open: bool,
}

/// What frames of the server change.
struct Http2State {
    reader: HeaderReader<Http2Head>,
    table: HeaderTable,
    next_id: u32,
    /// The server's flow-control window for the connection.
    window: i64,
    initial_window: i64,
    max_frame: usize,
    /// Received since the last window update of the connection.
    received: usize,
    /// The server accepts no more calls.
    ending: bool,
    /// Frames that answer the server's.
    replies: Vec<u8>,
    call: Http2Call,
}

/// The call in progress.
#[derive(Default)]
struct Http2Call {
    id: u32,
    window: i64,
    received: usize,
    head: Option<Http2Head>,
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
    ended: bool,
    failure: Option<CallFailure>,
}

impl ReusableConnection for Http2Connection {
    fn is_reusable(&self) -> bool {
        self.open && !self.state.ending && self.state.next_id < LAST_ID
    }

    fn is_open(&mut self) -> bool {
        while self.is_reusable() {
            self.input.clear();
            self.open = match self.channel.receive_now(&mut self.input) {
                Ok(None) => return true,
                Ok(Some(count)) => count > 0 && self.read().is_ok(),
                Err(_) => false,
            };
        }
        false
    }
}

impl Http2Connection {
    pub fn new(channel: DirectChannel) -> Self {
        let state = Http2State {
            reader: HeaderReader::default(),
            table: HeaderTable::Unknown,
            next_id: 1,
            window: frames::DEFAULT_WINDOW,
            initial_window: frames::DEFAULT_WINDOW,
            max_frame: frames::DEFAULT_FRAME,
            received: 0,
            ending: false,
            replies: Vec::new(),
            call: Http2Call::default(),
        };
        Self {
            channel,
            input: Vec::with_capacity(CHUNK),
            out: frames::connection_preface(),
            splitter: FrameSplitter::default(),
            headers: None,
            state,
            open: true,
        }
    }

    /// Sends a message and reads the response. After an error the connection is closed.
    pub fn call(
        &mut self,
        fields: &Fields<'_>,
        own: &HeaderMap,
        message: &VecDeque<Bytes>,
        limit: usize,
    ) -> std::result::Result<Response<GrpcBody>, CallFailure> {
        self.open = false;
        let id = self.state.next_id;
        self.state.next_id += 2;
        self.state.call =
            Http2Call { id, window: self.state.initial_window, ..Http2Call::default() };
        self.out.append(&mut self.state.replies);
        self.put_headers(id, fields, own).map_err(|e| CallFailure::new(SentState::Yes, e))?;
        self.send(message, fields.deadline)?;
        while !self.state.call.ended {
            self.receive(fields.deadline)?;
            if self.state.call.exceeds(limit) {
                // The reader of the message refuses its length.
                return Ok(self.state.call.response());
            }
        }
        if !self.state.replies.is_empty() {
            // Settings must be acknowledged soon, the next call may be far.
            let sent = self.channel.send(&self.state.replies, fields.deadline);
            self.state.replies.clear();
            if sent.is_err() {
                return Ok(self.state.call.response());
            }
        }
        self.open = true;
        Ok(self.state.call.response())
    }

    fn put_headers(&mut self, id: u32, fields: &Fields<'_>, own: &HeaderMap) -> Result<()> {
        let is_same = |last: &LastHeaders| {
            last.path == fields.path && last.headers == fields.headers && last.more == fields.more
        };
        if !self.headers.as_ref().is_some_and(is_same) {
            let mut all = fields.more.clone();
            all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
            for (name, value) in fields.headers {
                let refuse = || Error::invalid(format!("`{name}: {value}` is not a header"));
                let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
                all.push((name, HeaderValue::from_str(value).map_err(|_| refuse())?));
            }
            let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
            let all: Vec<_> =
                all.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
            let all = all.iter().map(|(name, value)| (*name, value.as_str()));
            self.headers = Some(LastHeaders {
                path: fields.path.to_owned(),
                headers: fields.headers.to_vec(),
                more: fields.more.clone(),
                block: CallHeaders::new(false, fields.path, fields.authority, AGENT, all),
            });
            self.state.table.headers_changed();
        }
        let Some(last) = &self.headers else { return Ok(()) };
        let head = self.out.len();
        frames::put_frame_head(&mut self.out, 0, frames::HEADERS, frames::END_HEADERS, id);
        last.block.write(&mut self.state.table, &mut self.out);
        let length = self.out.len() - head - frames::HEAD;
        if length > self.state.max_frame {
            return Err(Error::invalid(format!(
                "the headers of the request have {length} bytes, the server accepts {}",
                self.state.max_frame
            )));
        }
        self.out[head..head + 3].copy_from_slice(&(length as u32).to_be_bytes()[1..]);
        Ok(())
    }

    /// Makes frames of the message and sends them, as far as the windows permit at once.
    fn send(
        &mut self,
        message: &VecDeque<Bytes>,
        deadline: Option<Instant>,
    ) -> std::result::Result<(), CallFailure> {
        let mut left: usize = message.iter().map(Bytes::len).sum();
        let mut parts = message.iter().map(|part| &part[..]);
        let mut part: &[u8] = &[];
        let mut begun = false;
        loop {
            let Http2State { window, max_frame, call, .. } = &mut self.state;
            while left > 0 && (*window).min(call.window) > 0 {
                let most = usize::try_from((*window).min(call.window)).unwrap_or(*max_frame);
                let length = left.min(most).min(*max_frame);
                left -= length;
                *window -= length as i64;
                call.window -= length as i64;
                let flags = if left == 0 { frames::END_STREAM } else { 0 };
                frames::put_frame_head(&mut self.out, length, frames::DATA, flags, call.id);
                let mut missing = length;
                while missing > 0 {
                    if part.is_empty() {
                        part = parts.next().unwrap_or_default();
                    }
                    let (now, rest) = part.split_at(missing.min(part.len()));
                    self.out.extend_from_slice(now);
                    part = rest;
                    missing -= now.len();
                }
            }
            let sent = self.channel.send(&self.out, deadline);
            self.out.clear();
            if let Err((problem, count)) = sent {
                let nothing = count == 0 && !begun;
                let state = if nothing { SentState::No } else { SentState::Perhaps };
                return match problem {
                    // The server may have responded, or said why it ends the connection.
                    SocketProblem::Errno(_) if !nothing => Ok(()),
                    problem => Err(CallFailure::new(state, to_error(problem))),
                };
            }
            begun = true;
            if left == 0 || self.state.call.ended {
                return Ok(());
            }
            self.receive(deadline)?;
            self.out.append(&mut self.state.replies);
        }
    }

    /// Waits for frames and takes them.
    fn receive(&mut self, deadline: Option<Instant>) -> std::result::Result<(), CallFailure> {
        self.input.clear();
        let call = &self.state.call;
        let state = match call.head.is_some() {
            true => SentState::Yes,
            false => SentState::Perhaps,
        };
        match self.channel.receive(&mut self.input, deadline) {
            Ok(0) => return Err(CallFailure::new(state, closed())),
            Ok(_) => {}
            Err(problem) => return Err(CallFailure::new(state, to_error(problem))),
        }
        self.read().map_err(|why| {
            let text = format!("the response is not HTTP/2: {why}");
            CallFailure::new(SentState::Yes, Error::protocol(text))
        })?;
        match self.state.call.failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn read(&mut self) -> std::result::Result<(), String> {
        let state = &mut self.state;
        self.splitter.read(&self.input, &mut |event| state.take(event))
    }
}

impl Http2State {
    fn take(&mut self, event: FrameEvent<'_>) -> std::result::Result<(), String> {
        match event {
            FrameEvent::Data { stream, bytes, end, whole } => {
                let length = whole.unwrap_or(0);
                update(&mut self.received, length, 0, &mut self.replies);
                let call = &mut self.call;
                if stream == call.id {
                    update(&mut call.received, length, stream, &mut self.replies);
                    call.put(bytes);
                    call.ended |= end;
                }
            }
            FrameEvent::Headers { stream, block, end } => {
                // Also blocks of other calls, which may be invalid.
                let head = self.reader.read(block)?;
                let call = &mut self.call;
                if stream == call.id && !call.ended {
                    match &call.head {
                        None if head.status == 0 => return Err("no status".to_owned()),
                        // An interim response.
                        None if (100..200).contains(&head.status) => {}
                        None => call.head = Some(head.clone()),
                        Some(_) => call.trailers = Some(head.headers.clone()),
                    }
                    call.ended |= end;
                }
            }
            FrameEvent::Other { kind, flags, stream, payload } => {
                self.control(kind, flags, stream, payload)?;
            }
        }
        Ok(())
    }

    fn control(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::result::Result<(), String> {
        let number = |at| frames::read_number(payload, at);
        match kind {
            frames::SETTINGS if flags & frames::ACK == 0 => {
                self.settings(payload);
                frames::put_frame(&mut self.replies, frames::SETTINGS, frames::ACK, 0, &[]);
            }
            frames::PING if flags & frames::ACK == 0 => {
                frames::put_frame(&mut self.replies, frames::PING, frames::ACK, 0, payload);
            }
            frames::WINDOW_UPDATE => {
                let more = i64::from(number(0)? & 0x7fff_ffff);
                match stream {
                    0 => self.window += more,
                    id if id == self.call.id => self.call.window += more,
                    _ => {}
                }
            }
            frames::RST_STREAM if stream == self.call.id && !self.call.ended => {
                let code = number(0)?;
                let text = format!("the server reset the call (HTTP/2 error code {code})");
                if code == NO_ERROR && self.call.head.is_some() {
                    self.call.ended = true;
                } else {
                    let error = Error::new(Kind::Connection, text);
                    self.call.failure = Some(CallFailure::new(SentState::Yes, error));
                }
            }
            frames::GOAWAY => {
                self.ending = true;
                let (last, code) = (number(0)? & 0x7fff_ffff, number(4)?);
                if self.call.id > last && !self.call.ended {
                    let reason = String::from_utf8_lossy(payload.get(8..).unwrap_or_default());
                    let text = format!(
                        "the server ended the connection (HTTP/2 error code {code}) {reason}"
                    );
                    let error = Error::new(Kind::Connection, text.trim_end());
                    self.call.failure = Some(CallFailure::new(SentState::No, error));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn settings(&mut self, payload: &[u8]) {
        let mut table = None;
        for setting in payload.chunks_exact(6) {
            let value = u32::from_be_bytes([setting[2], setting[3], setting[4], setting[5]]);
            match u16::from_be_bytes([setting[0], setting[1]]) {
                1 => table = Some(value),
                4 => {
                    self.call.window += i64::from(value) - self.initial_window;
                    self.initial_window = i64::from(value);
                }
                5 => self.max_frame = (value as usize).clamp(1, 1 << 20),
                _ => {}
            }
        }
        self.table.settings(table);
    }
}

/// Counts received bytes; opens the window of a stream, or of the connection, when enough have
/// come.
fn update(received: &mut usize, length: usize, stream: u32, replies: &mut Vec<u8>) {
    *received += length;
    if *received >= UPDATE {
        let more = (std::mem::take(received) as u32).to_be_bytes();
        frames::put_frame(replies, frames::WINDOW_UPDATE, 0, stream, &more);
    }
}

impl Http2Call {
    fn put(&mut self, bytes: &[u8]) {
        // Memory for the whole message at once, as far as its prefix is trusted.
        if self.data.is_empty()
            && let Some(prefix) = bytes.get(..PREFIX)
        {
            let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
            self.data.reserve_exact((length + PREFIX).min(TRUSTED_LENGTH).max(bytes.len()));
        }
        self.data.extend_from_slice(bytes);
    }

    /// Whether a message, or what follows it, is longer than the reader accepts.
    fn exceeds(&self, limit: usize) -> bool {
        let Some(prefix) = self.data.get(..PREFIX) else { return false };
        let length = u32::from_be_bytes([prefix[1], prefix[2], prefix[3], prefix[4]]) as usize;
        length > limit || self.data.len() > PREFIX + length + CHUNK
    }

    /// What has arrived, as a response.
    fn response(&mut self) -> Response<GrpcBody> {
        let data = Bytes::from(std::mem::take(&mut self.data));
        let body =
            GrpcBody::Whole { data: Some(data), trailers: self.trailers.take().map(Box::new) };
        let mut response = Response::new(body);
        let head = self.head.take().unwrap_or_default();
        *response.status_mut() = http::StatusCode::from_u16(head.status).unwrap_or_default();
        *response.headers_mut() = head.headers;
        response
    }
}
