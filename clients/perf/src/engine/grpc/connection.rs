//! One HTTP/2 connection and its calls.

use super::super::message::{self, MessageKind};
use super::super::socket::Socket;
use super::super::thread::{FinishedRequest, RequestJob};
use super::GrpcContext;
use super::call::{OpenCall, complete_call, status_name};
use std::io::{ErrorKind, Read, Write};
use trtserver_client::http2::frames::{self, FrameEvent, FrameSplitter};
use trtserver_client::http2::headers::HeaderTable;

/// Frames of large messages are not made further ahead of the socket.
const AHEAD: usize = 256 * 1024;
/// Bytes received before the server gets a window update.
const UPDATE: u32 = 1 << 29;
/// Calls that a server without a limit accepts.
const MAX_CALLS: usize = 1 << 20;
/// The last stream id of a connection; the next call opens another connection.
const LAST_ID: u32 = 0x7fff_fff0;

pub struct GrpcConnection {
    socket: Option<Socket>,
    pub(super) out: Vec<u8>,
    written: usize,
    splitter: FrameSplitter,
    pub(super) calls: Vec<OpenCall>,
    next_id: u32,
    /// The server's flow-control window for this connection.
    pub(super) window: i64,
    pub(super) initial_window: i64,
    pub(super) max_frame: usize,
    pub(super) max_calls: usize,
    pub(super) table: HeaderTable,
    /// Received since the last window update.
    received: u32,
    /// The server accepts no more calls (GOAWAY).
    pub(super) ending: bool,
    /// Calls whose message is not in `out` as a whole.
    unsent: usize,
    /// Calls whose message is in `out`, and not all written.
    unwritten: usize,
    pub dirty: bool,
}

impl GrpcConnection {
    pub fn new() -> Self {
        GrpcConnection {
            socket: None,
            out: Vec::new(),
            written: 0,
            splitter: FrameSplitter::default(),
            calls: Vec::new(),
            next_id: 1,
            window: frames::DEFAULT_WINDOW,
            initial_window: frames::DEFAULT_WINDOW,
            max_frame: frames::DEFAULT_FRAME,
            max_calls: MAX_CALLS,
            table: HeaderTable::Unknown,
            received: 0,
            ending: false,
            unsent: 0,
            unwritten: 0,
            dirty: false,
        }
    }

    pub fn is_closed(&self) -> bool {
        self.socket.is_none()
    }

    pub fn opened(&mut self, socket: Socket) {
        let dirty = self.dirty;
        *self = GrpcConnection {
            socket: Some(socket),
            out: frames::connection_preface(),
            dirty,
            ..Self::new()
        };
    }

    /// Whether it takes another request.
    pub fn accepts(&self, limit: usize) -> bool {
        let busy = self.calls.iter().filter(|call| call.job.is_some()).count();
        self.is_closed()
            || (!self.ending && self.next_id < LAST_ID && busy < limit.min(self.max_calls))
    }

    pub fn has_output(&self) -> bool {
        self.written < self.out.len() || self.unsent > 0
    }

    pub fn start(&mut self, job: RequestJob, context: &mut GrpcContext<'_>) {
        let idle = match context.streaming {
            true => self.calls.iter().position(|call| call.job.is_none()),
            false => None,
        };
        let at = idle.unwrap_or_else(|| {
            let id = self.next_id;
            self.next_id += 2;
            let head = self.out.len();
            frames::put_frame_head(&mut self.out, 0, frames::HEADERS, frames::END_HEADERS, id);
            context.headers.write(&mut self.table, &mut self.out);
            let length = (self.out.len() - head - frames::HEAD) as u32;
            self.out[head..head + 3].copy_from_slice(&length.to_be_bytes()[1..]);
            self.calls.push(OpenCall::new(id, self.initial_window));
            self.calls.len() - 1
        });
        let call = &mut self.calls[at];
        call.job = Some(job);
        (call.framed, call.sent, call.first, call.end, call.responses) = (0, 0, 0, 0, 0);
        (call.failure, call.answered) = (None, false);
        self.unsent += 1;
        self.frame_message(at, context);
    }

    /// Makes frames of a call's message, as far as windows and the output buffer permit.
    fn frame_message(&mut self, at: usize, context: &GrpcContext<'_>) {
        let call = &mut self.calls[at];
        let Some(job) = &call.job else { return };
        let message = &context.plan.prepared.streams[job.data.0][job.data.1];
        let length = message.bytes.len();
        while call.framed < length {
            let window = self.window.min(call.window);
            let ahead = AHEAD.saturating_sub(self.out.len() - self.written);
            if window <= 0 || ahead == 0 {
                return;
            }
            let part = (length - call.framed).min(self.max_frame).min(window as usize);
            let last = call.framed + part == length;
            let flags = if last && !context.streaming { frames::END_STREAM } else { 0 };
            frames::put_frame_head(&mut self.out, part, frames::DATA, flags, call.id);
            let at = self.out.len();
            self.out.extend_from_slice(&message.bytes[call.framed..call.framed + part]);
            message.patch(job.sequence, call.framed, &mut self.out[at..]);
            call.framed += part;
            call.window -= part as i64;
            self.window -= part as i64;
        }
        self.unsent -= 1;
        self.unwritten += 1;
    }

    /// Writes what can be written.
    pub fn flush(&mut self, context: &mut GrpcContext<'_>, done: &mut Vec<FinishedRequest>) {
        loop {
            if self.unsent > 0 {
                for at in 0..self.calls.len() {
                    let whole = |job: &RequestJob| {
                        let message = &context.plan.prepared.streams[job.data.0][job.data.1];
                        message.bytes.len()
                    };
                    if self.calls[at]
                        .job
                        .as_ref()
                        .is_some_and(|job| self.calls[at].framed < whole(job))
                    {
                        self.frame_message(at, context);
                    }
                }
            }
            let Some(socket) = &mut self.socket else { return };
            if self.written == self.out.len() {
                break;
            }
            match socket.write(&self.out[self.written..]) {
                Ok(n) => self.written += n,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    // A long queue of frames is moved to the front now and then.
                    if self.written > AHEAD {
                        self.out.drain(..self.written);
                        self.written = 0;
                    }
                    return;
                }
                Err(e) => return self.close(&format!("cannot send: {e}"), context, done),
            }
            if self.written == self.out.len() {
                self.out.clear();
                self.written = 0;
            }
        }
        if self.unwritten > 0 {
            let now = context.clock.now();
            for call in &mut self.calls {
                if call.sent == 0 && call.job.is_some() {
                    call.sent = now;
                }
            }
            self.unwritten = 0;
        }
    }

    pub fn receive(
        &mut self,
        scratch: &mut [u8],
        now: u64,
        context: &mut GrpcContext<'_>,
        done: &mut Vec<FinishedRequest>,
    ) {
        loop {
            let Some(socket) = &mut self.socket else { return };
            let read = match socket.read(scratch) {
                Ok(n) => n,
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(e) => return self.close(&e.to_string(), context, done),
            };
            if read == 0 {
                return self.close("the server closed the connection", context, done);
            }
            let mut splitter = std::mem::take(&mut self.splitter);
            let outcome =
                splitter.read(&scratch[..read], &mut |event| self.event(event, now, context, done));
            self.splitter = splitter;
            if let Err(problem) = outcome {
                return self.close(&problem, context, done);
            }
            if self.ending && self.calls.is_empty() {
                self.socket = None;
                return;
            }
            if read < scratch.len() {
                return;
            }
        }
    }

    fn event(
        &mut self,
        event: FrameEvent<'_>,
        now: u64,
        context: &mut GrpcContext<'_>,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String> {
        match event {
            FrameEvent::Data { stream, bytes, end, whole } => {
                self.received += whole.unwrap_or(0) as u32;
                if self.received >= UPDATE {
                    let more = std::mem::take(&mut self.received).to_be_bytes();
                    frames::put_frame(&mut self.out, frames::WINDOW_UPDATE, 0, 0, &more);
                }
                let Some(at) = self.calls.iter().position(|call| call.id == stream) else {
                    return Ok(());
                };
                self.data(at, bytes, whole, now, context, done)?;
                if end && let Some(at) = self.calls.iter().position(|call| call.id == stream) {
                    self.ended(at, context, done);
                }
            }
            FrameEvent::Headers { stream, block, end } => {
                let info = context.reader.read(block)?;
                let Some(at) = self.calls.iter().position(|call| call.id == stream) else {
                    return Ok(());
                };
                let call = &mut self.calls[at];
                if call.first == 0 {
                    call.first = now;
                }
                if let Some(status) = info.http_status.filter(|status| *status != 200) {
                    call.failure.get_or_insert(format!("HTTP status {status}"));
                }
                match info.grpc_status {
                    Some(0) => {}
                    Some(status) => {
                        let text = format!("[{}] {}", status_name(status), info.message);
                        call.failure = Some(text);
                    }
                    // Trailers without a status.
                    None if end && info.http_status.is_none() => {
                        call.failure.get_or_insert("no grpc-status".to_owned());
                    }
                    None => {}
                }
                if end {
                    self.ended(at, context, done);
                }
            }
            FrameEvent::Other { kind, flags, stream, payload } => {
                self.control(kind, flags, stream, payload, context, done)?;
            }
        }
        Ok(())
    }

    fn data(
        &mut self,
        at: usize,
        mut bytes: &[u8],
        whole: Option<usize>,
        now: u64,
        context: &GrpcContext<'_>,
        done: &mut Vec<FinishedRequest>,
    ) -> Result<(), String> {
        let call = &mut self.calls[at];
        if call.first == 0 {
            call.first = now;
        }
        call.received += whole.unwrap_or(0) as u32;
        if call.received >= UPDATE {
            let more = std::mem::take(&mut call.received).to_be_bytes();
            frames::put_frame(&mut self.out, frames::WINDOW_UPDATE, 0, call.id, &more);
        }
        while !bytes.is_empty() {
            let Some(start) = call.reader.read(&mut bytes)? else { return Ok(()) };
            let outcome = match context.kind {
                MessageKind::V2 => message::MessageOutcome::default(),
                kind => message::message_outcome(kind, start),
            };
            if call.job.is_none() || call.answered {
                return Err("the server sent a response that no request asked for".to_owned());
            }
            if !outcome.empty || outcome.failure.is_some() {
                call.responses += 1;
            }
            // Of several responses, the first is timed.
            if call.end == 0 {
                call.end = context.clock.now();
            }
            if outcome.failure.is_some() {
                call.failure = outcome.failure;
            }
            if outcome.more_follow {
                continue;
            }
            call.answered = true;
            if context.streaming {
                complete_call(call, context, done);
            }
        }
        Ok(())
    }

    /// The server has ended a call.
    pub(super) fn ended(
        &mut self,
        at: usize,
        context: &GrpcContext<'_>,
        done: &mut Vec<FinishedRequest>,
    ) {
        let mut call = self.calls.swap_remove(at);
        self.forget_unsent(&call, context);
        if call.job.is_none() {
            return;
        }
        if call.failure.is_none() && (!call.answered || call.reader.is_inside()) {
            call.failure = Some("the call ended without a response".to_owned());
        }
        complete_call(&mut call, context, done);
    }

    /// A call may end before its message is sent.
    fn forget_unsent(&mut self, call: &OpenCall, context: &GrpcContext<'_>) {
        if let Some(job) = &call.job
            && call.framed < context.plan.prepared.streams[job.data.0][job.data.1].bytes.len()
        {
            self.unsent -= 1;
        }
    }

    /// Closes the connection; its requests have failed.
    fn close(&mut self, problem: &str, context: &GrpcContext<'_>, done: &mut Vec<FinishedRequest>) {
        self.socket = None;
        let url = &context.plan.url;
        let kind = if context.streaming { "stream" } else { "call" };
        for mut call in std::mem::take(&mut self.calls) {
            call.failure = Some(format!("{url}: {problem} (in the middle of a {kind})"));
            complete_call(&mut call, context, done);
        }
        (self.unsent, self.unwritten) = (0, 0);
        self.out.clear();
        self.written = 0;
    }

    pub fn expire(&mut self, now: u64, context: &GrpcContext<'_>, done: &mut Vec<FinishedRequest>) {
        let limit = context.plan.timeout.as_nanos() as u64;
        let overdue = |job: &RequestJob| now.saturating_sub(job.begun) > limit;
        if self.calls.iter().any(|call| call.job.as_ref().is_some_and(overdue)) {
            let text = format!("no response within {} s", context.plan.timeout.as_secs_f64());
            self.close(&text, context, done);
        }
    }

    /// Half-closes the open streams.
    pub fn finish(&mut self) {
        for call in &self.calls {
            frames::put_frame(&mut self.out, frames::DATA, frames::END_STREAM, call.id, &[]);
        }
        if let Some(socket) = &mut self.socket {
            // The connection is closed next; a server that does not read has its own timeouts.
            let _ = socket.write(&self.out[self.written..]);
        }
    }
}
