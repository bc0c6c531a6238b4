//! The bytes of messages whose numbers are easy to get wrong.
use prost::Message;
use trtserver_proto::v1::infer_request_header as request;
use trtserver_proto::v1::infer_response_header::output::Raw;
use trtserver_proto::v1::shared_memory_control_request as shm;
use trtserver_proto::{health, v1, v2};

#[test]
fn numbers_on_the_wire() {
    let table: Vec<(&str, Vec<u8>, &[u8])> = vec![
        (
            "ModelInput.dims is 4",
            v2::ModelInput { dims: vec![16], ..Default::default() }.encode_to_vec(),
            &[0x22, 1, 16],
        ),
        (
            "ModelOutput.dims is 3",
            v2::ModelOutput { dims: vec![16], ..Default::default() }.encode_to_vec(),
            &[0x1a, 1, 16],
        ),
        (
            "ServerStatus.ready_state is 7, health_stats 8, profile_stats 6",
            v1::ServerStatus {
                ready_state: v1::ServerReadyState::ServerReady.into(),
                health_stats: Some(v1::HealthRequestStats::default()),
                profile_stats: Some(v1::ProfileRequestStats::default()),
                ..Default::default()
            }
            .encode_to_vec(),
            &[0x32, 0, 0x38, 2, 0x42, 0],
        ),
        (
            "dims of a v1 input is 2, batch_byte_size 3",
            request::Input { dims: vec![1, 2], batch_byte_size: 5, ..Default::default() }
                .encode_to_vec(),
            &[0x12, 2, 1, 2, 0x18, 5],
        ),
        (
            "dims of a v1 result is 1, batch_byte_size 2",
            Raw { dims: vec![3], batch_byte_size: 5, byte_size: 0 }.encode_to_vec(),
            &[0x0a, 1, 3, 0x10, 5],
        ),
        (
            "cls of a v1 output is 3",
            request::Output {
                cls: Some(request::output::Class { count: 1 }),
                ..Default::default()
            }
            .encode_to_vec(),
            &[0x1a, 2, 0x08, 1],
        ),
        (
            "SharedMemoryStatus starts at 2, a region's size is 5",
            v1::SharedMemoryStatus {
                shared_memory_region: vec![v1::SharedMemoryRegion {
                    byte_size: 9,
                    ..Default::default()
                }],
            }
            .encode_to_vec(),
            &[0x12, 2, 0x28, 9],
        ),
        (
            "the gRPC region list can be sent at 2",
            v1::shared_memory_control_response::Status {
                shared_memory_region: vec![],
                shared_memory_region_as_sent: vec![v1::SharedMemoryRegion::default()],
            }
            .encode_to_vec(),
            &[0x12, 0],
        ),
        (
            "registering has its size at 4 and the CUDA handle at 1",
            shm::Register {
                name: String::new(),
                byte_size: 9,
                shared_memory_types: Some(shm::register::SharedMemoryTypes::CudaSharedMemory(
                    shm::register::CudaSharedMemoryIdentifier {
                        raw_handle: bytes::Bytes::from_static(b"h"),
                        device_id: 1,
                    },
                )),
            }
            .encode_to_vec(),
            &[0x1a, 5, 0x0a, 1, b'h', 0x10, 1, 0x20, 9],
        ),
        (
            "ALREADY_EXISTS is 8, request_id 4",
            v1::RequestStatus {
                code: v1::RequestStatusCode::AlreadyExists.into(),
                request_id: 1,
                ..Default::default()
            }
            .encode_to_vec(),
            &[0x08, 8, 0x20, 1],
        ),
        (
            "an ensemble step has its version at 2",
            v2::model_ensembling::Step { model_version: 1, ..Default::default() }.encode_to_vec(),
            &[0x10, 1],
        ),
        (
            "model_metrics is 26",
            v2::ModelConfig {
                model_metrics: Some(v2::ModelMetrics::default()),
                ..Default::default()
            }
            .encode_to_vec(),
            &[0xd2, 1, 0],
        ),
        (
            "raw inputs are 7, raw outputs 6",
            [
                v2::ModelInferRequest {
                    raw_input_contents: vec![bytes::Bytes::from_static(b"a")],
                    ..Default::default()
                }
                .encode_to_vec(),
                v2::ModelInferResponse {
                    raw_output_contents: vec![bytes::Bytes::from_static(b"b")],
                    ..Default::default()
                }
                .encode_to_vec(),
            ]
            .concat(),
            &[0x3a, 1, b'a', 0x32, 1, b'b'],
        ),
        (
            "NOT_SERVING is 2",
            health::HealthCheckResponse {
                status: health::health_check_response::ServingStatus::NotServing.into(),
            }
            .encode_to_vec(),
            &[0x08, 2],
        ),
    ];
    for (what, bytes, want) in table {
        assert_eq!(bytes, want, "{what}");
    }
}

#[test]
fn services_have_their_published_names() {
    assert_eq!(v1::grpc_service_server::SERVICE_NAME, "nvidia.inferenceserver.GRPCService");
    assert_eq!(v2::grpc_inference_service_server::SERVICE_NAME, "inference.GRPCInferenceService");
    assert_eq!(health::health_server::SERVICE_NAME, "grpc.health.v1.Health");
}
