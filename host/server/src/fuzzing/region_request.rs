//! Shared-memory requests of v1 gRPC: our reader of all releases against prost, which knows the
//! messages of v1.8.

use prost::Message;
use trtserver_frontend_v1::grpc::region_request::read_region_request;
use trtserver_frontend_v1::regions::RegionControl;
use trtserver_proto::v1::SharedMemoryControlRequest;
use trtserver_proto::v1::shared_memory_control_request::SharedMemoryControl as Request;
use trtserver_proto::v1::shared_memory_control_request::register::SharedMemoryTypes;
use trtserver_wire::shared_memory::CudaMemory;

/// Any bytes can be read, and what prost reads and encodes again is read the same.
pub fn v1_region_request(bytes: &[u8]) {
    let _ = read_region_request(bytes);
    let Ok(request) = SharedMemoryControlRequest::decode(bytes) else { return };
    let encoded = request.encode_to_vec();
    let want = request.shared_memory_control.as_ref().map(|request| match request {
        Request::Unregister(r) => RegionControl::Unregister { name: &r.name },
        Request::UnregisterAll(_) => RegionControl::UnregisterAll,
        Request::Status(_) => RegionControl::Status,
        Request::Register(r) => match &r.shared_memory_types {
            None => RegionControl::RegisterNothing { name: &r.name },
            Some(SharedMemoryTypes::CudaSharedMemory(cuda)) => {
                let (handle, device_id) = (&*cuda.raw_handle, cuda.device_id as u64);
                let memory = CudaMemory { handle, device_id, byte_size: r.byte_size };
                RegionControl::RegisterCuda { name: &r.name, memory }
            }
            Some(SharedMemoryTypes::SystemSharedMemory(system)) => RegionControl::Register {
                name: &r.name,
                key: &system.shared_memory_key,
                offset: system.offset,
                byte_size: r.byte_size,
            },
        },
    });
    assert_eq!(read_region_request(&encoded), Ok(want));
}
