//! Nested inference of a child: sends the requests of its backend to the models of the server, and
//! the responses to the child.
//!
//! It has a connection of its own, which the child opens with its first call: a child that does not
//! read a large response must not block its control connection. Tensors travel in the messages.
//! When the connection ends, what is open is cancelled.

mod convert;

use super::exit_reason::KillReason;
use super::facts;
use super::messages::{
    LoadModel, ModelStatusMessage, NestedCall, NestedData, NestedReply, UnloadModel, nested_call,
};
use super::process::Process;
use super::wire::{ReceiveOutcome, Receiver, Sender, split_socket};
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use trtserver_base::error::{Code, Error, Result};
use trtserver_plugin_host::nested::{
    CancelRequest, NestedDelivery, ResponseHandler, server_models,
};
use trtserver_request::{InferResponse, UnreadResponse};
use trtserver_request_trace::current::enter_trace;

/// Limit of load and unload requests of one child that have not ended: each has a thread.
const MAX_CHANGES: usize = 16;

/// The connection of one child. Dropping it cancels the requests that came from it.
pub struct NestedConnection {
    link: Arc<ChildLink>,
    thread: Option<JoinHandle<()>>,
}

impl NestedConnection {
    /// Starts the thread that serves the connection.
    pub fn open(
        socket: OwnedFd,
        process: &Arc<Process>,
        write_timeout: Option<Duration>,
    ) -> Result<Self> {
        let failed = |e| Error::unavailable(format!("{}: nested requests: {e}", process.label));
        let socket = UnixStream::from(socket);
        socket.set_write_timeout(write_timeout).map_err(failed)?;
        let (sender, receiver) = split_socket(socket);
        let link = Arc::new(ChildLink { process: Arc::clone(process), sender });
        let of_thread = Arc::clone(&link);
        let thread = thread::Builder::new().name(format!("nested {}", process.label));
        let thread = thread.spawn(move || listen(receiver, &of_thread)).map_err(failed)?;
        Ok(Self { link, thread: Some(thread) })
    }
}

impl Drop for NestedConnection {
    fn drop(&mut self) {
        self.link.sender.shut_down();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Serves the connection until it ends.
fn listen(mut receiver: Receiver, link: &Arc<ChildLink>) {
    let calls = NestedCalls::new(link);
    loop {
        match receiver.receive() {
            Ok(ReceiveOutcome::Message(call)) => calls.call(call),
            Ok(ReceiveOutcome::TimedOut) => {}
            Ok(ReceiveOutcome::Closed) => {
                return link.process.connection_lost("closed its connection for nested requests");
            }
            Err(e) => {
                let what = format!("sent a malformed nested request ({e})");
                return link.process.kill(KillReason::ProtocolViolation(what));
            }
        }
        while receiver.file().is_some() {}
    }
}

/// The way to the child.
struct ChildLink {
    process: Arc<Process>,
    sender: Sender,
}

/// A reply: data of a response, or a status.
type ReplyResult = Result<(Option<NestedData>, Option<ModelStatusMessage>)>;

impl ChildLink {
    /// Replies to a call that is not a request.
    fn reply(&self, number: u64, outcome: ReplyResult) {
        self.send(outcome, NestedReply { number, last: true, version: -1, ..Default::default() });
    }

    /// Sends a reply, or why it cannot be sent.
    fn send(&self, outcome: ReplyResult, reply: NestedReply) {
        let failed = |e: &Error| NestedReply {
            failure: Some(facts::failure_message(e)),
            last: true,
            counted: false,
            ..reply.clone()
        };
        let message = match outcome {
            Ok((data, status)) => NestedReply { data, status, ..reply.clone() },
            Err(e) => failed(&e),
        };
        let sent = self.sender.send(&message).or_else(|e| match e.code {
            // Too long, and not sent.
            Code::InvalidArg => self.sender.send(&failed(&e)),
            _ => Err(e),
        });
        if let Err(e) = sent {
            // A part of a message may have been sent.
            self.sender.shut_down();
            let what = format!("stopped reading its connection for nested requests ({e})");
            self.process.connection_lost(&what);
        }
    }
}

/// Requests of the child that have not ended, by their numbers.
type OpenRequests = Mutex<HashMap<u64, OpenRequest>>;

#[derive(Default)]
struct OpenRequest {
    cancel: Option<CancelRequest>,
    /// Responses that its handler has not received.
    unread: VecDeque<UnreadResponse>,
}

/// Calls of one child. Dropping it cancels its requests and waits for their last responses.
struct NestedCalls {
    link: Arc<ChildLink>,
    delivery: NestedDelivery,
    open: Arc<OpenRequests>,
    /// Load and unload requests that have not ended.
    changes: Arc<AtomicUsize>,
}

impl NestedCalls {
    fn new(link: &Arc<ChildLink>) -> Self {
        Self {
            link: Arc::clone(link),
            delivery: NestedDelivery::default(),
            open: Arc::default(),
            changes: Arc::default(),
        }
    }

    /// Does what the child asks, without waiting.
    fn call(&self, NestedCall { number, kind }: NestedCall) {
        match kind {
            Some(nested_call::CallKind::Infer(infer)) => self.infer(number, infer),
            Some(nested_call::CallKind::Cancel(_)) => {
                let open = self.open.lock();
                let cancel = open.get(&number).and_then(|request| request.cancel.clone());
                drop(open);
                if let Some(cancel) = cancel {
                    cancel();
                }
            }
            Some(nested_call::CallKind::Received(_)) => {
                let mut open = self.open.lock();
                let unread = open.get_mut(&number).and_then(|request| request.unread.pop_front());
                drop(open);
                drop(unread);
            }
            Some(nested_call::CallKind::Status(query)) => {
                let status =
                    server_models().and_then(|server| server.status(&query.model, query.version));
                let status = status.map(|status| ModelStatusMessage {
                    version: status.version,
                    ready: status.ready,
                    decoupled: status.decoupled,
                });
                self.link.reply(number, status.map(|status| (None, Some(status))));
            }
            Some(nested_call::CallKind::Load(LoadModel { model, config, files })) => {
                let files = files.into_iter().map(|file| (file.key, file.content)).collect();
                self.change(number, move || server_models()?.load(&model, config, files));
            }
            Some(nested_call::CallKind::Unload(UnloadModel { model, dependents })) => {
                self.change(number, move || server_models()?.unload(&model, dependents));
            }
            None => {
                self.link.reply(number, Err(Error::unsupported("the nested call is unknown")));
            }
        }
    }

    fn infer(&self, number: u64, infer: super::messages::NestedInfer) {
        // Entered first: a response may come before `infer` returns.
        self.open.lock().insert(number, OpenRequest::default());
        let (link, open) = (Arc::clone(&self.link), Arc::clone(&self.open));
        let handler = Arc::new(ResponseForwarder { link, open, number });
        let parent = self.link.process.traces.only();
        let _scope = parent.as_ref().map(enter_trace);
        let sent = convert::nested_request(infer, self.link.process.model.get().cloned()).and_then(
            |request| {
                self.delivery.infer(&self.link.process.label, server_models()?, request, handler)
            },
        );
        match sent {
            Ok(cancel) => {
                if let Some(request) = self.open.lock().get_mut(&number) {
                    request.cancel = Some(cancel);
                }
            }
            Err(e) => {
                self.open.lock().remove(&number);
                self.link.reply(number, Err(e));
            }
        }
    }

    /// Changes a model on a thread of its own, since the change may take long.
    fn change(&self, number: u64, change: impl FnOnce() -> Result<()> + Send + 'static) {
        let (link, changes) = (Arc::clone(&self.link), Arc::clone(&self.changes));
        if changes.fetch_add(1, Ordering::Relaxed) >= MAX_CHANGES {
            changes.fetch_sub(1, Ordering::Relaxed);
            let why = format!(
                "{} has {MAX_CHANGES} load and unload requests that have not ended, which is the limit",
                link.process.label
            );
            return link.reply(number, Err(Error::unavailable(why)));
        }
        let of_thread = Arc::clone(&changes);
        let run = move || {
            let changed = change();
            of_thread.fetch_sub(1, Ordering::Relaxed);
            link.reply(number, changed.map(|()| (None, None)));
        };
        let started = thread::Builder::new().name("nested-change".to_owned()).spawn(run);
        if let Err(e) = started {
            changes.fetch_sub(1, Ordering::Relaxed);
            let error = Error::unavailable(format!("cannot start a thread: {e}"));
            self.link.reply(number, Err(error));
        }
    }
}

/// Sends the responses of a request to the child.
struct ResponseForwarder {
    link: Arc<ChildLink>,
    open: Arc<OpenRequests>,
    number: u64,
}

impl ResponseHandler for ResponseForwarder {
    fn deliver(&self, version: i64, response: Result<Option<InferResponse>>, last: bool) {
        let mut counted = false;
        let data = response.and_then(|response| {
            let Some(mut response) = response else { return Ok(None) };
            let unread = response.unread.take();
            let data = convert::nested_data(response)?;
            if let Some(unread) = unread.filter(|_| !last)
                && let Some(request) = self.open.lock().get_mut(&self.number)
            {
                request.unread.push_back(*unread);
                counted = true;
            }
            Ok(Some(data))
        });
        if last || data.is_err() {
            let ended = self.open.lock().remove(&self.number);
            // For the child the request has ended.
            if !last && let Some(cancel) = ended.and_then(|request| request.cancel) {
                cancel();
            }
        }
        let reply =
            NestedReply { number: self.number, last, version, counted, ..Default::default() };
        self.link.send(data.map(|data| (data, None)), reply);
    }
}

#[cfg(test)]
#[path = "nested_tests.rs"]
mod tests;
