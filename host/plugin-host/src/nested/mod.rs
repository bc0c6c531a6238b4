//! Nested inference: requests that backends send to models of the server. The server implements
//! [`ServerModels`]; responses are delivered by `delivery.rs`.

mod delivery;
mod stream;
mod version;

pub use delivery::{NestedDelivery, ResponseHandler};
pub use version::ReachedVersion;

use crate::host_state::HOST;
use bytes::Bytes;
use std::any::Any;
use std::sync::Arc;
use trtserver_base::error::{Error, Result};
use trtserver_request::dtype::DType;
use trtserver_request::{ParameterValue, RequestSequence, Shape, Sink, TensorData};

/// A request of a backend to a model of the server.
pub struct NestedRequest {
    /// The model version whose backend sends it; `None`: a backend.
    pub sender: Option<(Arc<str>, i64)>,
    pub model: String,
    pub version: Option<i64>,
    pub id: String,
    pub sequence: RequestSequence,
    pub priority: u64,
    pub timeout_us: u64,
    pub deadline_ns: u64,
    pub parameters: Vec<(String, ParameterValue)>,
    pub inputs: Vec<NestedInput>,
    /// Names of requested outputs; an empty list requests all.
    pub outputs: Vec<String>,
}

pub struct NestedInput {
    pub name: String,
    pub dtype: DType,
    pub shape: Shape,
    pub data: TensorData,
}

/// Cancels a request, unless it has ended. Does not keep it alive.
pub type CancelRequest = Arc<dyn Fn() + Send + Sync>;

/// A request that was queued.
pub struct QueuedRequest {
    pub cancel: CancelRequest,
    /// Keeps the model open and counts the request as in flight; dropped after the last response
    /// was delivered.
    pub hold: Box<dyn Any + Send>,
}

/// What is known of a model version.
pub struct ModelStatus {
    /// The version that a request would reach.
    pub version: Option<i64>,
    pub ready: bool,
    pub decoupled: bool,
}

/// Makes the sink of a request, once it is known whether its model is decoupled.
pub type MakeSink<'a> = &'a dyn Fn(bool) -> ResponseEnd;

/// Where the responses of a nested request go.
pub struct ResponseEnd {
    pub sink: Sink,
    /// Limit of unread responses, for a decoupled model.
    pub stream: Option<Arc<dyn trtserver_request::StreamLimit>>,
    /// Set before the first response.
    pub version: ReachedVersion,
}

/// The models of the server, as backends use them.
pub trait ServerModels: Send + Sync {
    /// Checks and queues a request; it gets its final response whatever happens.
    ///
    /// # Errors
    /// The model does not serve, or the request does not suit it; then nothing is sent to the sink.
    fn submit(&self, request: NestedRequest, make_sink: MakeSink<'_>) -> Result<QueuedRequest>;

    /// # Errors
    /// There is no such model or version.
    fn status(&self, model: &str, version: Option<i64>) -> Result<ModelStatus>;

    /// Loads a model and waits for it. Not on a network thread.
    ///
    /// # Errors
    /// Loading is not allowed, or failed.
    fn load(&self, model: &str, config: Option<String>, files: Vec<(String, Bytes)>) -> Result<()>;

    /// # Errors
    /// The errors of [`ServerModels::load`].
    fn unload(&self, model: &str, dependents: bool) -> Result<()>;
}

/// Offers the models of the server to backends. A process has one server: later calls are ignored.
pub fn serve_nested(models: impl ServerModels + 'static) {
    let _ = HOST.server.set(Box::new(models));
}

/// # Errors
/// This process serves no models: it is a tool.
pub fn server_models() -> Result<&'static dyn ServerModels> {
    let none = || Error::unavailable("no models are served by this process");
    HOST.server.get().map(|server| &**server).ok_or_else(none)
}
