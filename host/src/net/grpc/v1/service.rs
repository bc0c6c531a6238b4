//! The endpoints of v1 gRPC that go through tonic.

use crate::clock::now_ns;
use crate::error::{Code, Error, Result};
use crate::net::context::Context;
use crate::net::v1::control::{self, Change, SharedMemory};
use crate::net::v1::{counted, counted_async, health, request_id, request_status, status};
use std::sync::Arc;
use tonic::{Request, Response, Status};
use trtserver_proto::v1::grpc_service_server::GrpcService;
use trtserver_proto::v1::model_control_request::Type as ControlType;
use trtserver_proto::v1::shared_memory_control_request::SharedMemoryControl as ShmRequest;
use trtserver_proto::v1::shared_memory_control_response as shm_response;
use trtserver_proto::v1::{
    HealthRequest, HealthResponse, ModelControlRequest, ModelControlResponse, ProfileRequest,
    ProfileResponse, RepositoryRequest, RepositoryResponse, RequestStatus,
    SharedMemoryControlRequest, SharedMemoryControlResponse, StatusRequest, StatusResponse,
    repository_response,
};

pub struct Service {
    ctx: Arc<Context>,
}

impl Service {
    pub fn new(ctx: Arc<Context>) -> Self {
        Self { ctx }
    }

    /// The request status for a result, with a new request id.
    fn status_of<T>(&self, result: &Result<T>) -> Option<RequestStatus> {
        Some(request_status::of_result(&self.ctx.settings, result, request_id(&self.ctx)))
    }
}

type TonicResult<T> = std::result::Result<Response<T>, Status>;

#[tonic::async_trait]
impl GrpcService for Service {
    async fn status(&self, request: Request<StatusRequest>) -> TonicResult<StatusResponse> {
        let name = request.into_inner().model_name;
        Ok(Response::new(counted(&self.ctx.endpoints.status, now_ns(), || {
            let report = status::report(&self.ctx, (!name.is_empty()).then_some(&*name));
            StatusResponse {
                request_status: self.status_of(&report),
                server_status: Some(report.unwrap_or_else(|_| status::bare(&self.ctx))),
            }
        })))
    }

    async fn profile(&self, _: Request<ProfileRequest>) -> TonicResult<ProfileResponse> {
        Ok(Response::new(counted(&self.ctx.endpoints.profile, now_ns(), || {
            let result = control::profile(&self.ctx);
            // Refused because of the server's state: no request id.
            let request_status = match self.ctx.require_ready() {
                Ok(()) => self.status_of(&result),
                Err(e) => Some(request_status::failure(&self.ctx.settings, &e, 0)),
            };
            ProfileResponse { request_status }
        })))
    }

    async fn health(&self, request: Request<HealthRequest>) -> TonicResult<HealthResponse> {
        Ok(Response::new(counted(&self.ctx.endpoints.health, now_ns(), || {
            let health = health::check(&self.ctx, &request.get_ref().mode);
            HealthResponse {
                request_status: self.status_of(&health),
                health: health.unwrap_or(false),
            }
        })))
    }

    /// Every value but LOAD unloads, also a missing field.
    async fn model_control(
        &self,
        r: Request<ModelControlRequest>,
    ) -> TonicResult<ModelControlResponse> {
        let r = r.into_inner();
        let change = match r.r#type() {
            ControlType::Load => Change::Load,
            ControlType::Unload => Change::Unload,
        };
        let call = async {
            let result = control::model(&self.ctx, &r.model_name, change).await;
            Response::new(ModelControlResponse { request_status: self.status_of(&result) })
        };
        Ok(counted_async(&self.ctx.endpoints.model_control, now_ns(), call).await)
    }

    async fn shared_memory_control(
        &self,
        request: Request<SharedMemoryControlRequest>,
    ) -> TonicResult<SharedMemoryControlResponse> {
        let call = request.into_inner().shared_memory_control;
        let call = match &call {
            Some(ShmRequest::Register(r)) => Some(SharedMemory::Register(&r.name)),
            // v1.6 registers with this message.
            Some(ShmRequest::Unregister(r)) if !r.shm_key.is_empty() => {
                Some(SharedMemory::Register(&r.name))
            }
            Some(ShmRequest::Unregister(_) | ShmRequest::UnregisterAll(_)) => {
                Some(SharedMemory::Unregister)
            }
            Some(ShmRequest::Status(_)) => Some(SharedMemory::Status),
            None => None,
        };
        Ok(Response::new(counted(&self.ctx.endpoints.shm_control, now_ns(), || {
            let unknown = || Error::new(Code::Unknown, "unknown sharedmemorycontrol request type");
            let result = call.ok_or_else(unknown).and_then(|c| {
                control::shared_memory(&self.ctx, c).map(|()| c == SharedMemory::Status)
            });
            let list = shm_response::SharedMemoryControl::SharedMemoryStatus(Default::default());
            SharedMemoryControlResponse {
                request_status: self.status_of(&result),
                shared_memory_control: result.is_ok_and(|is_status| is_status).then_some(list),
            }
        })))
    }

    async fn repository(
        &self,
        request: Request<RepositoryRequest>,
    ) -> TonicResult<RepositoryResponse> {
        let call = async {
            let result = match request.get_ref().request_type {
                Some(_) => control::index(&self.ctx).await,
                None => Err(Error::new(Code::Unknown, "request type is not specified")),
            };
            Response::new(RepositoryResponse {
                request_status: self.status_of(&result),
                response_type: result.ok().map(repository_response::ResponseType::Index),
            })
        };
        Ok(counted_async(&self.ctx.endpoints.repository, now_ns(), call).await)
    }
}
