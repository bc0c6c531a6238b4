//! The models of the server as the backend of this process uses them: calls over the control connection.
//!
//! The host refuses a request by a reply, so that sending one does not wait for it: its handler gets the error.

use super::control::Control;
use crate::error::{Code, Error, Result};
use crate::plugin::isolated::messages::{
    Empty, LoadModel, ModelFile, ModelQuery, NamedTensor, NestedCall, NestedData, NestedInfer,
    NestedReply, UnloadModel, control_message, nested_call,
};
use crate::plugin::isolated::{facts, params};
use crate::plugin::nested::{MakeSink, ModelStatus, NestedRequest, Queued, ServerModels};
use crate::request::dtype::DType;
use crate::request::{CorrelationId, InferResponse, OutputTensor, Sink};
use crate::sync::Mutex;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc;

/// See the module text.
pub struct RemoteModels {
    calls: Arc<NestedCalls>,
}

/// The calls that wait for replies.
pub struct NestedCalls {
    control: Arc<Control>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: u64,
    waiting: HashMap<u64, Waiting>,
}

enum Waiting {
    /// For responses.
    Sink(Sink),
    /// For one reply.
    Reply(mpsc::Sender<NestedReply>),
}

impl NestedCalls {
    pub fn new(control: &Arc<Control>) -> Arc<Self> {
        Arc::new(Self { control: Arc::clone(control), state: Mutex::default() })
    }

    fn call(&self, waiting: Waiting, kind: nested_call::Kind) -> Result<u64> {
        let number = {
            let mut state = self.state.lock();
            state.last += 1;
            let number = state.last;
            state.waiting.insert(number, waiting);
            number
        };
        let call = NestedCall { number, kind: Some(kind) };
        self.control.call(control_message::Kind::Nested(call)).inspect_err(|_| {
            self.state.lock().waiting.remove(&number);
        })?;
        Ok(number)
    }

    /// Sends a call and waits for its one reply.
    fn wait(&self, kind: nested_call::Kind) -> Result<NestedReply> {
        let (sender, reply) = mpsc::channel();
        self.call(Waiting::Reply(sender), kind)?;
        // Without the host this process ends.
        let reply = reply.recv().map_err(|_| Error::internal("the call got no reply"))?;
        match &reply.failure {
            Some(failure) => Err(facts::error(failure)),
            None => Ok(reply),
        }
    }

    /// Passes a reply on. Called by the thread that reads the control connection; does not block.
    pub fn resolve(&self, reply: NestedReply) {
        let last = reply.last || reply.failure.is_some();
        let mut state = self.state.lock();
        if !last && let Some(Waiting::Sink(sink)) = state.waiting.get_mut(&reply.number) {
            // It only adds to a queue.
            return sink.send(response(reply), false);
        }
        let waiting = state.waiting.remove(&reply.number);
        drop(state);
        match waiting {
            Some(Waiting::Sink(mut sink)) => sink.send(response(reply), true),
            // It waits no longer only if it has panicked.
            Some(Waiting::Reply(sender)) => drop(sender.send(reply)),
            None => {}
        }
    }
}

fn response(reply: NestedReply) -> Result<Option<InferResponse>> {
    if let Some(failure) = &reply.failure {
        return Err(facts::error(failure));
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
        parameters: params.into_iter().filter_map(params::decode).collect(),
        unread: None,
    }))
}

impl RemoteModels {
    pub fn new(calls: &Arc<NestedCalls>) -> Self {
        Self { calls: Arc::clone(calls) }
    }
}

impl ServerModels for RemoteModels {
    fn submit(&self, request: NestedRequest, make_sink: MakeSink<'_>) -> Result<Queued> {
        // Any number of responses: whether the model is decoupled is known to the host.
        let sink = make_sink(true).sink;
        let number =
            self.calls.call(Waiting::Sink(sink), nested_call::Kind::Infer(infer(request)?))?;
        let calls = Arc::clone(&self.calls);
        let cancel = Arc::new(move || {
            let kind = Some(nested_call::Kind::Cancel(Empty {}));
            let call = control_message::Kind::Nested(NestedCall { number, kind });
            let _ = calls.control.call(call);
        });
        Ok(Queued { cancel, hold: Box::new(()) })
    }

    fn status(&self, model: &str, version: Option<i64>) -> Result<ModelStatus> {
        let query = ModelQuery { model: model.to_owned(), version };
        let status = self.calls.wait(nested_call::Kind::Status(query))?.status.unwrap_or_default();
        let (version, ready, decoupled) = (status.version, status.ready, status.decoupled);
        Ok(ModelStatus { version, ready, decoupled })
    }

    fn load(&self, model: &str, config: Option<String>, files: Vec<(String, Bytes)>) -> Result<()> {
        let files = files.into_iter().map(|(key, content)| ModelFile { key, content }).collect();
        let load = LoadModel { model: model.to_owned(), config, files };
        self.calls.wait(nested_call::Kind::Load(load)).map(drop)
    }

    fn unload(&self, model: &str, dependents: bool) -> Result<()> {
        let unload = UnloadModel { model: model.to_owned(), dependents };
        self.calls.wait(nested_call::Kind::Unload(unload)).map(drop)
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
        params: request.parameters.into_iter().map(params::encode).collect(),
        outputs: request.outputs,
    })
}
