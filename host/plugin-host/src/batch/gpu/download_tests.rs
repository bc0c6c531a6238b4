//! Unit tests of `download.rs`, on the fake CUDA driver: errors after copies were queued.

use super::super::tests::{identity, instance, one};
use super::*;
use crate::batch::testing::{failure, send, signature, with_batch_on};
use std::sync::mpsc::{Sender, channel};
use trtserver_base::ledger::LedgerHolder;
use trtserver_device::testing::FakeCuda;

/// Long enough that a copy is still queued when a function that does not wait for it returns.
const SLOW: (&str, &str) = ("DELAY_US", "50000");

/// A donation that tells how many copies are queued when it is released.
struct Probe(Arc<FakeCuda>, Sender<u64>);

impl Drop for Probe {
    fn drop(&mut self) {
        self.1.send(self.0.report()["copies_queued"]).unwrap();
    }
}

#[test]
fn donation_is_released_after_the_copies_before_an_error() {
    let fake = Arc::new(FakeCuda::new(&[SLOW, ("FAIL", "cuMemcpyAsync:2:1")]));
    let gpu = instance(&fake, false);
    let streams = &gpu.streams;
    let block = streams.device.alloc(64, &streams.compute, LedgerHolder::Backend).unwrap();
    let part = |offset: u64| Buf {
        ptr: std::ptr::without_provenance_mut((block.address() + offset) as usize),
        bytes: 32,
        memory: Memory::gpu(0),
        ready: std::ptr::null_mut(),
        memory_handle: 0,
    };
    let (released, copies) = channel();
    let probe = Probe(Arc::clone(&fake), released);
    let parts = [part(0), part(32)];
    let output = DeviceOutput::donated(&parts, probe, LedgerHolder::Output.into());
    let (done, result) = channel();
    gpu.download(None, vec![output], move |written| done.send(written.err()).unwrap());
    let error = result.recv().unwrap().unwrap();
    assert!(error.message.contains("CUDA_ERROR_INVALID_VALUE"), "{error}");
    assert_eq!(copies.recv(), Ok(0));
    assert!(streams.device.lost().is_none());
}

#[test]
fn response_without_an_event_is_sent_after_its_copies() {
    // The events of the upload, of the outputs, and of the response.
    let fake = FakeCuda::new(&[SLOW, ("FAIL", "cuEventRecord:3:1")]);
    let gpu = instance(&fake, false);
    let model = signature(8);
    let (a, responses) = one(&model, 1, &[1.0, 2.0]);
    with_batch_on(Some(&gpu), vec![a], |batch| {
        identity(batch, &gpu.streams.compute);
        send(batch);
        assert_eq!(fake.report()["copies_queued"], 0);
    });
    assert!(failure(&responses).contains("cuEventRecord failed"), "{}", failure(&responses));
    assert_eq!(gpu.streams.device.pinned().bytes().used, 0);
}
