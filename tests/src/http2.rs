//! Minimal HTTP/2 on a plain socket, for malformed gRPC calls that no client library would send.

use crate::process::TIMEOUT;
use crate::socket::connect;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
/// The largest window, less the initial one.
const WIDE: u32 = 0x7fff_ffff - 0xffff;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;
/// Setting INITIAL_WINDOW_SIZE: the server may send no data.
pub const NO_WINDOW: (u16, u32) = (4, 0);
/// The server's window of a stream: more may be sent only as the server permits it.
const STREAM_WINDOW: usize = 4 << 20;
/// Error code CANCEL.
const CANCEL: u32 = 8;
/// `grpc-status`, Huffman-encoded.
const GRPC_STATUS: &[u8] = &[0x9a, 0xca, 0xc8, 0xb2, 0x12, 0x34, 0xda, 0x8f];

/// How a call ended, whatever its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// With trailers, whatever the status.
    Responded,
    /// With RST_STREAM.
    Reset,
    /// The connection was closed.
    Closed,
}

/// Headers of a well-formed call.
pub fn call_headers(path: &str) -> Vec<(&str, &str)> {
    vec![
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "test"),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
    ]
}

/// A gRPC length-prefixed message.
pub fn message(bytes: &[u8]) -> Vec<u8> {
    prefixed(0, bytes.len() as u32, bytes)
}

/// A message with an arbitrary prefix.
pub fn prefixed(flag: u8, length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![flag];
    out.extend(length.to_be_bytes());
    out.extend(bytes);
    out
}

/// Makes one call on a new connection and waits for its end.
#[track_caller]
pub fn call(address: &str, headers: &[(&str, &str)], body: &[u8]) -> End {
    let mut client = Client::open(address);
    let call = client.call(headers);
    client.send(call, body, true);
    client.end(call).end
}

/// Sends these bytes after a valid connection preface, and waits for the end.
#[track_caller]
pub fn garbage(address: &str, bytes: &[u8]) -> End {
    let mut client = Client::open(address);
    client.write(bytes);
    client.end(1).end
}

/// A connection on which calls are made frame by frame; closed when dropped.
pub struct Client {
    stream: TcpStream,
    /// Stream id of the next call.
    next: u32,
    /// Frames that are collected to be written at once.
    kept: Option<Vec<u8>>,
}

/// A received frame.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn ends_call(&self) -> bool {
        match self.kind {
            HEADERS | DATA => self.flags & END_STREAM != 0,
            kind => kind == RST_STREAM,
        }
    }
}

/// The end of a call.
#[derive(Debug)]
pub struct Ended {
    pub end: End,
    /// The gRPC status, if there was one.
    pub status: Option<u8>,
    pub body: Vec<u8>,
}

impl Client {
    #[track_caller]
    pub fn open(address: &str) -> Self {
        Self::connect(address, &[])
    }

    /// A client that permits the server to send no data until [`Client::permit`], for requests up
    /// to 4 MiB.
    #[track_caller]
    pub fn open_without_window(address: &str) -> Self {
        let mut client = Self::connect(address, &[NO_WINDOW]);
        // The server permits requests of more than 64 KiB once its settings are acknowledged and it
        // has sent this.
        while client.next_frame().kind != WINDOW_UPDATE {}
        client
    }

    #[track_caller]
    fn connect(address: &str, settings: &[(u16, u32)]) -> Self {
        Self::try_open(address, TIMEOUT, settings)
            .unwrap_or_else(|e| panic!("cannot connect to {address}: {e}"))
    }

    /// Sends these settings, as pairs of identifier and value. A read fails after `timeout`.
    pub fn try_open(address: &str, timeout: Duration, settings: &[(u16, u32)]) -> io::Result<Self> {
        let stream = connect(address)?;
        stream.set_read_timeout(Some(timeout))?;
        let mut client = Client { stream, next: 1, kept: None };
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        let settings: Vec<u8> = settings
            .iter()
            .flat_map(|(identifier, value)| {
                [&identifier.to_be_bytes()[..], &value.to_be_bytes()].concat()
            })
            .collect();
        frame(&mut bytes, SETTINGS, 0, 0, &settings);
        if settings.is_empty() {
            // Responses of any number of calls fit in the connection's window.
            frame(&mut bytes, WINDOW_UPDATE, 0, 0, &WIDE.to_be_bytes());
        }
        client.write(&bytes);
        Ok(client)
    }

    /// As [`Client::open`], and waits for the server's flow-control windows: bodies of up to 4 MiB
    /// may follow at once instead of 64 KiB.
    #[track_caller]
    pub fn open_wide(address: &str) -> Self {
        let mut client = Self::open(address);
        client.read_windows().unwrap_or_else(|e| panic!("no windows from the server: {e}"));
        client
    }

    /// Waits for the server's flow-control windows.
    pub fn read_windows(&mut self) -> io::Result<()> {
        let (mut settings, mut window) = (false, false);
        while !settings || !window {
            let mut head = [0; 9];
            self.stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            self.stream.read_exact(&mut vec![0; length as usize])?;
            if head[3] == SETTINGS && head[4] & ACK == 0 {
                let mut ack = Vec::new();
                frame(&mut ack, SETTINGS, ACK, 0, &[]);
                self.write(&ack);
                settings = true;
            }
            window |= head[3] == WINDOW_UPDATE;
        }
        Ok(())
    }

    /// Begins a call.
    pub fn call(&mut self, headers: &[(&str, &str)]) -> u32 {
        let call = self.next;
        self.next += 2;
        let mut bytes = Vec::new();
        frame(&mut bytes, HEADERS, END_HEADERS, call, &block(headers));
        self.write(&bytes);
        call
    }

    /// Sends a part of a call's body, without waiting for the server's windows: it resets a call
    /// whose body exceeds them. [`Client::send_large`] waits.
    #[track_caller]
    pub fn send(&mut self, call: u32, body: &[u8], last: bool) {
        assert!(body.len() <= STREAM_WINDOW, "larger than the server's window");
        let mut bytes = Vec::new();
        let mut left = body;
        loop {
            let (part, rest) = left.split_at(left.len().min(16_000));
            left = rest;
            let ends = last && left.is_empty();
            frame(&mut bytes, DATA, if ends { END_STREAM } else { 0 }, call, part);
            if left.is_empty() {
                return self.write(&bytes);
            }
        }
    }

    /// Sends the whole body of a call, up to 16 MiB, which the window of the connection permits. Waits
    /// for the updates of the stream's window, once the server's windows are known. Other frames are
    /// discarded meanwhile.
    #[track_caller]
    pub fn send_large(&mut self, call: u32, body: &[u8]) {
        let (mut left, mut window) = (body, STREAM_WINDOW);
        while left.len() > window {
            let (part, rest) = left.split_at(window);
            (left, window) = (rest, 0);
            self.send(call, part, false);
            while window == 0 {
                let frame = self.next_frame();
                assert!(frame.stream != call || !frame.ends_call(), "the call ended early");
                if let (WINDOW_UPDATE, [a, b, c, d]) = (frame.kind, &frame.payload[..])
                    && frame.stream == call
                {
                    window = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                }
            }
        }
        self.send(call, left, true);
    }

    /// Permits the server to send `bytes` more for `call`, and on the connection.
    pub fn permit(&mut self, call: u32, bytes: u32) {
        let mut frames = Vec::new();
        for stream in [0, call] {
            frame(&mut frames, WINDOW_UPDATE, 0, stream, &bytes.to_be_bytes());
        }
        self.write(&frames);
    }

    /// Resets a call.
    pub fn reset(&mut self, call: u32) {
        let mut bytes = Vec::new();
        frame(&mut bytes, RST_STREAM, 0, call, &CANCEL.to_be_bytes());
        self.write(&bytes);
    }

    /// Waits for the end of a call. Frames of other calls are discarded.
    #[track_caller]
    pub fn end(&mut self, call: u32) -> Ended {
        self.try_end(call).unwrap_or_else(|e| panic!("the call did not end: {e}"))
    }

    /// Waits for the ends of all `calls`. Returns the calls that have ended and the sizes of their
    /// bodies.
    #[track_caller]
    pub fn ends(&mut self, calls: &[u32]) -> BTreeMap<u32, usize> {
        let (mut bodies, mut ended) = (BTreeMap::new(), BTreeMap::new());
        while calls.iter().any(|call| !ended.contains_key(call)) {
            let frame = self.next_frame();
            let body: &mut usize = bodies.entry(frame.stream).or_default();
            if frame.kind == DATA {
                *body += frame.payload.len();
            }
            if frame.ends_call() {
                ended.insert(frame.stream, *body);
            }
        }
        ended
    }

    /// Waits for `bytes` of the body of a call.
    #[track_caller]
    pub fn wait_for_data(&mut self, call: u32, bytes: usize) {
        let mut received = 0;
        while received < bytes {
            let frame = self.next_frame();
            if frame.stream == call {
                assert!(!frame.ends_call(), "the call ended after {received} bytes");
                received += if frame.kind == DATA { frame.payload.len() } else { 0 };
            }
        }
    }

    #[track_caller]
    fn next_frame(&mut self) -> Frame {
        let frame = self.frame().unwrap_or_else(|e| panic!("no frame: {e}"));
        let frame = frame.unwrap_or_else(|| panic!("the server closed the connection"));
        let text = || String::from_utf8_lossy(&frame.payload).into_owned();
        assert!(frame.kind != GOAWAY, "the server ends the connection: {:?}", text());
        frame
    }

    /// The same, with the error of a read that takes too long.
    pub fn try_end(&mut self, call: u32) -> io::Result<Ended> {
        let mut ended = Ended { end: End::Closed, status: None, body: Vec::new() };
        while let Some(frame) = self.frame()? {
            match frame.kind {
                GOAWAY => break,
                HEADERS | DATA if frame.stream == call => {
                    if frame.kind == DATA {
                        ended.body.extend(&frame.payload);
                    } else {
                        ended.status = grpc_status(&frame.payload).or(ended.status);
                    }
                    if frame.ends_call() {
                        return Ok(Ended { end: End::Responded, ..ended });
                    }
                }
                RST_STREAM if frame.stream == call => {
                    return Ok(Ended { end: End::Reset, ..ended });
                }
                _ => {}
            }
        }
        Ok(ended)
    }

    /// The next frame; `None` when the connection was closed. Acknowledges settings.
    fn frame(&mut self) -> io::Result<Option<Frame>> {
        let mut head = [0; 9];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Err(e),
            Err(_) => return Ok(None),
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        if self.stream.read_exact(&mut payload).is_err() {
            return Ok(None);
        }
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let (kind, flags) = (head[3], head[4]);
        if kind == SETTINGS && flags & ACK == 0 {
            let mut ack = Vec::new();
            frame(&mut ack, SETTINGS, ACK, 0, &[]);
            self.write(&ack);
        }
        Ok(Some(Frame { kind, flags, stream, payload }))
    }

    /// Writes all frames that `calls` sends with one write.
    pub fn in_one_write(&mut self, calls: impl FnOnce(&mut Self)) {
        self.kept = Some(Vec::new());
        calls(self);
        let bytes = self.kept.take().unwrap_or_default();
        self.write(&bytes);
    }

    /// Write errors are ignored: the server may close early, which reading detects.
    fn write(&mut self, bytes: &[u8]) {
        match &mut self.kept {
            Some(kept) => kept.extend(bytes),
            None => drop(self.stream.write_all(bytes)),
        }
    }
}

/// A one-digit status in a header block, as this server encodes the first one on a connection:
/// literals in the Huffman code of RFC 7541, appendix B.
fn grpc_status(block: &[u8]) -> Option<u8> {
    let codes: [(u8, u32); 10] = [
        (0b00000, 5),
        (0b00001, 5),
        (0b00010, 5),
        (0b011001, 6),
        (0b011010, 6),
        (0b011011, 6),
        (0b011100, 6),
        (0b011101, 6),
        (0b011110, 6),
        (0b011111, 6),
    ];
    let at = block.windows(GRPC_STATUS.len()).position(|part| part == GRPC_STATUS)?;
    let (length, value) = block.get(at + GRPC_STATUS.len()..)?.split_first()?;
    let value = value.get(..usize::from(length.checked_sub(0x80)?))?;
    let bits = value.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1));
    let (mut status, mut code) = (None, (0, 0));
    // What is left of the last byte is not a digit.
    for bit in bits {
        code = (code.0 << 1 | bit, code.1 + 1);
        if let Some(digit) = codes.iter().position(|known| *known == code) {
            status = Some(10 * status.unwrap_or(0) + digit as u8);
            code = (0, 0);
        }
    }
    status
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Encodes headers as literals without indexing. Names and values are shorter than 127 bytes.
fn block(headers: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in headers {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127, "too long for one length byte: {text}");
            out.push(text.len() as u8);
            out.extend(text.bytes());
        }
    }
    out
}
