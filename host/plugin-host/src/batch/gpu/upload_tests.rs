//! Unit tests of `upload.rs`, on the fake CUDA driver: errors after copies were queued.

use super::super::tests::{answer, identity, instance, one};
use super::*;
use crate::batch::testing::{
    RecordedResponses, failure, placed_request, send, signature, with_batch_on,
};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use trtserver_device::testing::FakeCuda;
use trtserver_device::{DeviceSettings, StreamPriority};
use trtserver_request::RequestedOutput;

/// Long enough that a copy is still queued when a function that does not wait for it returns.
const SLOW: (&str, &str) = ("DELAY_US", "50000");

/// Input memory that notes how many copies are queued when it is freed.
struct Probe {
    data: Vec<u8>,
    fake: Arc<FakeCuda>,
    copies_at_drop: Arc<AtomicU64>,
}

impl AsRef<[u8]> for Probe {
    fn as_ref(&self) -> &[u8] {
        &self.data
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let copies = self.fake.report()["copies_queued"];
        self.copies_at_drop.fetch_add(copies, Ordering::SeqCst);
    }
}

#[test]
fn inputs_are_kept_until_the_copies_before_an_error_are_complete() {
    let fake = Arc::new(FakeCuda::new(&[SLOW, ("FAIL", "cuMemcpyAsync:2:1")]));
    // Without pinned memory each input is copied by itself.
    let settings = DeviceSettings { pinned_pool: 0, ..DeviceSettings::default() };
    let device = fake.open_with(&settings).unwrap().device(0).unwrap();
    let streams = GpuStreams::new(device, StreamPriority::Default).unwrap();
    let gpu = GpuInstance::new(Arc::new(streams), true, false);
    let model = signature(8);
    let copies_at_drop = Arc::new(AtomicU64::new(0));
    let request = || {
        let (fake, copies_at_drop) = (Arc::clone(&fake), Arc::clone(&copies_at_drop));
        let probe = Probe { data: vec![0; 8], fake, copies_at_drop };
        placed_request(&model, 1, &[(0, Bytes::from_owner(probe).into())], [])
    };
    let ((a, responses_a), (b, responses_b)) = (request(), request());
    gpu.place_inputs(&mut vec![a, b], &model, 0);
    let failed = |responses: &RecordedResponses| {
        let error = failure(responses);
        assert!(error.contains("CUDA_ERROR_INVALID_VALUE"), "{error}");
    };
    failed(&responses_a);
    failed(&responses_b);
    assert_eq!(copies_at_drop.load(Ordering::SeqCst), 0);
    // The device is in order.
    assert!(device.lost().is_none());
    assert_eq!(device.pool().bytes().used, 0);
}

#[test]
fn pinned_block_is_free_only_after_its_copy() {
    let fake = FakeCuda::new(&[SLOW, ("FAIL", "cuEventRecord:1:1")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses) = one(&model, 1, &[1.0, 2.0]);
    gpu.place_inputs(&mut vec![a], &model, 0);
    assert_eq!(fake.report()["copies_queued"], 0);
    assert!(failure(&responses).contains("cuEventRecord failed"), "{}", failure(&responses));
    assert_eq!(gpu.streams.device.pinned().bytes().used, 0);
    assert!(gpu.streams.device.lost().is_none());
}

#[test]
fn device_whose_stream_cannot_be_waited_for_is_lost() {
    let fake = FakeCuda::new(&[("FAIL", "cuEventRecord:1:1,cuStreamSynchronize:1:1")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses) = one(&model, 1, &[1.0, 2.0]);
    gpu.place_inputs(&mut vec![a], &model, 0);
    assert_eq!(responses.lock().len(), 1);
    let lost = gpu.streams.device.lost().unwrap();
    assert!(
        lost.starts_with("a stream cannot be waited for: GPU 0: cuStreamSynchronize"),
        "{lost}"
    );
}

/// Input memory that notes its end.
struct Held(#[expect(dead_code, reason = "counts the memory's owners")] Arc<()>);

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &[0; 8]
    }
}

#[test]
fn nothing_holds_the_memory_of_inputs_when_their_response_arrives() {
    let fake = FakeCuda::new(&[]);
    // Without pinned memory the device copies from the input itself.
    let settings = DeviceSettings { pinned_pool: 0, ..DeviceSettings::default() };
    let device = fake.open_with(&settings).unwrap().device(0).unwrap();
    let streams = GpuStreams::new(device, StreamPriority::Default).unwrap();
    let gpu = GpuInstance::new(Arc::new(streams), true, false);
    let alive = Arc::new(());
    let input = Bytes::from_owner(Held(Arc::clone(&alive)));
    let outputs = [RequestedOutput::new(0, 0)];
    let (request, responses) = placed_request(&signature(8), 1, &[(0, input.into())], outputs);
    with_batch_on(Some(&gpu), vec![request], |batch| {
        identity(batch, &gpu.streams.compute);
        send(batch);
    });
    answer(&responses).unwrap();
    assert_eq!(Arc::strong_count(&alive), 1);
}
