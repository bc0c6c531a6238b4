//! gRPC: calls share HTTP/2 connections; a stream stays open and carries one request after another.

mod call;
mod connection;
mod control;
mod status;

use super::EnginePlan;
use super::clock::EngineClock;
use super::message::MessageKind;
use super::poll::Poll;
use super::socket::Socket;
use super::thread::{FinishedRequest, RequestJob, Transport};
use connection::GrpcConnection;
use status::HeaderInfo;
use std::time::Duration;
use trtserver_client::http2::headers::{CallHeaders, HeaderReader};

const AGENT: &str = concat!("trtserver-perf/", env!("CARGO_PKG_VERSION"));

/// Bytes offered to each read.
const READ: usize = 256 * 1024;
/// How often overdue requests are looked for.
const CHECK: u64 = 500_000_000;

/// What all connections of a thread have in common.
struct GrpcContext<'p> {
    plan: &'p EnginePlan,
    clock: EngineClock,
    headers: CallHeaders,
    kind: MessageKind,
    /// Each request is a message on an open call, instead of a call.
    streaming: bool,
    reader: HeaderReader<HeaderInfo>,
}

pub struct Grpc<'p> {
    context: GrpcContext<'p>,
    poll: Poll,
    connections: Vec<GrpcConnection>,
    /// Connections with frames to be written.
    dirty: Vec<usize>,
    /// Where the search for a connection begins.
    cursor: usize,
    limit: usize,
    scratch: Vec<u8>,
    tokens: Vec<usize>,
    next_check: u64,
}

impl<'p> Grpc<'p> {
    pub fn new(plan: &'p EnginePlan, clock: EngineClock, limit: usize) -> Result<Self, String> {
        let call = plan.prepared.call.as_ref().ok_or("no gRPC method")?;
        let more = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let context = GrpcContext {
            plan,
            clock,
            headers: CallHeaders::new(plan.tls.is_some(), &call.path, &plan.authority, AGENT, more),
            kind: call.kind,
            streaming: call.streaming,
            reader: HeaderReader::default(),
        };
        Ok(Grpc {
            context,
            poll: Poll::new()?,
            connections: Vec::new(),
            dirty: Vec::new(),
            cursor: 0,
            limit,
            scratch: vec![0; READ],
            tokens: Vec::new(),
            next_check: CHECK,
        })
    }

    /// A connection that accepts another request.
    fn available(&self) -> Option<usize> {
        let count = self.connections.len();
        let order = (0..count).map(|offset| (self.cursor + offset) % count);
        order
            .into_iter()
            .find(|index| self.connections[*index].accepts(self.context.plan.calls_per_connection))
    }

    fn open(&mut self, index: usize) -> Result<(), String> {
        let plan = self.context.plan;
        let wrap = |e: String| format!("{}: cannot connect: {e}", plan.url);
        let socket = Socket::open(plan.address, plan.tls.as_ref()).map_err(wrap)?;
        self.poll.add(&socket, index).map_err(|e| wrap(e.to_string()))?;
        self.connections[index].opened(socket);
        Ok(())
    }

    fn mark(&mut self, index: usize) {
        if !std::mem::replace(&mut self.connections[index].dirty, true) {
            self.dirty.push(index);
        }
    }

    fn flush(&mut self, done: &mut Vec<FinishedRequest>) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for index in dirty.drain(..) {
            self.connections[index].dirty = false;
            self.connections[index].flush(&mut self.context, done);
        }
        self.dirty = dirty;
    }
}

impl Transport for Grpc<'_> {
    fn can_start(&self) -> bool {
        self.connections.len() < self.limit || self.available().is_some()
    }

    fn start(&mut self, job: RequestJob, done: &mut Vec<FinishedRequest>) {
        let index = match self.available() {
            Some(index) => index,
            None => {
                self.connections.push(GrpcConnection::new());
                self.connections.len() - 1
            }
        };
        self.cursor = index;
        if self.connections[index].is_closed()
            && let Err(text) = self.open(index)
        {
            let now = self.context.clock.now();
            let failure = Some(text);
            done.push(FinishedRequest {
                job,
                sent: now,
                first: now,
                end: now,
                responses: 0,
                failure,
            });
            return;
        }
        self.connections[index].start(job, &mut self.context);
        self.mark(index);
    }

    fn wait(
        &mut self,
        timeout: Duration,
        precise: bool,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String> {
        self.flush(done);
        let timeout = if done.is_empty() { timeout } else { Duration::ZERO };
        let mut tokens = std::mem::take(&mut self.tokens);
        self.poll.wait(timeout, precise, &mut tokens)?;
        let now = self.context.clock.now();
        for index in tokens.drain(..) {
            self.connections[index].receive(&mut self.scratch, now, &mut self.context, done);
            // The socket may have become writable, or frames may have to be acknowledged.
            if self.connections[index].has_output() {
                self.mark(index);
            }
            self.cursor = index;
        }
        self.tokens = tokens;
        if now >= self.next_check {
            self.next_check = now + CHECK;
            for connection in &mut self.connections {
                connection.expire(now, &self.context, done);
            }
        }
        Ok(())
    }

    fn finish(&mut self) {
        for connection in &mut self.connections {
            connection.finish();
        }
    }
}
