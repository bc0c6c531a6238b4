//! The client of v2, the Open Inference Protocol with Triton's extensions, over HTTP and gRPC.

mod encode;
mod http;
mod json;
mod request;
mod response;
mod settings;
mod stream;
mod values;

pub use request::{
    Data, InferRequest, InferRequestedOutput, Input, Parameter, Parameters, Sequence, SequenceId,
    SharedMemory,
};
pub use response::{InferResponse, Output};
pub use settings::{LoadOptions, LogSettings, LogValue, TraceSettings};
pub use stream::{Stream, StreamReceiver, StreamSender};
pub use trtserver_proto::v2 as messages;

use crate::error::{Error, Kind, Result};
use crate::message::decode_message;
use crate::settings::{Compression, Protocol, Settings};
use crate::shared::client_methods;
use crate::transport::grpc::{self, GrpcCall};
use crate::transport::{ClientTransport, deadline_after, within_deadline};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use trtserver_proto::schema::Described;
use trtserver_proto::v2::{
    CudaSharedMemoryRegisterRequest, CudaSharedMemoryRegisterResponse,
    CudaSharedMemoryStatusRequest, CudaSharedMemoryStatusResponse,
    CudaSharedMemoryUnregisterRequest, CudaSharedMemoryUnregisterResponse, LogSettingsRequest,
    LogSettingsResponse, ModelConfig, ModelConfigRequest, ModelConfigResponse, ModelInferResponse,
    ModelMetadataRequest, ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse,
    ModelStatisticsRequest, ModelStatisticsResponse, RepositoryIndexRequest,
    RepositoryIndexResponse, RepositoryModelLoadRequest, RepositoryModelLoadResponse,
    RepositoryModelUnloadRequest, RepositoryModelUnloadResponse, ServerLiveRequest,
    ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest,
    ServerReadyResponse, SystemSharedMemoryRegisterRequest, SystemSharedMemoryRegisterResponse,
    SystemSharedMemoryStatusRequest, SystemSharedMemoryStatusResponse,
    SystemSharedMemoryUnregisterRequest, SystemSharedMemoryUnregisterResponse, TraceSettingRequest,
    TraceSettingResponse,
};

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
}

impl Client {
    /// Connects at the first call.
    ///
    /// # Errors
    /// The settings contradict each other or cannot be read.
    pub fn new(settings: &Settings) -> Result<Self> {
        Self::over(ClientTransport::new(settings)?, settings)
    }

    /// Creates a client whose calls run on the calling threads.
    pub(crate) fn new_direct(settings: &Settings) -> Result<Self> {
        Self::over(ClientTransport::new_direct(settings)?, settings)
    }

    fn over(transport: ClientTransport, settings: &Settings) -> Result<Self> {
        let limits = settings.deadline.limits()?;
        Ok(Self {
            transport: Arc::new(transport),
            deadline: limits.call,
            load_deadline: limits.load,
            compression: settings.compression,
        })
    }

    client_methods!();

    /// Whether the server is live. A server that answers that it is not is no error.
    pub async fn is_live(&self) -> Result<bool> {
        match self.protocol() {
            Protocol::Http => self.get_health("/v2/health/live").await,
            Protocol::Grpc => {
                let live: ServerLiveResponse = self.rpc("ServerLive", ServerLiveRequest {}).await?;
                Ok(live.live)
            }
        }
    }

    /// Whether the server is ready for requests, likewise.
    pub async fn is_ready(&self) -> Result<bool> {
        match self.protocol() {
            Protocol::Http => self.get_health("/v2/health/ready").await,
            Protocol::Grpc => {
                let ready: ServerReadyResponse =
                    self.rpc("ServerReady", ServerReadyRequest {}).await?;
                Ok(ready.ready)
            }
        }
    }

    /// False also if the server does not have the model.
    pub async fn is_model_ready(&self, model: &str, version: &str) -> Result<bool> {
        if self.protocol() == Protocol::Http {
            return self.get_health(&http::model_path(model, version, "/ready")).await;
        }
        let request = ModelReadyRequest { name: model.to_owned(), version: version.to_owned() };
        match self.rpc::<_, ModelReadyResponse>("ModelReady", request).await {
            Ok(response) => Ok(response.ready),
            Err(e)
                if e.is_from_server() && matches!(e.kind(), Kind::NotFound | Kind::Unavailable) =>
            {
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }

    /// Name, version and extensions of the server.
    pub async fn server_metadata(&self) -> Result<ServerMetadataResponse> {
        match self.protocol() {
            Protocol::Http => self.get("/v2").await,
            Protocol::Grpc => self.rpc("ServerMetadata", ServerMetadataRequest {}).await,
        }
    }

    /// Versions, inputs and outputs of a model. An empty version is the server's choice.
    pub async fn model_metadata(
        &self,
        model: &str,
        version: &str,
    ) -> Result<ModelMetadataResponse> {
        if self.protocol() == Protocol::Http {
            return self.get(&http::model_path(model, version, "")).await;
        }
        let request = ModelMetadataRequest { name: model.to_owned(), version: version.to_owned() };
        self.rpc("ModelMetadata", request).await
    }

    /// The configuration of a model, as the server has completed it.
    pub async fn model_config(&self, model: &str, version: &str) -> Result<ModelConfig> {
        if self.protocol() == Protocol::Http {
            return self.get(&http::model_path(model, version, "/config")).await;
        }
        let request = ModelConfigRequest { name: model.to_owned(), version: version.to_owned() };
        let response: ModelConfigResponse = self.rpc("ModelConfig", request).await?;
        response.config.ok_or_else(|| {
            Error::protocol(format!("the response has no configuration of model '{model}'"))
        })
    }

    /// Statistics of one model, or of all models if the name is empty.
    pub async fn statistics(&self, model: &str, version: &str) -> Result<ModelStatisticsResponse> {
        match (self.protocol(), model) {
            (Protocol::Http, "") => self.get("/v2/models/stats").await,
            (Protocol::Http, _) => self.get(&http::model_path(model, version, "/stats")).await,
            (Protocol::Grpc, _) => {
                let (name, version) = (model.to_owned(), version.to_owned());
                self.rpc("ModelStatistics", ModelStatisticsRequest { name, version }).await
            }
        }
    }

    /// Models in the repository; with `ready` only ready models.
    pub async fn repository_index(&self, ready: bool) -> Result<RepositoryIndexResponse> {
        if self.protocol() == Protocol::Http {
            return self.post_index(ready).await;
        }
        let request = RepositoryIndexRequest { ready, ..RepositoryIndexRequest::default() };
        self.rpc("RepositoryIndex", request).await
    }

    /// Loads or reloads a model. A deadline must leave time for it; the usual one is
    /// [`DEFAULT_LOAD_DEADLINE`](crate::DEFAULT_LOAD_DEADLINE).
    pub async fn load(&self, model: &str, options: &LoadOptions) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.loading().post_load(model, options).await;
        }
        let request = RepositoryModelLoadRequest {
            model_name: model.to_owned(),
            parameters: options.parameters(),
            ..RepositoryModelLoadRequest::default()
        };
        let client = self.loading();
        client.rpc::<_, RepositoryModelLoadResponse>("RepositoryModelLoad", request).await?;
        Ok(())
    }

    /// `dependents`: unloads also the models that an ensemble loaded.
    pub async fn unload(&self, model: &str, dependents: bool) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.loading().post_unload(model, dependents).await;
        }
        let request = RepositoryModelUnloadRequest {
            model_name: model.to_owned(),
            parameters: settings::unload_parameters(dependents),
            ..RepositoryModelUnloadRequest::default()
        };
        let client = self.loading();
        client.rpc::<_, RepositoryModelUnloadResponse>("RepositoryModelUnload", request).await?;
        Ok(())
    }

    /// `key` names the POSIX object, `offset` is where the region begins in it.
    pub async fn register_system_shared_memory(
        &self,
        name: &str,
        key: &str,
        offset: u64,
        byte_size: u64,
    ) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.post_system_region(name, key, offset, byte_size).await;
        }
        let request = SystemSharedMemoryRegisterRequest {
            name: name.to_owned(),
            key: key.to_owned(),
            offset,
            byte_size,
        };
        let method = "SystemSharedMemoryRegister";
        self.rpc::<_, SystemSharedMemoryRegisterResponse>(method, request).await?;
        Ok(())
    }

    /// `raw_handle` is a CUDA IPC handle of 64 bytes.
    pub async fn register_cuda_shared_memory(
        &self,
        name: &str,
        raw_handle: &[u8],
        device_id: i64,
        byte_size: u64,
    ) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.post_cuda_region(name, raw_handle, device_id, byte_size).await;
        }
        let request = CudaSharedMemoryRegisterRequest {
            name: name.to_owned(),
            raw_handle: Bytes::copy_from_slice(raw_handle),
            device_id,
            byte_size,
        };
        let method = "CudaSharedMemoryRegister";
        self.rpc::<_, CudaSharedMemoryRegisterResponse>(method, request).await?;
        Ok(())
    }

    /// One region, or with an empty name all system regions.
    pub async fn unregister_system_shared_memory(&self, name: &str) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.post_unregister("systemsharedmemory", name).await;
        }
        let request = SystemSharedMemoryUnregisterRequest { name: name.to_owned() };
        let method = "SystemSharedMemoryUnregister";
        self.rpc::<_, SystemSharedMemoryUnregisterResponse>(method, request).await?;
        Ok(())
    }

    /// One region, or with an empty name all CUDA regions.
    pub async fn unregister_cuda_shared_memory(&self, name: &str) -> Result<()> {
        if self.protocol() == Protocol::Http {
            return self.post_unregister("cudasharedmemory", name).await;
        }
        let request = CudaSharedMemoryUnregisterRequest { name: name.to_owned() };
        let method = "CudaSharedMemoryUnregister";
        self.rpc::<_, CudaSharedMemoryUnregisterResponse>(method, request).await?;
        Ok(())
    }

    /// One region, or with an empty name all system regions.
    pub async fn system_shared_memory_status(
        &self,
        name: &str,
    ) -> Result<SystemSharedMemoryStatusResponse> {
        if self.protocol() == Protocol::Http {
            return self.get_regions("systemsharedmemory", name).await;
        }
        let request = SystemSharedMemoryStatusRequest { name: name.to_owned() };
        self.rpc("SystemSharedMemoryStatus", request).await
    }

    /// One region, or with an empty name all CUDA regions.
    pub async fn cuda_shared_memory_status(
        &self,
        name: &str,
    ) -> Result<CudaSharedMemoryStatusResponse> {
        if self.protocol() == Protocol::Http {
            return self.get_regions("cudasharedmemory", name).await;
        }
        let request = CudaSharedMemoryStatusRequest { name: name.to_owned() };
        self.rpc("CudaSharedMemoryStatus", request).await
    }

    /// Changes the settings that are listed (an empty list clears one), and returns all. With an
    /// empty model name the global settings.
    pub async fn trace_settings(
        &self,
        model: &str,
        changes: &TraceSettings,
    ) -> Result<TraceSettings> {
        if self.protocol() == Protocol::Http {
            return self.http_trace_settings(model, changes).await;
        }
        let request = TraceSettingRequest {
            settings: settings::trace_request(changes),
            model_name: model.to_owned(),
        };
        let response: TraceSettingResponse = self.rpc("TraceSetting", request).await?;
        Ok(response.settings.into_iter().map(|(name, setting)| (name, setting.value)).collect())
    }

    /// Changes the settings that are listed, and returns all.
    pub async fn log_settings(&self, changes: &LogSettings) -> Result<LogSettings> {
        if self.protocol() == Protocol::Http {
            return self.http_log_settings(changes).await;
        }
        let request = LogSettingsRequest { settings: settings::log_request(changes) };
        let response: LogSettingsResponse = self.rpc("LogSettings", request).await?;
        Ok(settings::log_response(response))
    }

    /// Sends an inference request and waits for its only response.
    pub async fn infer(&self, request: &InferRequest) -> Result<InferResponse> {
        request.check()?;
        let deadline = deadline_after(request.deadline.or(self.deadline));
        let mut response = match self.protocol() {
            Protocol::Http => self.http_infer(request, deadline).await?,
            Protocol::Grpc => {
                let rpc = GrpcCall {
                    path: "/inference.GRPCInferenceService/ModelInfer",
                    headers: &request.headers,
                    compression: self.compression,
                    deadline,
                };
                let path = rpc.path;
                let message = encode::encode_request(request, false);
                let received = self.transport.unary(rpc, message).await;
                received
                    .and_then(decode_message::<ModelInferResponse>)
                    .and_then(encode::decode_response)
                    .map_err(|e| e.with_asked(|| self.transport.asked_grpc(path)))
                    .map_err(|e| e.with_model(&request.model))?
            }
        };
        response.mark_shared(request);
        response.check().map_err(|e| e.with_asked(|| self.url().to_owned()))?;
        Ok(response)
    }

    /// Opens a stream of inference requests; gRPC only. It has no deadline; the one of the client
    /// limits the opening.
    pub async fn stream(&self) -> Result<Stream> {
        if self.protocol() == Protocol::Http {
            return Err(Error::new(Kind::Unsupported, "streams need gRPC, the client uses HTTP")
                .with_asked(|| self.url().to_owned()));
        }
        let deadline = deadline_after(self.deadline);
        let rpc = GrpcCall {
            path: "/inference.GRPCInferenceService/ModelStreamInfer",
            headers: &[],
            compression: self.compression,
            deadline: None,
        };
        let (sender, receiver) = within_deadline(deadline, self.transport.open(rpc)).await?;
        Ok(Stream::new(sender, receiver))
    }

    async fn rpc<Q: prost::Message, R: Described>(&self, method: &str, request: Q) -> Result<R> {
        let path = format!("/inference.GRPCInferenceService/{method}");
        let mut message = grpc::message_segments(0);
        message.put(&request.encode_to_vec());
        let rpc = GrpcCall {
            path: &path,
            headers: &[],
            compression: self.compression,
            deadline: self.deadline_now(),
        };
        let received = self.transport.unary(rpc, message).await?;
        decode_message(received).map_err(|e| e.with_asked(|| self.transport.asked_grpc(&path)))
    }
}
