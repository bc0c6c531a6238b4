//! HTTP/1.1: one request at a time on each keep-alive connection.

use super::EnginePlan;
use super::clock::EngineClock;
use super::poll::Poll;
use super::response::{ReadProgress, ResponseReader};
use super::socket::Socket;
use super::thread::{FinishedRequest, RequestJob, Transport};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::time::Duration;

/// Bytes offered to each read.
const READ: usize = 256 * 1024;
/// How often overdue requests are looked for.
const CHECK: u64 = 500_000_000;

pub struct Http<'p> {
    plan: &'p EnginePlan,
    clock: EngineClock,
    poll: Poll,
    connections: Vec<HttpConnection>,
    /// Connections without a request; the last used is the next to be used.
    idle: Vec<usize>,
    limit: usize,
    scratch: Vec<u8>,
    tokens: Vec<usize>,
    next_check: u64,
}

struct HttpConnection {
    socket: Option<Socket>,
    job: Option<RequestJob>,
    /// The patched head of a request of a sequence; empty when the prepared one is sent.
    head: Vec<u8>,
    written: usize,
    sent: u64,
    first: u64,
    reader: ResponseReader,
}

impl<'p> Http<'p> {
    pub fn new(plan: &'p EnginePlan, clock: EngineClock, limit: usize) -> Result<Self, String> {
        Ok(Http {
            plan,
            clock,
            poll: Poll::new()?,
            connections: Vec::new(),
            idle: Vec::new(),
            limit,
            scratch: vec![0; READ],
            tokens: Vec::new(),
            next_check: CHECK,
        })
    }

    fn text(&self, problem: &str) -> String {
        format!("{}: {problem}", self.plan.url)
    }

    /// Writes the rest of the request.
    fn send(&mut self, index: usize, done: &mut Vec<FinishedRequest>) {
        let connection = &mut self.connections[index];
        let (Some(job), Some(socket)) = (&connection.job, &mut connection.socket) else { return };
        let message = &self.plan.prepared.streams[job.data.0][job.data.1];
        let length = message.bytes.len();
        while connection.written < length {
            let head = connection.head.len();
            let written = match connection.written.checked_sub(head) {
                Some(_) => socket.write(&message.bytes[connection.written..]),
                None => socket.write_vectored(&[
                    IoSlice::new(&connection.head[connection.written..]),
                    IoSlice::new(&message.bytes[head..]),
                ]),
            };
            match written {
                Ok(n) => connection.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A socket that is not connected yet says NotConnected.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(e) => {
                    let text = self.text(&format!("cannot send: {e}"));
                    return self.fail(index, text, done);
                }
            }
        }
        if connection.sent == 0 {
            connection.sent = self.clock.now();
        }
    }

    fn receive(&mut self, index: usize, now: u64, done: &mut Vec<FinishedRequest>) {
        loop {
            let connection = &mut self.connections[index];
            let Some(socket) = &mut connection.socket else { return };
            let read = match socket.read(&mut self.scratch) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(e) => {
                    let text = self.text(&e.to_string());
                    return self.fail(index, text, done);
                }
            };
            if read == 0 {
                let part = connection.reader.has_begun();
                let what = if part { "in the middle of a response" } else { "without a response" };
                let text = self.text(&format!("the server closed the connection {what}"));
                return self.fail(index, text, done);
            }
            if connection.job.is_none() {
                let text = self.text("the server sent bytes that no request asked for");
                return self.fail(index, text, done);
            }
            if !connection.reader.has_begun() {
                connection.first = now;
            }
            match connection.reader.read(&self.scratch[..read]) {
                Ok(ReadProgress::Incomplete) => {}
                Ok(ReadProgress::Complete { failure, close }) => {
                    if close {
                        connection.socket = None;
                    }
                    let end = self.clock.now();
                    self.complete(index, end, failure, done);
                    return;
                }
                Err(problem) => {
                    let text = self.text(&problem);
                    return self.fail(index, text, done);
                }
            }
            if read < self.scratch.len() {
                return;
            }
        }
    }

    fn complete(
        &mut self,
        index: usize,
        end: u64,
        failure: Option<String>,
        done: &mut Vec<FinishedRequest>,
    ) {
        let connection = &mut self.connections[index];
        if let Some(job) = connection.job.take() {
            // The server may respond before it has read the whole request.
            let sent = if connection.sent == 0 { end } else { connection.sent };
            done.push(FinishedRequest {
                job,
                sent,
                first: connection.first,
                end,
                responses: 1,
                failure,
            });
            self.idle.push(index);
        }
    }

    /// Closes the connection; its request has failed.
    fn fail(&mut self, index: usize, text: String, done: &mut Vec<FinishedRequest>) {
        self.connections[index].socket = None;
        let now = self.clock.now();
        self.complete(index, now, Some(text), done);
    }

    fn expire(&mut self, now: u64, done: &mut Vec<FinishedRequest>) {
        let limit = self.plan.timeout.as_nanos() as u64;
        for index in 0..self.connections.len() {
            let overdue = |job: &RequestJob| now.saturating_sub(job.begun) > limit;
            if self.connections[index].job.as_ref().is_some_and(overdue) {
                let seconds = self.plan.timeout.as_secs_f64();
                let text = self.text(&format!("no response within {seconds} s"));
                self.fail(index, text, done);
            }
        }
    }
}

impl Transport for Http<'_> {
    fn can_start(&self) -> bool {
        !self.idle.is_empty() || self.connections.len() < self.limit
    }

    fn start(&mut self, job: RequestJob, done: &mut Vec<FinishedRequest>) {
        let index = self.idle.pop().unwrap_or_else(|| {
            self.connections.push(HttpConnection {
                socket: None,
                job: None,
                head: Vec::new(),
                written: 0,
                sent: 0,
                first: 0,
                reader: ResponseReader::default(),
            });
            self.connections.len() - 1
        });
        let connection = &mut self.connections[index];
        (connection.written, connection.sent, connection.first) = (0, 0, 0);
        let message = &self.plan.prepared.streams[job.data.0][job.data.1];
        message.patched_head(job.sequence, &mut connection.head);
        connection.job = Some(job);
        if connection.socket.is_none() {
            connection.reader.reset();
            let opened = Socket::open(self.plan.address, self.plan.tls.as_ref());
            let opened = opened.and_then(|socket| {
                self.poll.add(&socket, index).map_err(|e| e.to_string())?;
                Ok(socket)
            });
            match opened {
                Ok(socket) => connection.socket = Some(socket),
                Err(e) => {
                    let text = self.text(&format!("cannot connect: {e}"));
                    return self.fail(index, text, done);
                }
            }
            // The first event says that it is connected.
            return;
        }
        self.send(index, done);
    }

    fn wait(
        &mut self,
        timeout: Duration,
        precise: bool,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String> {
        let mut tokens = std::mem::take(&mut self.tokens);
        self.poll.wait(timeout, precise, &mut tokens)?;
        let now = self.clock.now();
        for index in tokens.drain(..) {
            if self.connections[index].sent == 0 {
                self.send(index, done);
            }
            self.receive(index, now, done);
        }
        self.tokens = tokens;
        if now >= self.next_check {
            self.next_check = now + CHECK;
            self.expire(now, done);
        }
        Ok(())
    }

    fn finish(&mut self) {}
}
