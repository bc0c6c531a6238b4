//! The models of this server for requests of backends: look-up, checks and queues are those of
//! clients' requests.

use bytes::Bytes;
use std::any::Any;
use std::sync::{Arc, Weak};
use std::thread;
use tokio::runtime::Handle;
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Error, Result};
use trtserver_base::state::{InFlightGuard, ServerPhase};
use trtserver_frontend_v2::repository;
use trtserver_frontend_v2::repository::LoadParameters;
use trtserver_frontend_v2::{RequestParameters, UncheckedRequest, count_refused};
use trtserver_models::OpenVersion;
use trtserver_plugin_host::nested::{
    MakeSink, ModelStatus, NestedRequest, QueuedRequest, ServerModels,
};
use trtserver_request::{InputTensor, check};
use trtserver_request_trace::TraceWire;
use trtserver_request_trace::current::current_trace;
use trtserver_wire::context::{FrontendContext, v2_missing};

/// The models of this server, for the nested requests of its backends.
pub struct NestedModels {
    /// Backends outlive the server's parts at its end.
    context: Weak<FrontendContext>,
    runtime: Handle,
}

impl NestedModels {
    pub fn new(context: &Arc<FrontendContext>, runtime: &Handle) -> Self {
        Self { context: Arc::downgrade(context), runtime: runtime.clone() }
    }

    fn context(&self) -> Result<Arc<FrontendContext>> {
        self.context.upgrade().ok_or_else(not_ready)
    }

    /// Waits for `work`. On a thread of its own: the calling thread may be a network thread that
    /// executes the backend, which must not enter the runtime again, and whose tasks wait for it.
    fn wait(&self, work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
        let runtime = self.runtime.clone();
        let run = move || runtime.block_on(work);
        let thread = thread::Builder::new().name("nested-load".to_owned()).spawn(run);
        let thread =
            thread.map_err(|e| Error::unavailable(format!("cannot start a thread: {e}")))?;
        thread.join().unwrap_or_else(|_| Err(Error::internal("a load or unload request failed")))
    }
}

impl ServerModels for NestedModels {
    fn submit(&self, request: NestedRequest, make_sink: MakeSink<'_>) -> Result<QueuedRequest> {
        let (ctx, received_ns) = (self.context()?, now_ns());
        let in_flight = ctx.state.begin_request();
        // A draining server completes its requests, and so what they send.
        if !matches!(ctx.state.phase(), ServerPhase::Ready | ServerPhase::Exiting) {
            return Err(not_ready());
        }
        let found = ctx.models.find_for_inference(&request.model, request.version);
        let found = found.map_err(v2_missing)?;
        let end = make_sink(found.decoupled());
        end.version.set(found.version);
        // While it waits for the response, the sender's execution holds no resources.
        let sink = match ctx.models.limiter().and_then(|limiter| limiter.lend(sender(&request))) {
            Some(lent) => lent.wrap(end.sink),
            None => end.sink,
        };
        let trace = match current_trace() {
            Some(parent) => Some(parent.child(&found.name)),
            None => ctx.tracer.begin(TraceWire::Nested, &found.name, received_ns, || None),
        };
        let submitted = unchecked(&found, request).and_then(|unchecked| {
            let trace = trace.clone();
            let unchecked = UncheckedRequest { stream: end.stream, trace, ..unchecked };
            unchecked.submit(&ctx, &found, received_ns, sink)
        });
        let (responder, served) =
            submitted.map_err(|e| count_refused(&found, trace.as_ref(), received_ns, e))?;
        end.version.set(served.version);
        let hold: Box<dyn Any + Send> = Box::new(RequestHold {
            parts: Some((served, in_flight)),
            runtime: self.runtime.clone(),
        });
        let cancel = Arc::new(move || {
            if let Some(responder) = responder.upgrade() {
                responder.cancel_token.cancel();
            }
        });
        Ok(QueuedRequest { cancel, hold })
    }

    fn status(&self, model: &str, version: Option<i64>) -> Result<ModelStatus> {
        let ctx = self.context()?;
        let entry = ctx.models.model(model).map_err(v2_missing)?;
        if let Some(number) = version.filter(|number| !entry.versions.contains_key(number)) {
            return Err(Error::not_found(format!("model '{model}' has no version {number}")));
        }
        let served = ctx.models.find(model, version).ok();
        Ok(ModelStatus {
            version: served.as_ref().map(|served| served.version),
            ready: ctx.require_ready().is_ok() && ctx.models.is_ready(model, version),
            decoupled: served.is_some_and(|served| served.decoupled()),
        })
    }

    fn load(&self, model: &str, config: Option<String>, files: Vec<(String, Bytes)>) -> Result<()> {
        let control = repository::expect_allowed(&*self.context()?, "")?;
        let mut parameters = LoadParameters { config, files: Vec::new() };
        for (key, content) in files {
            parameters.add_file(model, &key, content)?;
        }
        let model = model.to_owned();
        self.wait(async move { repository::load_model(&control, &model, parameters).await })
    }

    fn unload(&self, model: &str, dependents: bool) -> Result<()> {
        let control = repository::expect_allowed(&*self.context()?, "")?;
        let model = model.to_owned();
        self.wait(async move { repository::unload_model(&control, &model, dependents).await })
    }
}

/// The model version whose backend sends a request.
fn sender(request: &NestedRequest) -> Option<(&str, i64)> {
    request.sender.as_ref().map(|(model, version)| (&**model, *version))
}

/// Names become positions, as in a client's request.
fn unchecked(served: &OpenVersion, request: NestedRequest) -> Result<UncheckedRequest> {
    let signature = &served.signature;
    let mut unchecked = UncheckedRequest {
        id: request.id,
        parameters: RequestParameters {
            sequence: request.sequence,
            priority: request.priority,
            timeout_us: request.timeout_us,
            custom: request.parameters,
            ..Default::default()
        },
        deadline_ns: request.deadline_ns,
        streaming: served.decoupled(),
        nested: true,
        ..Default::default()
    };
    let given: Vec<String> = request.inputs.iter().map(|input| input.name.clone()).collect();
    for input in request.inputs {
        let Some(index) = signature.input(&input.name) else {
            return Err(check::unknown_input(signature, &unchecked.id, &input.name, &given));
        };
        let (dtype, shape, data) = (input.dtype, input.shape, input.data);
        unchecked.inputs.push(InputTensor { index, dtype, shape, data });
    }
    for name in &request.outputs {
        unchecked.request_output(signature, name, 0, None)?;
    }
    Ok(unchecked)
}

fn not_ready() -> Error {
    Error::unavailable("Server not ready")
}

/// Keeps the model open until the last response was delivered.
struct RequestHold {
    parts: Option<(Arc<OpenVersion>, InFlightGuard)>,
    runtime: Handle,
}

impl Drop for RequestHold {
    /// On a network thread: the last user of a model closes it, which would wait for this thread if
    /// it is the model's.
    fn drop(&mut self) {
        let parts = self.parts.take();
        self.runtime.spawn(async move { drop(parts) });
    }
}
