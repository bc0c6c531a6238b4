//! The client of v1 (TRTIS 2018 to 2020) over HTTP and gRPC.
//!
//! [`Client`] makes single calls. [`Context`] runs inferences the way the original C++ library
//! does: it learns the model's tensors from the server's status, checks what it is given, and keeps
//! statistics.

mod context;
mod grpc;
mod http;
mod infer;
mod stream;

pub use context::{
    Class, Context, ContextOptions, Input, OutputFormat, OutputResult, Prepared, Run, RunOptions,
    RunResults, ServedModel, Statistics, Template,
};
use infer::{EncodedRequest, OutgoingRequest, RequestTensors};
pub use infer::{InferRequest, InferResponse};
pub use stream::{Stream, StreamReceiver, StreamSender};
pub use trtserver_proto::v1 as messages;
pub use trtserver_proto::v2::{DataType, ModelConfig, ModelInput, ModelOutput, model_input};

use crate::error::{Error, Kind, Result};
use crate::settings::{Compression, Protocol, Settings};
use crate::shared::client_methods;
use crate::sync::Mutex;
use crate::transport::{ClientTransport, deadline_after};
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;
use trtserver_proto::text;
use trtserver_proto::v1::{
    InferResponseHeader, ModelRepositoryIndex, RequestStatus, RequestStatusCode, ServerStatus,
    SharedMemoryStatus,
};

/// Result of a call with the server's id and its number of the request.
#[derive(Clone, Debug, Default)]
pub struct Response<T> {
    /// What was asked for.
    pub value: T,
    /// The server's id.
    pub server_id: String,
    /// The server's number of the request.
    pub request_id: u64,
}

impl<T> Response<T> {
    fn new(value: T, status: RequestStatus) -> Self {
        Self { value, server_id: status.server_id, request_id: status.request_id }
    }
}

impl<T> Deref for Response<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A client of one server. Clones share its connections, which belong to the tokio runtime that
/// first used them.
///
/// A call is cancelled by dropping its future; the server is informed.
#[derive(Clone)]
pub struct Client {
    transport: Arc<ClientTransport>,
    deadline: Option<Duration>,
    load_deadline: Option<Duration>,
    compression: Option<Compression>,
    verbose: bool,
    /// Outputs of the last HTTP response, as text and parsed.
    described: Arc<Mutex<Option<Described>>>,
}

/// The outputs of a response, as text and parsed.
type Described = (String, Arc<InferResponseHeader>);

/// What a shared-memory call asks for.
enum RegionCall<'a> {
    RegisterSystem { name: &'a str, key: &'a str, offset: u64, byte_size: u64 },
    RegisterCuda { name: &'a str, raw_handle: &'a [u8], byte_size: u64, device_id: i64 },
    Unregister { name: &'a str },
    UnregisterAll,
    Status,
}

impl Client {
    /// Connects at the first call.
    ///
    /// # Errors
    /// The settings contradict each other or cannot be read; v1 over HTTP has no compression.
    pub fn new(settings: &Settings) -> Result<Self> {
        Self::over(ClientTransport::new(settings)?, settings)
    }

    /// Creates a client whose calls run on the calling threads.
    pub(crate) fn new_direct(settings: &Settings) -> Result<Self> {
        Self::over(ClientTransport::new_direct(settings)?, settings)
    }

    fn over(transport: ClientTransport, settings: &Settings) -> Result<Self> {
        if transport.protocol() == Protocol::Http && settings.compression.is_some() {
            let text = "v1 over HTTP has no compression";
            return Err(Error::new(Kind::Unsupported, text));
        }
        for (name, _) in &settings.headers {
            if name.eq_ignore_ascii_case("NV-InferRequest") {
                return Err(Error::invalid(format!("HTTP header '{name}' cannot be set")));
            }
        }
        let limits = settings.deadline.limits()?;
        Ok(Self {
            transport: Arc::new(transport),
            deadline: limits.call,
            load_deadline: limits.load,
            compression: settings.compression,
            verbose: settings.verbose,
            described: Arc::default(),
        })
    }

    client_methods!();

    /// Whether the server is live. A server that answers that it is not is no error.
    pub async fn is_live(&self) -> Result<Response<bool>> {
        self.health("live").await
    }

    /// Whether the server is ready for requests, likewise.
    pub async fn is_ready(&self) -> Result<Response<bool>> {
        self.health("ready").await
    }

    async fn health(&self, mode: &str) -> Result<Response<bool>> {
        match self.protocol() {
            Protocol::Http => self.http_health(mode).await,
            Protocol::Grpc => {
                let health = self.grpc_health(mode).await?;
                if self.verbose {
                    println!("{mode}: {}", u8::from(health.value));
                }
                Ok(health)
            }
        }
    }

    /// The status of one model, or with `None` of all models and the server.
    pub async fn status(&self, model: Option<&str>) -> Result<Response<ServerStatus>> {
        let status = match self.protocol() {
            Protocol::Http => self.http_status(model).await?,
            Protocol::Grpc => self.grpc_status(model).await?,
        };
        if self.verbose {
            println!("{}", text::print(&status.value));
        }
        Ok(status)
    }

    /// Starts the server's CUDA profiler.
    pub async fn start_profile(&self) -> Result<Response<()>> {
        self.profile("start").await
    }

    /// Stops the server's CUDA profiler.
    pub async fn stop_profile(&self) -> Result<Response<()>> {
        self.profile("stop").await
    }

    async fn profile(&self, command: &str) -> Result<Response<()>> {
        match self.protocol() {
            Protocol::Http => self.http_profile(command).await,
            Protocol::Grpc => self.grpc_profile(command).await,
        }
    }

    /// Which models the repositories hold.
    pub async fn repository_index(&self) -> Result<Response<ModelRepositoryIndex>> {
        let index = match self.protocol() {
            Protocol::Http => self.http_index().await?,
            Protocol::Grpc => self.grpc_index().await?,
        };
        if self.verbose {
            println!("{}", text::print(&index.value));
        }
        Ok(index)
    }

    /// Loads or reloads a model. A deadline must leave time for it; the usual one is
    /// [`DEFAULT_LOAD_DEADLINE`](crate::DEFAULT_LOAD_DEADLINE).
    pub async fn load(&self, model: &str) -> Result<Response<()>> {
        self.model_control(model, true).await
    }

    /// Unloads a model.
    pub async fn unload(&self, model: &str) -> Result<Response<()>> {
        self.model_control(model, false).await
    }

    async fn model_control(&self, model: &str, load: bool) -> Result<Response<()>> {
        let client = self.loading();
        match self.protocol() {
            Protocol::Http => client.http_model_control(model, load).await,
            Protocol::Grpc => client.grpc_model_control(model, load).await,
        }
    }

    /// `key` names the POSIX object, `offset` is where the region begins in it.
    pub async fn register_system_shared_memory(
        &self,
        name: &str,
        key: &str,
        offset: u64,
        byte_size: u64,
    ) -> Result<Response<()>> {
        self.region_control(RegionCall::RegisterSystem { name, key, offset, byte_size }).await
    }

    /// `raw_handle` is a CUDA IPC handle of 64 bytes.
    pub async fn register_cuda_shared_memory(
        &self,
        name: &str,
        raw_handle: &[u8],
        byte_size: u64,
        device_id: i64,
    ) -> Result<Response<()>> {
        let call = RegionCall::RegisterCuda { name, raw_handle, byte_size, device_id };
        self.region_control(call).await
    }

    /// Ends the registration of a region.
    pub async fn unregister_shared_memory(&self, name: &str) -> Result<Response<()>> {
        self.region_control(RegionCall::Unregister { name }).await
    }

    /// Ends the registrations of all regions.
    pub async fn unregister_all_shared_memory(&self) -> Result<Response<()>> {
        self.region_control(RegionCall::UnregisterAll).await
    }

    async fn region_control(&self, call: RegionCall<'_>) -> Result<Response<()>> {
        let response = self.regions(call).await?;
        let (server_id, request_id) = (response.server_id, response.request_id);
        Ok(Response { value: (), server_id, request_id })
    }

    /// Lists the registered regions.
    pub async fn shared_memory_status(&self) -> Result<Response<SharedMemoryStatus>> {
        let status = self.regions(RegionCall::Status).await?;
        if self.verbose {
            println!("{}", text::print(&status.value));
        }
        Ok(status)
    }

    async fn regions(&self, call: RegionCall<'_>) -> Result<Response<SharedMemoryStatus>> {
        match self.protocol() {
            Protocol::Http => self.http_regions(call).await,
            Protocol::Grpc => self.grpc_regions(call).await,
        }
    }

    /// Sends one inference request as it is.
    pub async fn infer(&self, request: &InferRequest) -> Result<InferResponse> {
        request.check()?;
        let encoded = &EncodedRequest::new(self.protocol(), request)?;
        let tensors = RequestTensors::Slices(&request.inputs);
        self.infer_encoded(OutgoingRequest { request, encoded, tensors }).await
    }

    async fn infer_encoded(&self, outgoing: OutgoingRequest<'_>) -> Result<InferResponse> {
        let deadline = deadline_after(outgoing.request.deadline.or(self.deadline));
        match outgoing.encoded {
            EncodedRequest::Http { path, header } => {
                self.http_infer(path, header, outgoing, deadline).await
            }
            EncodedRequest::Grpc(head) => self.grpc_infer(head, outgoing, deadline).await,
        }
    }

    /// Opens a stream of inference requests; gRPC only. It has no deadline; the one of the client
    /// limits the opening.
    pub async fn stream(&self) -> Result<Stream> {
        self.grpc_stream().await
    }
}

/// The error of a status that is not SUCCESS.
fn check_status(status: RequestStatus) -> Result<RequestStatus> {
    let code = status.code();
    if code == RequestStatusCode::Success {
        return Ok(status);
    }
    Err(Error::new(Kind::from_v1(code), status.msg)
        .refused_by_server(status.code)
        .with_v1_code(code)
        .with_server(&status.server_id, status.request_id))
}
