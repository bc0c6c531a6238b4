//! Unit tests of `cuda_region.rs`, on a fake driver.

use super::super::{RegionKind, RegionRegistry, RegisterError, UseError};
use super::*;
use trtserver_base::ledger::LedgerHolder;
use trtserver_device::testing::FakeCuda;
use trtserver_device::{DeviceMemory, GpuStreams};

/// A client with 4096 bytes of GPU memory, and the driver of the server. Two copies of the fake
/// know nothing of each other, as two processes.
struct Client {
    streams: GpuStreams,
    memory: DeviceMemory,
    driver: FakeCuda,
    server: FakeCuda,
    /// Of the server.
    device: &'static GpuDevice,
}

impl Client {
    fn new() -> Self {
        let (driver, server) = (FakeCuda::without_pools(&[]), FakeCuda::new(&[]));
        let streams = driver.streams();
        let memory = streams.device.alloc(4096, &streams.copy_in, LedgerHolder::Backend).unwrap();
        streams.copy_in.synchronize().unwrap();
        let device = server.device();
        Self { streams, memory, driver, server, device }
    }

    fn handle(&self) -> [u8; HANDLE_BYTES] {
        self.streams.device.context().bind_to_thread().unwrap();
        self.driver.ipc_handle(self.memory.address())
    }

    fn fill(&self, value: u8) {
        let bytes = [value; 4096];
        // SAFETY: both are valid until the stream was waited for.
        unsafe { self.streams.copy_in.copy(self.memory.address(), bytes.as_ptr() as u64, 4096) }
            .unwrap();
        self.streams.copy_in.synchronize().unwrap();
    }

    fn bytes(&self) -> [u8; 4096] {
        let mut bytes = [0u8; 4096];
        let to = bytes.as_mut_ptr() as u64;
        // SAFETY: array and device memory are valid until the stream was waited for.
        unsafe { self.streams.copy_out.copy(to, self.memory.address(), 4096) }.unwrap();
        self.streams.copy_out.synchronize().unwrap();
        bytes
    }
}

#[test]
fn tensors_are_read_from_and_written_to_the_memory_of_the_client() {
    let client = Client::new();
    client.fill(7);
    let registry = RegionRegistry::default();
    registry.register_cuda("r", client.handle(), client.device, 4096).unwrap();
    let input = registry.input("r", 16, 100).unwrap();
    assert_eq!((input.location(), input.len()), (MemoryLocation::gpu(0), 100));
    assert_eq!(input.readable(), None);
    assert_eq!(&*input.to_cpu().unwrap(), [7; 100]);
    let output = registry.part("r", 4000, 96).unwrap();
    output.owner().write(4000, &[9; 96]).unwrap();
    assert!(output.owner().write(4001, &[9; 96]).is_err());
    let mut expected = [7; 4096];
    expected[4000..].fill(9);
    assert_eq!(client.bytes(), expected);
    // The request keeps the region.
    registry.unregister_all(Some(RegionKind::Cuda));
    assert_eq!(registry.part("r", 0, 1).err(), Some(UseError::Unknown));
    assert_eq!(client.server.report()["ipc_open"], 1);
    assert_eq!(&*input.to_cpu().unwrap(), [7; 100]);
    drop((input, output));
    assert_eq!(client.server.report()["ipc_open"], 0);
}

#[test]
fn invalid_registrations_are_refused_and_leave_nothing_open() {
    let client = Client::new();
    let registry = RegionRegistry::default();
    let register =
        |name: &str, handle, len| registry.register_cuda(name, handle, client.device, len);
    assert_eq!(register("taken", client.handle(), 4096), Ok(()));
    for (name, handle, len, want) in [
        ("taken", client.handle(), 4096, "Exists"),
        ("", client.handle(), 1, "Name("),
        ("n", client.handle(), 0, "Open(Range { object: 4096 })"),
        ("n", client.handle(), 4097, "Open(Range { object: 4096 })"),
        ("n", client.handle(), u64::MAX, "Open(Range { object: 4096 })"),
        ("n", [0; HANDLE_BYTES], 1, "Open(Object(\"GPU 0: cuIpcOpenMemHandle_v2 failed: "),
    ] {
        let error = register(name, handle, len).unwrap_err();
        assert!(format!("{error:?}").starts_with(want), "{error:?}, expected {want}");
    }
    assert_eq!(client.server.report()["ipc_open"], 1);
    assert_eq!(registry.cuda_regions().len(), 1);
    assert_eq!(registry.system_region("taken").err(), Some(UseError::OtherKind(RegionKind::Cuda)));
    assert_eq!(register("taken", [0; HANDLE_BYTES], 1), Err(RegisterError::Exists));
    for (offset, len, want) in
        [(4096, 0, UseError::Offset), (4095, 2, UseError::Range), (1, u64::MAX, UseError::Range)]
    {
        assert_eq!(registry.part("taken", offset, len).err(), Some(want));
    }
}

#[test]
fn region_of_a_lost_device_is_refused_with_the_reason() {
    let client = Client::new();
    let registry = RegionRegistry::default();
    registry.register_cuda("r", client.handle(), client.device, 4096).unwrap();
    let used = registry.part("r", 0, 1).unwrap();
    assert_eq!(used.fault(), None);
    client.device.context().lose("illegal address");
    let text = "shared memory region 'r' cannot be used any more: GPU 0 is lost: illegal address";
    assert_eq!(used.fault(), Some(Error::unavailable(text)));
    assert_eq!(registry.part("r", 0, 1).err(), Some(UseError::Fault(Error::unavailable(text))));
}
