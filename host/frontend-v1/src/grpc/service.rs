//! The endpoints of v1 gRPC that go through tonic.

use super::region_request;
use crate::control;
use crate::control::Change;
use crate::{count_endpoint, counted_async, health, regions, request_id, request_status, status};
use prost::Name;
use std::sync::Arc;
use tonic::{Request, Response, Status};
use trtserver_base::clock::now_ns;
use trtserver_base::error::{Code, Error, Result};
use trtserver_proto::codec::UndecodedRegionControl;
use trtserver_proto::v1::grpc_service_server::GrpcService;
use trtserver_proto::v1::model_control_request::Type as ControlType;
use trtserver_proto::v1::shared_memory_control_response as shm_response;
use trtserver_proto::v1::{
    HealthRequest, HealthResponse, ModelControlRequest, ModelControlResponse, ProfileRequest,
    ProfileResponse, RepositoryRequest, RepositoryResponse, RequestStatus,
    SharedMemoryControlRequest, SharedMemoryControlResponse, SharedMemoryRegion, StatusRequest,
    StatusResponse, repository_response,
};
use trtserver_wire::access::audit::ControlOutcome;
use trtserver_wire::context::FrontendContext;

pub struct Service {
    ctx: Arc<FrontendContext>,
}

impl Service {
    pub fn new(ctx: Arc<FrontendContext>) -> Self {
        Self { ctx }
    }

    /// The request status for a result, with a new request id.
    fn report_status<T>(&self, result: &Result<T>) -> Option<RequestStatus> {
        Some(request_status::status_from_result(&self.ctx.settings, result, request_id(&self.ctx)))
    }
}

/// The response with what the audit line says of it, since the gRPC status is OK in any case.
fn with_outcome<M, T>(message: M, result: &Result<T>) -> Response<M> {
    ControlOutcome::from_result(result).attach(Response::new(message))
}

type TonicResult<T> = std::result::Result<Response<T>, Status>;

#[tonic::async_trait]
impl GrpcService for Service {
    async fn status(&self, request: Request<StatusRequest>) -> TonicResult<StatusResponse> {
        let name = request.into_inner().model_name;
        Ok(Response::new(count_endpoint(&self.ctx.endpoints.status, now_ns(), || {
            let report = status::report_status(&self.ctx, (!name.is_empty()).then_some(&*name));
            StatusResponse {
                request_status: self.report_status(&report),
                server_status: Some(
                    report.unwrap_or_else(|_| status::report_server_only(&self.ctx)),
                ),
            }
        })))
    }

    async fn profile(&self, request: Request<ProfileRequest>) -> TonicResult<ProfileResponse> {
        let call = async {
            let (result, request_status) = match self.ctx.require_ready() {
                Ok(()) => {
                    let cmd = &request.get_ref().cmd;
                    let result = control::control_profiler(&self.ctx, cmd).await;
                    let status = self.report_status(&result);
                    (result, status)
                }
                // Refused because of the server's state: no request id.
                Err(e) => {
                    let status = request_status::failure_status(&self.ctx.settings, &e, 0);
                    (Err(e), Some(status))
                }
            };
            with_outcome(ProfileResponse { request_status }, &result)
        };
        Ok(counted_async(&self.ctx.endpoints.profile, now_ns(), call).await)
    }

    async fn health(&self, request: Request<HealthRequest>) -> TonicResult<HealthResponse> {
        Ok(Response::new(count_endpoint(&self.ctx.endpoints.health, now_ns(), || {
            let health = health::check_health(&self.ctx, &request.get_ref().mode);
            HealthResponse {
                request_status: self.report_status(&health),
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
            let result = control::control_model(&self.ctx, &r.model_name, change).await;
            let response = ModelControlResponse { request_status: self.report_status(&result) };
            with_outcome(response, &result)
        };
        Ok(counted_async(&self.ctx.endpoints.model_control, now_ns(), call).await)
    }

    async fn shared_memory_control(
        &self,
        request: Request<UndecodedRegionControl>,
    ) -> TonicResult<SharedMemoryControlResponse> {
        let message = request.into_inner().0;
        let call = region_request::read_region_request(&message).map_err(|why| {
            let message = SharedMemoryControlRequest::full_name();
            Status::internal(format!("failed to decode Protobuf message: {message}: {why}"))
        })?;
        let call = async {
            let result = match call {
                Some(call) => regions::control_region(&self.ctx, call).await,
                None => Err(Error::new(Code::Unknown, "unknown sharedmemorycontrol request type")),
            };
            let list = |regions: Vec<SharedMemoryRegion>| {
                shm_response::SharedMemoryControl::SharedMemoryStatus(shm_response::Status {
                    shared_memory_region: regions.clone(),
                    shared_memory_region_as_sent: regions,
                })
            };
            let request_status = self.report_status(&result);
            let outcome = ControlOutcome::from_result(&result);
            let shared_memory_control = result.ok().flatten().map(list);
            let response = SharedMemoryControlResponse { request_status, shared_memory_control };
            outcome.attach(Response::new(response))
        };
        Ok(counted_async(&self.ctx.endpoints.shm_control, now_ns(), call).await)
    }

    async fn repository(
        &self,
        request: Request<RepositoryRequest>,
    ) -> TonicResult<RepositoryResponse> {
        let call = async {
            let result = match request.get_ref().request_type {
                Some(_) => control::repository_index(&self.ctx).await,
                None => Err(Error::new(Code::Unknown, "request type is not specified")),
            };
            Response::new(RepositoryResponse {
                request_status: self.report_status(&result),
                response_type: result.ok().map(repository_response::ResponseType::Index),
            })
        };
        Ok(counted_async(&self.ctx.endpoints.repository, now_ns(), call).await)
    }
}
