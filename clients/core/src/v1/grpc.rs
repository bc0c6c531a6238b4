//! The calls of v1 over gRPC. The RPC succeeds also if the request fails; `request_status` says
//! which.

use super::infer::{EncodedRequest, InferRequest, InferResponse, OutgoingRequest, RequestTensors};
use super::stream::Stream;
use super::{Client, RegionCall, Response, check_status};
use crate::error::{Error, Kind, Result};
use crate::message::decode_message;
use crate::settings::Protocol;
use crate::transport::body::Segments;
use crate::transport::grpc::{self, GrpcCall};
use crate::transport::{CallTiming, within_deadline};
use bytes::Bytes;
use prost::Message;
use std::time::Instant;
use trtserver_proto::schema::Described;
use trtserver_proto::v1::model_control_request::Type;
use trtserver_proto::v1::repository_request::RequestType;
use trtserver_proto::v1::repository_response::ResponseType;
use trtserver_proto::v1::shared_memory_control_request::register::{
    CudaSharedMemoryIdentifier, SharedMemoryTypes, SystemSharedMemoryIdentifier,
};
use trtserver_proto::v1::shared_memory_control_request::{
    Register, SharedMemoryControl, Status, Unregister, UnregisterAll,
};
use trtserver_proto::v1::shared_memory_control_response::SharedMemoryControl as RegionResponse;
use trtserver_proto::v1::{
    HealthRequest, HealthResponse, ModelControlRequest, ModelControlResponse, ModelRepositoryIndex,
    ProfileRequest, ProfileResponse, RepositoryRequest, RepositoryResponse, RequestStatus,
    RequestStatusCode, ServerStatus, SharedMemoryControlRequest, SharedMemoryControlResponse,
    SharedMemoryStatus, StatusRequest, StatusResponse,
};
use trtserver_proto_wire::{WireType, put_tag, put_varint};

const INFER: &str = "/nvidia.inferenceserver.GRPCService/Infer";
const STREAM: &str = "/nvidia.inferenceserver.GRPCService/StreamInfer";

impl Client {
    pub(super) async fn grpc_health(&self, mode: &str) -> Result<Response<bool>> {
        let request = HealthRequest { mode: mode.to_owned() };
        let response: HealthResponse = self.rpc("Health", &request).await?;
        let status = self.check_request_status("Health", response.request_status)?;
        Ok(Response::new(response.health, status))
    }

    pub(super) async fn grpc_status(&self, model: Option<&str>) -> Result<Response<ServerStatus>> {
        let request = StatusRequest { model_name: model.unwrap_or_default().to_owned() };
        let with_model = |e: Error| match model {
            Some(model) => e.with_model(model),
            None => e,
        };
        let response: StatusResponse = self.rpc("Status", &request).await.map_err(with_model)?;
        let status =
            self.check_request_status("Status", response.request_status).map_err(with_model)?;
        Ok(Response::new(response.server_status.unwrap_or_default(), status))
    }

    pub(super) async fn grpc_profile(&self, command: &str) -> Result<Response<()>> {
        let request = ProfileRequest { cmd: command.to_owned() };
        let response: ProfileResponse = self.rpc("Profile", &request).await?;
        Ok(Response::new((), self.check_request_status("Profile", response.request_status)?))
    }

    pub(super) async fn grpc_index(&self) -> Result<Response<ModelRepositoryIndex>> {
        let request = RepositoryRequest { request_type: Some(RequestType::Index(true)) };
        let response: RepositoryResponse = self.rpc("Repository", &request).await?;
        let status = self.check_request_status("Repository", response.request_status)?;
        let index = match response.response_type {
            Some(ResponseType::Index(index)) => index,
            None => ModelRepositoryIndex::default(),
        };
        Ok(Response::new(index, status))
    }

    pub(super) async fn grpc_model_control(&self, model: &str, load: bool) -> Result<Response<()>> {
        let action = if load { Type::Load } else { Type::Unload };
        let request = ModelControlRequest { model_name: model.to_owned(), r#type: action.into() };
        let response: Result<ModelControlResponse> = self.rpc("ModelControl", &request).await;
        let status =
            response.and_then(|r| self.check_request_status("ModelControl", r.request_status));
        Ok(Response::new((), status.map_err(|e| e.with_model(model))?))
    }

    pub(super) async fn grpc_regions(
        &self,
        call: RegionCall<'_>,
    ) -> Result<Response<SharedMemoryStatus>> {
        let control = match call {
            RegionCall::RegisterSystem { name, key, offset, byte_size } => {
                let shared_memory_key = key.to_owned();
                let memory = SystemSharedMemoryIdentifier { shared_memory_key, offset };
                SharedMemoryControl::Register(Register {
                    name: name.to_owned(),
                    byte_size,
                    shared_memory_types: Some(SharedMemoryTypes::SystemSharedMemory(memory)),
                })
            }
            RegionCall::RegisterCuda { name, raw_handle, byte_size, device_id } => {
                let raw_handle = Bytes::copy_from_slice(raw_handle);
                let memory = CudaSharedMemoryIdentifier { raw_handle, device_id };
                SharedMemoryControl::Register(Register {
                    name: name.to_owned(),
                    byte_size,
                    shared_memory_types: Some(SharedMemoryTypes::CudaSharedMemory(memory)),
                })
            }
            RegionCall::Unregister { name } => {
                SharedMemoryControl::Unregister(Unregister { name: name.to_owned() })
            }
            RegionCall::UnregisterAll => SharedMemoryControl::UnregisterAll(UnregisterAll {}),
            RegionCall::Status => SharedMemoryControl::Status(Status {}),
        };
        let request = SharedMemoryControlRequest { shared_memory_control: Some(control) };
        let response: SharedMemoryControlResponse =
            self.rpc("SharedMemoryControl", &request).await?;
        let status = self.check_request_status("SharedMemoryControl", response.request_status)?;
        let regions = match response.shared_memory_control {
            // Servers send the list at another field number than the message declares.
            Some(RegionResponse::SharedMemoryStatus(regions)) => {
                match regions.shared_memory_region_as_sent.is_empty() {
                    false => regions.shared_memory_region_as_sent,
                    true => regions.shared_memory_region,
                }
            }
            None => Vec::new(),
        };
        Ok(Response::new(SharedMemoryStatus { shared_memory_region: regions }, status))
    }

    pub(super) async fn grpc_infer(
        &self,
        head: &[u8],
        outgoing: OutgoingRequest<'_>,
        deadline: Option<Instant>,
    ) -> Result<InferResponse> {
        let rpc = GrpcCall { path: INFER, headers: &[], compression: self.compression, deadline };
        let start = Instant::now();
        let message = request_message(head, outgoing.tensors);
        let sent = Instant::now();
        let model = &outgoing.request.model;
        let asked = |e: Error| e.with_asked(|| self.transport.asked_grpc(INFER)).with_model(model);
        let received = self.transport.unary(rpc, message).await;
        let received = received.map_err(|e| client_failed(asked(e)))?;
        let first_byte = Instant::now();
        let mut response = read_response(received).map_err(asked)?;
        response.timing = Some(CallTiming { start, sent, first_byte, end: Instant::now() });
        Ok(response)
    }

    pub(super) async fn grpc_stream(&self) -> Result<Stream> {
        if self.protocol() == Protocol::Http {
            return Err(Error::new(Kind::Unsupported, "streams need gRPC, the client uses HTTP")
                .with_asked(|| self.url().to_owned()));
        }
        let rpc =
            GrpcCall { path: STREAM, headers: &[], compression: self.compression, deadline: None };
        let opening = within_deadline(self.deadline_now(), self.transport.open(rpc));
        let (sender, receiver) = opening.await.map_err(client_failed)?;
        Ok(Stream::new(sender, receiver))
    }

    async fn rpc<R: Described>(&self, method: &str, request: &impl Message) -> Result<R> {
        let path = format!("/nvidia.inferenceserver.GRPCService/{method}");
        let mut message = grpc::message_segments(0);
        message.put(&request.encode_to_vec());
        let deadline = self.deadline_now();
        let rpc = GrpcCall { path: &path, headers: &[], compression: self.compression, deadline };
        let received = self.transport.unary(rpc, message).await;
        received
            .and_then(decode_message)
            .map_err(|e| client_failed(e.with_asked(|| self.transport.asked_grpc(&path))))
    }

    fn check_request_status(
        &self,
        method: &str,
        status: Option<RequestStatus>,
    ) -> Result<RequestStatus> {
        let path = format!("/nvidia.inferenceserver.GRPCService/{method}");
        check_status(status.unwrap_or_default())
            .map_err(|e| e.with_asked(|| self.transport.asked_grpc(&path)))
    }
}

/// What the original library says if the RPC itself failed.
pub(super) fn client_failed(error: Error) -> Error {
    if !error.is_from_server() && matches!(error.kind(), Kind::InvalidArgument | Kind::Unsupported)
    {
        return error;
    }
    let code = error.code();
    error
        .map_message(|text| format!("GRPC client failed: {code}: {text}"))
        .with_v1_code(RequestStatusCode::Internal)
}

/// `nvidia.inferenceserver.InferRequest`, framed later.
pub(super) fn encode_request(request: &InferRequest) -> Segments {
    match EncodedRequest::grpc(request) {
        EncodedRequest::Grpc(head) => {
            request_message(&head, RequestTensors::Slices(&request.inputs))
        }
        EncodedRequest::Http { .. } => Segments::default(),
    }
}

fn request_message(head: &[u8], tensors: RequestTensors<'_>) -> Segments {
    let mut message = grpc::message_segments(head.len() + 128);
    message.put(head);
    tensors.put(&mut message, |message, size| {
        let mut tag = Vec::with_capacity(12);
        put_tag(&mut tag, 4, WireType::Bytes);
        put_varint(&mut tag, size as u64);
        message.put(&tag);
    });
    message
}

/// Decodes a response. The error of a failed request has the id of the request.
pub(super) fn read_response(message: Bytes) -> Result<InferResponse> {
    let message: trtserver_proto::v1::InferResponse = decode_message(message)?;
    let header = message.meta_data.unwrap_or_default();
    let status = check_status(message.request_status.unwrap_or_default())
        .map_err(|e| e.with_id(header.id.to_string()))?;
    if let Some(missing) = header.output.get(message.raw_output.len()) {
        let text = format!("Expected RAW output for result '{}'", missing.name);
        return Err(Error::protocol(text).with_id(header.id.to_string()));
    }
    Ok(InferResponse {
        server_id: status.server_id,
        request_id: status.request_id,
        header,
        outputs: message.raw_output,
        timing: None,
    })
}
