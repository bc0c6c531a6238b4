//! The models of the server as the backend of this process uses them: calls over a connection that
//! the first one opens.
//!
//! The host refuses a request by a reply, so that sending one does not wait for it: its handler
//! gets the error.

use super::control::{self, Control};
use crate::messages::{
    EmptyMessage, LoadModel, ModelFile, ModelQuery, NamedTensor, NestedCall, NestedData,
    NestedInfer, NestedReply, UnloadModel, control_message, nested_call,
};
use crate::wire;
use crate::wire::{ReceiveOutcome, Receiver, Sender};
use crate::{facts, params};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use trtserver_base::error::{Code, Error, Result};
use trtserver_plugin_host::nested::{
    MakeSink, ModelStatus, NestedRequest, QueuedRequest, ReachedVersion, ResponseEnd, ServerModels,
};
use trtserver_request::dtype::DType;
use trtserver_request::unread::UnreadAccount;
use trtserver_request::{CorrelationId, InferResponse, OutputTensor, Sink, UnreadResponse};

/// The server's models, called from a child process over the nested-inference connection.
pub struct RemoteModels {
    calls: Arc<NestedCalls>,
}

/// The calls that wait for replies.
struct NestedCalls {
    control: Arc<Control>,
    /// Opened by the first call.
    connection: Mutex<Option<Arc<Sender>>>,
    /// The thread that reads replies. It must not send: the host may wait for it to read.
    reader: OnceLock<ThreadId>,
    state: Mutex<NestedCallState>,
}

#[derive(Default)]
struct NestedCallState {
    last: u64,
    waiting: HashMap<u64, ReplyTarget>,
}

enum ReplyTarget {
    /// Waits for responses.
    Sink(Sink, ReachedVersion),
    /// Waits for one reply.
    Reply(mpsc::Sender<NestedReply>),
}

impl NestedCalls {
    /// The connection to the host.
    fn connection(self: &Arc<Self>) -> Result<Arc<Sender>> {
        let mut connection = self.connection.lock();
        if let Some(sender) = &*connection {
            return Ok(Arc::clone(sender));
        }
        let (ours, theirs) = wire::socket_pair()?;
        let (sender, receiver) = wire::split_socket(ours);
        let calls = Arc::clone(self);
        let reader = thread::Builder::new().name("nested-replies".to_owned());
        reader
            .spawn(move || calls.read(receiver))
            .map_err(|e| Error::unavailable(format!("cannot start a thread: {e}")))?;
        self.control.send_file(
            control_message::MessageKind::NestedConnection(EmptyMessage {}),
            theirs.as_fd(),
        );
        Ok(Arc::clone(connection.insert(Arc::new(sender))))
    }

    /// Passes replies on until the connection ends.
    fn read(self: &Arc<Self>, mut receiver: Receiver) {
        let _ = self.reader.set(thread::current().id());
        loop {
            match receiver.receive::<NestedReply>() {
                Ok(ReceiveOutcome::Message(reply)) => self.resolve(reply),
                Ok(ReceiveOutcome::TimedOut) => {}
                Ok(ReceiveOutcome::Closed) if self.control.is_ending() => return,
                Ok(ReceiveOutcome::Closed) => control::exit_without_host(),
                Err(e) => control::exit_on_violation(&e),
            }
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// It is too long, or the connection cannot be opened.
    fn send(self: &Arc<Self>, number: u64, kind: nested_call::CallKind) -> Result<()> {
        match self.connection()?.send(&NestedCall { number, kind: Some(kind) }) {
            Err(e) if e.code != Code::InvalidArg && !self.control.is_ending() => {
                control::exit_without_host()
            }
            sent => sent,
        }
    }

    fn call(self: &Arc<Self>, waiting: ReplyTarget, kind: nested_call::CallKind) -> Result<u64> {
        let number = {
            let mut state = self.state.lock();
            state.last += 1;
            let number = state.last;
            state.waiting.insert(number, waiting);
            number
        };
        self.send(number, kind).inspect_err(|_| {
            self.state.lock().waiting.remove(&number);
        })?;
        Ok(number)
    }

    /// Sends a call and waits for its one reply.
    fn wait(self: &Arc<Self>, kind: nested_call::CallKind) -> Result<NestedReply> {
        let (sender, reply) = mpsc::channel();
        self.call(ReplyTarget::Reply(sender), kind)?;
        // Without the host this process ends.
        let reply = reply.recv().map_err(|_| Error::internal("the call got no reply"))?;
        match &reply.failure {
            Some(failure) => Err(facts::failure_error(failure)),
            None => Ok(reply),
        }
    }

    /// Passes a reply on; does not block.
    fn resolve(self: &Arc<Self>, reply: NestedReply) {
        let last = reply.last || reply.failure.is_some();
        let unread = (reply.counted && !last).then(|| {
            let account = ReceivedBy { calls: Arc::clone(self), number: reply.number };
            Box::new(UnreadResponse::new(Arc::new(account), 0))
        });
        let mut state = self.state.lock();
        if !last
            && let Some(ReplyTarget::Sink(sink, version)) = state.waiting.get_mut(&reply.number)
        {
            version.set(reply.version);
            // It only adds to a queue.
            return sink.send(response(reply, unread), false);
        }
        let waiting = state.waiting.remove(&reply.number);
        drop(state);
        match waiting {
            Some(ReplyTarget::Sink(mut sink, version)) => {
                version.set(reply.version);
                sink.send(response(reply, unread), true);
            }
            // It waits no longer only if it has panicked.
            Some(ReplyTarget::Reply(sender)) => drop(sender.send(reply)),
            None => {}
        }
    }
}

/// Tells the host that the handler has received a response.
struct ReceivedBy {
    calls: Arc<NestedCalls>,
    number: u64,
}

impl UnreadAccount for ReceivedBy {
    fn release(&self, _: usize, _: bool) {
        // On the reading thread a response is dropped when its scope is closed: the request is
        // cancelled.
        if self.calls.reader.get() != Some(&thread::current().id()) {
            // Cannot fail: it is short, and the connection open.
            let _ = self.calls.send(self.number, nested_call::CallKind::Received(EmptyMessage {}));
        }
    }
}

fn response(
    reply: NestedReply,
    unread: Option<Box<UnreadResponse>>,
) -> Result<Option<InferResponse>> {
    if let Some(failure) = &reply.failure {
        return Err(facts::failure_error(failure));
    }
    let Some(NestedData { outputs, params }) = reply.data else { return Ok(None) };
    let outputs = outputs.into_iter().map(|NamedTensor { name, dtype, shape, data }| {
        let number = dtype;
        let dtype = DType::from_number(number).ok_or_else(|| {
            Error::internal(format!("output '{name}' has the unknown data type {number}"))
        })?;
        Ok(OutputTensor { name: name.into(), dtype, shape: shape[..].into(), data: data.into() })
    });
    Ok(Some(InferResponse {
        outputs: outputs.collect::<Result<_>>()?,
        parameters: params.into_iter().filter_map(params::decode_parameter).collect(),
        unread,
    }))
}

impl RemoteModels {
    pub fn new(control: &Arc<Control>) -> Self {
        let (control, connection) = (Arc::clone(control), Mutex::default());
        let (reader, state) = (OnceLock::new(), Mutex::default());
        Self { calls: Arc::new(NestedCalls { control, connection, reader, state }) }
    }
}

impl ServerModels for RemoteModels {
    fn submit(&self, request: NestedRequest, make_sink: MakeSink<'_>) -> Result<QueuedRequest> {
        // Any number of responses: whether the model is decoupled is known to the host, which
        // limits the unread ones.
        let ResponseEnd { sink, version, .. } = make_sink(true);
        let waiting = ReplyTarget::Sink(sink, version);
        let number = self.calls.call(waiting, nested_call::CallKind::Infer(infer(request)?))?;
        let calls = Arc::clone(&self.calls);
        let cancel = Arc::new(move || {
            let _ = calls.send(number, nested_call::CallKind::Cancel(EmptyMessage {}));
        });
        Ok(QueuedRequest { cancel, hold: Box::new(()) })
    }

    fn status(&self, model: &str, version: Option<i64>) -> Result<ModelStatus> {
        let query = ModelQuery { model: model.to_owned(), version };
        let status =
            self.calls.wait(nested_call::CallKind::Status(query))?.status.unwrap_or_default();
        let (version, ready, decoupled) = (status.version, status.ready, status.decoupled);
        Ok(ModelStatus { version, ready, decoupled })
    }

    fn load(&self, model: &str, config: Option<String>, files: Vec<(String, Bytes)>) -> Result<()> {
        let files = files.into_iter().map(|(key, content)| ModelFile { key, content }).collect();
        let load = LoadModel { model: model.to_owned(), config, files };
        self.calls.wait(nested_call::CallKind::Load(load)).map(drop)
    }

    fn unload(&self, model: &str, dependents: bool) -> Result<()> {
        let unload = UnloadModel { model: model.to_owned(), dependents };
        self.calls.wait(nested_call::CallKind::Unload(unload)).map(drop)
    }
}

fn infer(request: NestedRequest) -> Result<NestedInfer> {
    let (sequence, sequence_text) = match request.sequence.id {
        CorrelationId::None => (0, String::new()),
        CorrelationId::Number(number) => (number, String::new()),
        CorrelationId::Text(text) => (0, text),
    };
    let inputs = request.inputs.into_iter().map(|input| {
        let data = input.data.to_cpu().map_err(|e| Error::new(Code::Internal, e.message))?;
        let (dtype, shape) = (input.dtype.number(), input.shape.to_vec());
        Ok(NamedTensor { name: input.name, dtype, shape, data })
    });
    Ok(NestedInfer {
        inputs: inputs.collect::<Result<_>>()?,
        model: request.model,
        version: request.version,
        id: request.id,
        sequence,
        sequence_text,
        sequence_start: request.sequence.start,
        sequence_end: request.sequence.end,
        priority: request.priority,
        timeout_us: request.timeout_us,
        deadline_ns: request.deadline_ns,
        params: request.parameters.into_iter().map(params::encode_parameter).collect(),
        outputs: request.outputs,
    })
}
