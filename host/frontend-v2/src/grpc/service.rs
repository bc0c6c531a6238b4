//! The endpoints of v2 gRPC that go through tonic. Each method delegates to `frontend-v2/src`,
//! which HTTP uses too.

use crate::log_settings;
use crate::log_settings::{SettingKind as LogKind, SettingValue as LogValue};
use crate::repository;
use crate::repository::{CONFIG, DEPENDENTS, FILE, LoadParameters};
use crate::trace_settings::TraceChange;
use crate::{find_ready, metadata, statistics, trace_settings};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use tonic::codec::CompressionEncoding::{Deflate, Gzip};
use tonic::{Request, Response, Status};
use trtserver_base::error::Error;
use trtserver_proto::health::health_check_response::ServingStatus;
use trtserver_proto::health::health_server::HealthServer;
use trtserver_proto::health::{HealthCheckRequest, HealthCheckResponse, health_server};
use trtserver_proto::v2::grpc_inference_service_server::{
    GrpcInferenceService, GrpcInferenceServiceServer,
};
use trtserver_proto::v2::model_repository_parameter::ParameterChoice as Choice;
use trtserver_proto::v2::*;
use trtserver_request::shared_memory::RegionKind;
use trtserver_wire::context::FrontendContext;
use trtserver_wire::grpc::unary;
use trtserver_wire::regions;
use trtserver_wire::shared_memory::CudaMemory;
use trtserver_wire::status_code::to_grpc_status;

/// The inference service without its two inference RPCs, and the health service.
pub fn grpc_services(
    ctx: Arc<FrontendContext>,
) -> (GrpcInferenceServiceServer<Service>, HealthServer<Health>) {
    let inference = GrpcInferenceServiceServer::new(Service(Arc::clone(&ctx)))
        .max_decoding_message_size(unary::MessageLimits::CONTROL.expanded)
        .max_encoding_message_size(unary::MAX_MESSAGE)
        .accept_compressed(Gzip)
        .accept_compressed(Deflate);
    let health = HealthServer::new(Health(ctx)).accept_compressed(Gzip).accept_compressed(Deflate);
    (inference, health)
}

/// `grpc.health.v1.Health`: readiness, for any service name.
pub struct Health(Arc<FrontendContext>);

#[tonic::async_trait]
impl health_server::Health for Health {
    async fn check(&self, _: Request<HealthCheckRequest>) -> TonicResult<HealthCheckResponse> {
        let ready = metadata::is_server_ready(&self.0).map_err(to_grpc_status)?;
        let serving = if ready { ServingStatus::Serving } else { ServingStatus::NotServing };
        Ok(Response::new(HealthCheckResponse { status: serving as i32 }))
    }
}

type TonicResult<T> = Result<Response<T>, Status>;

fn ok<T>(message: T) -> TonicResult<T> {
    Ok(Response::new(message))
}

/// Configuration and files in a load request.
fn load_parameters(r: &RepositoryModelLoadRequest) -> Result<LoadParameters, Error> {
    let mut read = LoadParameters::default();
    for (key, value) in &r.parameters {
        let wrong = |expected: &str| {
            Err(Error::invalid(format!(
                "invalid value type for load parameter '{key}', expected {expected}."
            )))
        };
        match (key.as_str(), &value.parameter_choice) {
            (CONFIG, Some(Choice::StringParam(text))) => read.config = Some(text.clone()),
            (CONFIG, _) => return wrong("string_param"),
            (file, Some(Choice::BytesParam(content))) if file.starts_with(FILE) => {
                read.add_file(&r.model_name, file, content.clone())?;
            }
            (file, _) if file.starts_with(FILE) => return wrong("bytes_param"),
            _ => return Err(Error::invalid(format!("unrecognized load parameter '{key}'."))),
        }
    }
    Ok(read)
}

/// The changes in a request for log settings.
fn log_changes(
    settings: &BTreeMap<String, log_settings_request::SettingValue>,
) -> Result<Vec<(String, LogValue)>, Error> {
    use log_settings_request::setting_value::ParameterChoice::{
        BoolParam, StringParam, Uint32Param,
    };
    let change = |(key, value): (&String, &log_settings_request::SettingValue)| {
        let value = match (log_settings::setting_kind(key)?, &value.parameter_choice) {
            (LogKind::Switch, Some(BoolParam(on))) => LogValue::Switch(*on),
            (LogKind::Switch, _) => {
                return Err(Error::invalid(format!("expect boolean for '{key}'")));
            }
            (LogKind::Level, Some(Uint32Param(level))) => LogValue::Level(*level),
            (LogKind::Level, _) => {
                return Err(Error::invalid(format!("expect int32 for '{key}'")));
            }
            (LogKind::Format, Some(StringParam(name))) => {
                let format = log_settings::parse_log_format(name);
                let unknown = || Error::invalid(format!("invalid argument for {key}, got: {name}"));
                LogValue::Format(format.ok_or_else(unknown)?)
            }
            (LogKind::Format, _) => {
                return Err(Error::invalid(format!("expect string for '{key}'")));
            }
        };
        Ok((key.clone(), value))
    };
    settings.iter().map(change).collect()
}

/// `inference.GRPCInferenceService`.
pub struct Service(Arc<FrontendContext>);

#[tonic::async_trait]
impl GrpcInferenceService for Service {
    async fn server_live(&self, _: Request<ServerLiveRequest>) -> TonicResult<ServerLiveResponse> {
        ok(ServerLiveResponse { live: metadata::is_server_live(&self.0).map_err(to_grpc_status)? })
    }

    async fn server_ready(
        &self,
        _: Request<ServerReadyRequest>,
    ) -> TonicResult<ServerReadyResponse> {
        ok(ServerReadyResponse {
            ready: metadata::is_server_ready(&self.0).map_err(to_grpc_status)?,
        })
    }

    async fn model_ready(&self, r: Request<ModelReadyRequest>) -> TonicResult<ModelReadyResponse> {
        let r = r.get_ref();
        let ready = metadata::model_ready(&self.0, &r.name, &r.version).map_err(to_grpc_status)?;
        ok(ModelReadyResponse { ready })
    }

    async fn server_metadata(
        &self,
        _: Request<ServerMetadataRequest>,
    ) -> TonicResult<ServerMetadataResponse> {
        ok(metadata::server_metadata(&self.0))
    }

    async fn model_metadata(
        &self,
        r: Request<ModelMetadataRequest>,
    ) -> TonicResult<ModelMetadataResponse> {
        let r = r.get_ref();
        ok(metadata::model_metadata(&self.0, &r.name, &r.version).map_err(to_grpc_status)?)
    }

    async fn model_config(
        &self,
        r: Request<ModelConfigRequest>,
    ) -> TonicResult<ModelConfigResponse> {
        let r = r.get_ref();
        let served = find_ready(&self.0, &r.name, &r.version).map_err(to_grpc_status)?;
        ok(ModelConfigResponse { config: Some((*served.config).clone()) })
    }

    async fn model_statistics(
        &self,
        r: Request<ModelStatisticsRequest>,
    ) -> TonicResult<ModelStatisticsResponse> {
        let r = r.get_ref();
        let model_stats =
            statistics::collect_statistics(&self.0, &r.name, &r.version).map_err(to_grpc_status)?;
        ok(ModelStatisticsResponse { model_stats })
    }

    async fn repository_index(
        &self,
        r: Request<RepositoryIndexRequest>,
    ) -> TonicResult<RepositoryIndexResponse> {
        let r = r.get_ref();
        let models = repository::repository_index(&self.0, &r.repository_name, r.ready).await;
        ok(RepositoryIndexResponse { models: models.map_err(to_grpc_status)? })
    }

    async fn repository_model_load(
        &self,
        r: Request<RepositoryModelLoadRequest>,
    ) -> TonicResult<RepositoryModelLoadResponse> {
        let r = r.get_ref();
        let control =
            repository::expect_allowed(&self.0, &r.repository_name).map_err(to_grpc_status)?;
        let parameters = load_parameters(r).map_err(to_grpc_status)?;
        repository::load_model(&control, &r.model_name, parameters)
            .await
            .map_err(to_grpc_status)?;
        ok(RepositoryModelLoadResponse {})
    }

    async fn repository_model_unload(
        &self,
        r: Request<RepositoryModelUnloadRequest>,
    ) -> TonicResult<RepositoryModelUnloadResponse> {
        let r = r.get_ref();
        let control =
            repository::expect_allowed(&self.0, &r.repository_name).map_err(to_grpc_status)?;
        let dependents = match r.parameters.get(DEPENDENTS).map(|p| &p.parameter_choice) {
            Some(Some(Choice::BoolParam(dependents))) => *dependents,
            None => false,
            Some(_) => {
                return Err(to_grpc_status(Error::invalid(format!(
                    "invalid value type for '{DEPENDENTS}' parameter, expected bool_param."
                ))));
            }
        };
        repository::unload_model(&control, &r.model_name, dependents)
            .await
            .map_err(to_grpc_status)?;
        ok(RepositoryModelUnloadResponse {})
    }

    async fn system_shared_memory_status(
        &self,
        r: Request<SystemSharedMemoryStatusRequest>,
    ) -> TonicResult<SystemSharedMemoryStatusResponse> {
        let regions = regions::system_status(&self.0, &r.get_ref().name).map_err(to_grpc_status)?;
        let regions = regions.into_iter().map(|region| (region.name.clone(), region));
        ok(SystemSharedMemoryStatusResponse { regions: regions.collect() })
    }

    async fn system_shared_memory_register(
        &self,
        r: Request<SystemSharedMemoryRegisterRequest>,
    ) -> TonicResult<SystemSharedMemoryRegisterResponse> {
        let r = r.get_ref();
        regions::register_system(&self.0, &r.name, &r.key, r.offset, r.byte_size)
            .map_err(to_grpc_status)?;
        ok(SystemSharedMemoryRegisterResponse {})
    }

    async fn system_shared_memory_unregister(
        &self,
        r: Request<SystemSharedMemoryUnregisterRequest>,
    ) -> TonicResult<SystemSharedMemoryUnregisterResponse> {
        regions::unregister_regions(&self.0, RegionKind::System, &r.get_ref().name)
            .map_err(to_grpc_status)?;
        ok(SystemSharedMemoryUnregisterResponse {})
    }

    async fn cuda_shared_memory_status(
        &self,
        r: Request<CudaSharedMemoryStatusRequest>,
    ) -> TonicResult<CudaSharedMemoryStatusResponse> {
        let regions = regions::cuda_status(&self.0, &r.get_ref().name).map_err(to_grpc_status)?;
        let regions = regions.into_iter().map(|region| (region.name.clone(), region));
        ok(CudaSharedMemoryStatusResponse { regions: regions.collect() })
    }

    async fn cuda_shared_memory_register(
        &self,
        r: Request<CudaSharedMemoryRegisterRequest>,
    ) -> TonicResult<CudaSharedMemoryRegisterResponse> {
        let r = r.get_ref();
        // A negative number is not a device.
        let device_id = u64::try_from(r.device_id).unwrap_or(u64::MAX);
        let memory = CudaMemory { handle: &r.raw_handle, device_id, byte_size: r.byte_size };
        regions::register_cuda(&self.0, &r.name, memory).await.map_err(to_grpc_status)?;
        ok(CudaSharedMemoryRegisterResponse {})
    }

    async fn cuda_shared_memory_unregister(
        &self,
        r: Request<CudaSharedMemoryUnregisterRequest>,
    ) -> TonicResult<CudaSharedMemoryUnregisterResponse> {
        regions::unregister_regions(&self.0, RegionKind::Cuda, &r.get_ref().name)
            .map_err(to_grpc_status)?;
        ok(CudaSharedMemoryUnregisterResponse {})
    }

    async fn trace_setting(
        &self,
        r: Request<TraceSettingRequest>,
    ) -> TonicResult<TraceSettingResponse> {
        let r = r.get_ref();
        trace_settings::read_trace_settings(&self.0, &r.model_name).map_err(to_grpc_status)?;
        let mut change = TraceChange::default();
        for (key, new) in &r.settings {
            let values: Vec<_> = new.value.iter().map(|value| Cow::Borrowed(&**value)).collect();
            change.add(key, &values).map_err(to_grpc_status)?;
        }
        change.apply(&self.0, &r.model_name).map_err(to_grpc_status)?;
        let settings =
            trace_settings::read_trace_settings(&self.0, &r.model_name).map_err(to_grpc_status)?;
        let value = |value| trace_setting_response::SettingValue { value };
        let settings: BTreeMap<_, _> =
            settings.into_iter().map(|(key, values)| (key, value(values))).collect();
        ok(TraceSettingResponse { settings })
    }

    async fn log_settings(
        &self,
        r: Request<LogSettingsRequest>,
    ) -> TonicResult<LogSettingsResponse> {
        let changes = log_changes(&r.get_ref().settings).map_err(to_grpc_status)?;
        log_settings::change_log_settings(&self.0, &changes);
        let settings =
            log_settings::current_log_settings(&self.0).into_iter().map(|(key, value)| {
                let value = log_settings_response::SettingValue { parameter_choice: Some(value) };
                (key.to_owned(), value)
            });
        ok(LogSettingsResponse { settings: settings.collect() })
    }
}
