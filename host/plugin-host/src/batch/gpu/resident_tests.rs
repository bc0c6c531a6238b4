//! Unit tests of `resident.rs`, on the fake CUDA driver: outputs that no copy takes to the CPU.

use super::super::tests::{data, gather_on_gpu, identity, instance, one, settle};
use super::*;
use crate::batch::testing::{
    RecordedResponses, floats, gather, placed_request, scatter, send, signature, single_response,
    with_batch_on,
};
use bytes::Bytes;
use std::fs::read_to_string;
use std::path::PathBuf;
use tempfile::TempDir;
use trtserver_base::ledger::LedgerHolder;
use trtserver_device::DeviceMemory;
use trtserver_device::testing::FakeCuda;
use trtserver_request::memory::OutputMemory;
use trtserver_request::shared_memory::RegionRegistry;
use trtserver_request::{InferRequest, ModelSignature, RequestedOutput};

/// A fake that logs the copies it makes.
struct Logged {
    fake: FakeCuda,
    folder: TempDir,
}

impl Logged {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = Self::path(&folder);
        let settings = [("DELAY_US", "20000"), ("LOG", path.to_str().unwrap())];
        Self { fake: FakeCuda::new(&settings), folder }
    }

    fn path(folder: &TempDir) -> PathBuf {
        folder.path().join("log")
    }

    /// The streams of all copies so far, by number, in ascending order.
    fn copies(&self) -> Vec<u32> {
        let lines = read_to_string(Self::path(&self.folder)).unwrap();
        let copies = lines.lines().filter_map(|line| line.split_once(" begin copy "));
        let mut streams: Vec<u32> =
            copies.map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap()).collect();
        streams.sort_unstable();
        streams
    }
}

/// A request for `O`.
fn wanting(
    model: &Arc<ModelSignature>,
    data: impl Into<TensorData>,
    output: RequestedOutput,
) -> (InferRequest, RecordedResponses) {
    placed_request(model, 1, &[(0, data.into())], [output])
}

fn output() -> RequestedOutput {
    RequestedOutput::new(0, 0)
}

fn run(gpu: &Arc<GpuInstance>, requests: Vec<InferRequest>) {
    with_batch_on(Some(gpu), requests, |batch| {
        identity(batch, &gpu.streams.compute);
        send(batch);
    });
    settle(gpu);
}

fn produced(responses: &RecordedResponses) -> TensorData {
    single_response(responses).outputs[0].data.clone()
}

#[test]
fn output_for_a_step_on_a_gpu_is_read_there_without_copies() {
    let logged = Logged::new();
    // Streams 1 to 3 and 4 to 6: compute, copy in, copy out.
    let (first, second) = (instance(&logged.fake, false), instance(&logged.fake, false));
    let model = signature(8);
    let (a, responses_a) = wanting(&model, floats(&[1.0, 2.0]), output().on_device(true));
    let (b, responses_b) = wanting(&model, floats(&[3.0, 4.0]), output().on_device(true));
    run(&first, vec![a, b]);
    let kept = [produced(&responses_a), produced(&responses_b)];
    assert!(kept.iter().all(|data| data.location() == MemoryLocation::gpu(0) && data.len() == 8));
    assert_eq!(logged.copies(), [1, 2]);
    let [kept_a, kept_b] = kept;
    let (a, responses_a) = wanting(&model, kept_a, output());
    run(&second, vec![a]);
    assert_eq!(data(&responses_a), floats(&[1.0, 2.0]));
    assert_eq!(logged.copies(), [1, 2, 4, 6]);
    // For a step on the CPU.
    assert_eq!(kept_b.to_cpu().unwrap(), floats(&[3.0, 4.0]));
    drop((kept_b, first, second));
    let report = logged.fake.report();
    assert_eq!((report["device_blocks"], report["double_frees"]), (0, 0));
}

#[test]
fn output_of_a_batch_is_copied_once_if_one_request_wants_it_on_the_cpu() {
    let logged = Logged::new();
    let gpu = instance(&logged.fake, false);
    let model = signature(8);
    let (a, responses_a) = wanting(&model, floats(&[1.0, 2.0]), output().on_device(true));
    let (b, responses_b) = one(&model, 1, &[3.0, 4.0]);
    run(&gpu, vec![a, b]);
    assert_eq!(data(&responses_a), floats(&[1.0, 2.0]));
    assert_eq!(data(&responses_b), floats(&[3.0, 4.0]));
    assert_eq!(logged.copies(), [1, 2, 3]);
}

#[test]
fn input_is_kept_until_the_work_that_reads_it_is_complete() {
    let logged = Logged::new();
    let (first, second) = (instance(&logged.fake, false), instance(&logged.fake, false));
    let model = signature(8);
    let (a, responses) = wanting(&model, floats(&[1.0, 2.0]), output().on_device(true));
    run(&first, vec![a]);
    let (request, failed) = wanting(&model, produced(&responses), output());
    let compute = &second.streams.compute;
    let target = second.streams.device.alloc(8, compute, LedgerHolder::Backend).unwrap();
    with_batch_on(Some(&second), vec![request], |batch| {
        let from = gather_on_gpu(batch, 0).unwrap().ptr.addr() as u64;
        for _ in 0..2 {
            // SAFETY: memory of the host, of 8 bytes each.
            unsafe { compute.copy(target.address(), from, 8) }.unwrap();
        }
        // Ends the batch without a response while the copies wait.
        send(batch);
    });
    assert_eq!(failed.lock().len(), 1);
    // Freed memory would be an illegal address, which loses the device.
    second.streams.compute.synchronize().unwrap();
    assert_eq!(logged.copies(), [1, 2, 4, 4]);
    drop(target);
    // Behind the callback that frees the input.
    settle(&second);
    drop((first, second));
    assert_eq!(logged.fake.report()["device_blocks"], 0);
}

/// A client with 4096 bytes of GPU memory, registered with the server.
struct Client {
    _driver: FakeCuda,
    streams: GpuStreams,
    memory: DeviceMemory,
    registry: RegionRegistry,
}

impl Client {
    fn new(device: &'static GpuDevice) -> Self {
        let driver = FakeCuda::without_pools(&[]);
        let streams = driver.streams();
        let memory = streams.device.alloc(4096, &streams.copy_in, LedgerHolder::Backend).unwrap();
        streams.copy_in.synchronize().unwrap();
        streams.device.context().bind_to_thread().unwrap();
        let registry = RegionRegistry::default();
        let handle = driver.ipc_handle(memory.address());
        registry.register_cuda("r", handle, device, 4096).unwrap();
        device.context().bind_to_thread().unwrap();
        Self { _driver: driver, streams, memory, registry }
    }

    /// `O`, to be written to `len` bytes of the region from `offset`.
    fn output(&self, offset: usize, len: usize) -> RequestedOutput {
        let memory = self.registry.part("r", offset as u64, len as u64).unwrap();
        let slice = PlacedSlice::new(&memory, offset, len).unwrap();
        output().written_to(Some(Arc::new(OutputMemory::new(slice))))
    }

    fn bytes(&self, offset: usize, len: usize) -> Bytes {
        let mut bytes = vec![0u8; len];
        let from = self.memory.address() + offset as u64;
        let to = bytes.as_mut_ptr() as u64;
        // SAFETY: both are valid until the stream was waited for.
        unsafe { self.streams.copy_out.copy(to, from, len) }.unwrap();
        self.streams.copy_out.synchronize().unwrap();
        bytes.into()
    }
}

#[test]
fn output_is_written_in_the_gpu_memory_of_the_client() {
    let logged = Logged::new();
    let gpu = instance(&logged.fake, false);
    let client = Client::new(gpu.streams.device);
    let model = signature(8);
    let (request, responses) = wanting(&model, floats(&[1.0, 2.0]), client.output(64, 100));
    run(&gpu, vec![request]);
    let written = produced(&responses);
    assert_eq!((written.location(), written.len()), (MemoryLocation::gpu(0), 8));
    assert_eq!(client.bytes(64, 8), floats(&[1.0, 2.0]));
    // The input, and what the backend does.
    assert_eq!(logged.copies(), [1, 2]);
}

#[test]
fn output_that_cannot_be_written_in_place_is_copied_once_on_the_device() {
    let logged = Logged::new();
    let gpu = instance(&logged.fake, false);
    let client = Client::new(gpu.streams.device);
    let model = signature(8);
    // Of two requests that are one block to the backend; of memory that is not aligned; of memory
    // that is too small.
    let (a, responses_a) = wanting(&model, floats(&[1.0, 2.0]), client.output(64, 8));
    let (b, responses_b) = wanting(&model, floats(&[3.0, 4.0]), client.output(128, 8));
    run(&gpu, vec![a, b]);
    for responses in [&responses_a, &responses_b] {
        assert_eq!(produced(responses).location(), MemoryLocation::gpu(0));
    }
    assert_eq!(client.bytes(64, 8), floats(&[1.0, 2.0]));
    assert_eq!(client.bytes(128, 8), floats(&[3.0, 4.0]));
    // Stream 4 is that of `GpuDevice::copy_and_wait`.
    assert_eq!(logged.copies(), [1, 2, 4, 4]);
    let (c, _responses) = wanting(&model, floats(&[5.0, 6.0]), client.output(260, 8));
    run(&gpu, vec![c]);
    assert_eq!(client.bytes(260, 8), floats(&[5.0, 6.0]));
    assert_eq!(logged.copies(), [1, 1, 2, 2, 4, 4, 4]);
    let before = client.bytes(512, 8);
    let (d, responses) = wanting(&model, floats(&[7.0, 8.0]), client.output(512, 4));
    run(&gpu, vec![d]);
    let refused = responses.lock().pop().unwrap().unwrap_err();
    assert!(refused.message.contains("should be at least 8 bytes"), "{refused}");
    assert_eq!(client.bytes(512, 8), before);
}

#[test]
fn output_in_cpu_memory_is_copied_to_the_gpu_memory_of_the_client() {
    let logged = Logged::new();
    let gpu = instance(&logged.fake, false);
    let client = Client::new(gpu.streams.device);
    let model = signature(8);
    let (request, _responses) = wanting(&model, floats(&[1.0, 2.0]), client.output(64, 8));
    with_batch_on(Some(&gpu), vec![request], |batch| {
        let bytes = gather(batch, 0).unwrap().1;
        let dtype = trtserver_plugin_api::abi::types::dtype::FP32;
        assert!(scatter(batch, "O", dtype, &[1, 2], &bytes).unwrap());
        send(batch);
    });
    assert_eq!(client.bytes(64, 8), floats(&[1.0, 2.0]));
}
