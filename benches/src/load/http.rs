//! HTTP/1.1 keep-alive load: one thread, one epoll, pre-encoded requests; of the response head only
//! the length is parsed.

use super::{Meter, Pass, TIMEOUT};
use crate::Result;
use crate::exchange::Exchange;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

/// Free space offered to each read.
const READ: usize = 256 * 1024;

pub fn run(
    address: SocketAddr,
    exchanges: &[Exchange],
    concurrency: usize,
    mut meter: Meter,
) -> Result<Pass> {
    let wrap = |e: std::io::Error| format!("{address}: {e}");
    let mut poll = Poll::new().map_err(wrap)?;
    let mut connections = Vec::with_capacity(concurrency);
    for i in 0..concurrency {
        let stream = std::net::TcpStream::connect(address).map_err(wrap)?;
        stream.set_nodelay(true).map_err(wrap)?;
        stream.set_nonblocking(true).map_err(wrap)?;
        let mut stream = TcpStream::from_std(stream);
        let both = Interest::READABLE | Interest::WRITABLE;
        poll.registry().register(&mut stream, Token(i), both).map_err(wrap)?;
        connections.push(Connection::new(stream, exchanges, i));
    }
    let mut events = Events::with_capacity(concurrency.max(8));
    // All in-flight responses are awaited, so that nothing is cancelled.
    let mut open = connections.len();
    while open > 0 {
        poll.poll(&mut events, Some(TIMEOUT)).map_err(wrap)?;
        if events.is_empty() {
            return Err(format!("no response within {} s", TIMEOUT.as_secs()));
        }
        for event in &events {
            if let Some(connection) = connections.get_mut(event.token().0)
                && !connection.over
                && !connection.drive(&mut meter)?
            {
                connection.over = true;
                open -= 1;
            }
        }
    }
    meter.result()
}

struct Connection<'e> {
    stream: TcpStream,
    /// Its requests in turn.
    exchanges: &'e [Exchange],
    turn: usize,
    /// Bytes of the request that are sent.
    sent: usize,
    buffer: Vec<u8>,
    filled: usize,
    /// Lengths of the response head and of the whole, once the head is complete.
    ends: Option<(usize, usize)>,
    sent_at: Instant,
    /// It has received its last response.
    over: bool,
}

impl<'e> Connection<'e> {
    fn new(stream: TcpStream, exchanges: &'e [Exchange], turn: usize) -> Self {
        let (buffer, sent_at) = (vec![0; READ], Instant::now());
        Connection {
            stream,
            exchanges,
            turn,
            sent: 0,
            buffer,
            filled: 0,
            ends: None,
            sent_at,
            over: false,
        }
    }

    fn exchange(&self) -> &'e Exchange {
        &self.exchanges[self.turn % self.exchanges.len()]
    }

    /// Reads and writes until the socket would block; false when the pass is over.
    fn drive(&mut self, meter: &mut Meter) -> Result<bool> {
        loop {
            self.send()?;
            let drained = self.receive()?;
            if let Some((head, whole)) = self.ends
                && self.filled >= whole
            {
                self.exchange().expect.check(&self.buffer[head..whole])?;
                if self.filled > whole {
                    return Err("more bytes than the response has".into());
                }
                if !meter.record(self.sent_at, whole)? {
                    return Ok(false);
                }
                (self.sent, self.filled, self.ends) = (0, 0, None);
                self.turn += 1;
                self.send()?;
            }
            if drained {
                return Ok(true);
            }
        }
    }

    fn send(&mut self) -> Result<()> {
        if self.sent == 0 {
            self.sent_at = Instant::now();
        }
        let message = &self.exchange().message;
        while self.sent < message.len() {
            match self.stream.write(&message[self.sent..]) {
                Ok(n) => self.sent += n,
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(e) => return Err(format!("cannot send: {e}")),
            }
        }
        Ok(())
    }

    /// One read; true when the socket is drained and epoll will report more.
    fn receive(&mut self) -> Result<bool> {
        let needed = self.ends.map_or(self.filled + READ, |(_, whole)| whole.max(self.filled + 1));
        if self.buffer.len() < needed {
            self.buffer.resize(needed, 0);
        }
        let room = self.buffer.len() - self.filled;
        match self.stream.read(&mut self.buffer[self.filled..]) {
            Ok(0) => Err("the server closed the connection".into()),
            Ok(n) => {
                self.filled += n;
                if self.ends.is_none() {
                    self.ends = ends(&self.buffer[..self.filled])?;
                }
                Ok(n < room)
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => Ok(true),
            Err(e) => Err(format!("cannot receive: {e}")),
        }
    }
}

/// Ends of head and response; none while the head is incomplete.
fn ends(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return Ok(None);
    };
    let text = std::str::from_utf8(&bytes[..at]).map_err(|_| "the response head is not text")?;
    let mut lines = text.split("\r\n");
    let status = lines.next().unwrap_or_default();
    if !status.starts_with("HTTP/1.1 200") {
        let body = String::from_utf8_lossy(&bytes[at + 4..]);
        return Err(format!("{text}\n{body}").replace("\r\n", " | "));
    }
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.ok_or("the response has no Content-Length")?;
    Ok(Some((at + 4, at + 4 + length)))
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
