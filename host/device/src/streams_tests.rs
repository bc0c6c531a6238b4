//! Tests of streams, events, copies and callbacks with a fake driver, whose work is done later than
//! queued.

use super::{GpuStreams, InstanceStreams};
use crate::testing::FakeCuda;
use crate::{CudaStream, StreamPriority};
use std::sync::Arc;
use std::sync::mpsc::channel;
use trtserver_base::error::{Code, Result};
use trtserver_base::ledger::LedgerHolder;

/// A host buffer, its address, and its length.
fn addressed(bytes: &mut [u8]) -> (u64, usize) {
    (bytes.as_mut_ptr() as u64, bytes.len())
}

/// Queues a copy of host memory that outlives the test's waits.
fn copy(stream: &CudaStream, to: u64, from: u64, bytes: usize) -> Result<()> {
    // SAFETY: every test keeps its memory until it has waited for the stream, or checks that the
    // copy fails.
    unsafe { stream.copy(to, from, bytes) }
}

#[test]
fn cpu_instance_has_no_streams() {
    let streams = InstanceStreams::for_instance(false, -1, StreamPriority::Default).unwrap();
    assert!(streams.gpu().is_none() && streams.priority().is_none());
    assert!(streams.handles().iter().all(|handle| handle.is_null()));
}

#[test]
fn streams_have_the_priority_of_the_model() {
    let fake = FakeCuda::new(&[]);
    let device = fake.device();
    let priority = |wanted| GpuStreams::new(device, wanted).unwrap().priority;
    assert_eq!(priority(StreamPriority::Default), 0);
    assert_eq!(priority(StreamPriority::Least), 0);
    assert_eq!(priority(StreamPriority::Greatest), -5);
    assert_eq!(fake.count("cuStreamCreateWithPriority"), 9);
    assert_eq!(fake.count("cuDevicePrimaryCtxRetain"), 1);
    assert_eq!(fake.report()["streams"], 0);
}

#[test]
fn host_bytes_travel_through_a_device_and_back() {
    let fake = FakeCuda::new(&[]);
    let streams = fake.streams();
    let (mut from, mut to) = (*b"sixteen bytes..!", [0u8; 16]);
    let memory = streams.device.alloc(16, &streams.copy_in, LedgerHolder::Backend).unwrap();
    copy(&streams.copy_in, memory.address(), addressed(&mut from).0, 16).unwrap();
    let arrived = streams.device.events().record(&streams.copy_in).unwrap();
    arrived.block(&streams.copy_out).unwrap();
    drop(arrived);
    copy(&streams.copy_out, addressed(&mut to).0, memory.address(), 16).unwrap();
    streams.copy_out.synchronize().unwrap();
    assert_eq!(to, from);
    drop(memory);
    streams.copy_in.synchronize().unwrap();
    let report = fake.report();
    assert_eq!((report["device_bytes"], report["double_frees"]), (0, 0));
}

#[test]
fn only_an_event_orders_two_streams() {
    // Long, because the threads of the streams may be scheduled late.
    let fake = FakeCuda::new(&[("DELAY_US", "200000")]);
    let streams = fake.streams();
    let (mut from, mut to) = ([8u8; 64], [0u8; 64]);
    let memory = streams.device.alloc(128, &streams.copy_in, LedgerHolder::Backend).unwrap();
    streams.copy_in.synchronize().unwrap();
    // The second of two: it ends one delay later than a copy that is queued on another stream now.
    for at in [64, 0] {
        copy(&streams.copy_in, memory.address() + at, addressed(&mut from).0, 64).unwrap();
    }
    copy(&streams.copy_out, addressed(&mut to).0, memory.address(), 64).unwrap();
    let written = streams.device.events().record(&streams.copy_in).unwrap();
    assert!(!written.is_reached().unwrap());
    streams.copy_out.synchronize().unwrap();
    assert_ne!(to, [8; 64], "the copy out has waited for nothing");
    written.block(&streams.copy_out).unwrap();
    copy(&streams.copy_out, addressed(&mut to).0, memory.address(), 64).unwrap();
    streams.copy_out.synchronize().unwrap();
    assert_eq!(to, [8; 64]);
    assert!(written.is_reached().unwrap());
}

#[test]
fn events_are_reused() {
    let fake = FakeCuda::new(&[("DELAY_US", "0")]);
    let streams = fake.streams();
    let events = streams.device.events();
    for _ in 0..1000 {
        let (a, b) = (events.record(&streams.compute).unwrap(), events.event().unwrap());
        assert!(b.is_reached().is_ok());
        a.synchronize().unwrap();
    }
    assert_eq!(events.created(), 2);
    assert_eq!(fake.count("cuEventCreate"), 2);
}

#[test]
fn callbacks_run_in_order_and_after_their_work() {
    let fake = FakeCuda::new(&[("DELAY_US", "2000")]);
    let streams = Arc::new(fake.streams());
    let memory = streams.device.alloc(8, &streams.copy_in, LedgerHolder::Backend).unwrap();
    let (sender, receiver) = channel();
    let mut buffers = [[0u8; 8]; 8];
    for (i, buffer) in buffers.iter_mut().enumerate() {
        buffer.fill(i as u8);
        copy(&streams.copy_in, memory.address(), addressed(buffer).0, 8).unwrap();
        let event = streams.device.events().record(&streams.copy_in).unwrap();
        let sender = sender.clone();
        streams.when_done(
            &streams.copy_in,
            Box::new(move |done| sender.send((i, done, event.is_reached())).unwrap()),
        );
    }
    // Queued, not done: the calling thread does not wait.
    assert!(receiver.try_recv().is_err());
    for i in 0..8 {
        let (at, done, reached) = receiver.recv().unwrap();
        assert_eq!((at, done.is_ok(), reached.unwrap()), (i, true, true));
    }
    streams.copy_in.synchronize().unwrap();
}

#[test]
fn panic_in_a_callback_leaves_the_later_ones() {
    let fake = FakeCuda::new(&[]);
    let streams = fake.streams();
    let (sender, receiver) = channel();
    streams.when_done(&streams.compute, Box::new(|_| panic!("on purpose")));
    streams.when_done(&streams.compute, Box::new(move |done| sender.send(done.is_ok()).unwrap()));
    assert!(receiver.recv().unwrap());
}

#[test]
fn sticky_error_loses_the_device_and_reaches_every_callback() {
    let fake = FakeCuda::new(&[("DEVICES", "A,B")]);
    let driver = fake.open().unwrap();
    let on = |ordinal| {
        GpuStreams::new(driver.device(ordinal).unwrap(), StreamPriority::Default).unwrap()
    };
    let (first, second) = (on(0), on(1));
    let (sender, receiver) = channel();
    let watch = {
        let sender = sender.clone();
        first.device.context().on_lost(move |reason| sender.send(Err(reason.to_owned())).unwrap())
    };
    let unused = first.device.context().on_lost(|_| panic!("the watch was dropped before"));
    drop(unused);
    let memory = first.device.alloc(8, &first.copy_in, LedgerHolder::Backend).unwrap();
    // Behind the end of the block.
    let mut host = [0u8; 4096];
    copy(&first.copy_in, memory.address(), addressed(&mut host).0, 4096).unwrap();
    for _ in 0..3 {
        let sender = sender.clone();
        let callback = move |done: Result<()>| sender.send(Ok(done.unwrap_err())).unwrap();
        first.when_done(&first.copy_in, Box::new(callback));
    }
    let (mut errors, mut reasons) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        match receiver.recv().unwrap() {
            Ok(error) => errors.push(error),
            Err(reason) => reasons.push(reason),
        }
    }
    assert_eq!(reasons.len(), 1);
    assert!(reasons[0].contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{}", reasons[0]);
    assert_eq!(first.device.lost(), Some(&*reasons[0]));
    for error in errors {
        assert_eq!(error.code, Code::Unavailable);
        assert!(error.message.starts_with("GPU 0 is lost: "), "{error}");
    }
    // Later calls fail without the driver.
    let calls = fake.count("cuMemAllocFromPoolAsync");
    assert!(first.device.alloc(8, &first.copy_in, LedgerHolder::Backend).is_err());
    assert!(GpuStreams::new(first.device, StreamPriority::Default).is_err());
    assert_eq!(fake.count("cuMemAllocFromPoolAsync"), calls);
    // A watcher that comes later learns it at once.
    let (late, seen) = channel();
    drop(first.device.context().on_lost(move |_| late.send(()).unwrap()));
    seen.recv().unwrap();
    drop((watch, memory));
    // The other device goes on.
    assert!(second.device.lost().is_none());
    let memory = second.device.alloc(8, &second.copy_in, LedgerHolder::Backend).unwrap();
    copy(&second.copy_in, memory.address(), addressed(&mut host).0, 8).unwrap();
    second.copy_in.synchronize().unwrap();
}

#[test]
fn context_of_a_framework_is_left_current() {
    let fake = FakeCuda::new(&[("DEVICES", "A,B")]);
    let driver = fake.open().unwrap();
    driver.device(1).unwrap().context().bind_to_thread().unwrap();
    let streams = GpuStreams::new(driver.device(0).unwrap(), StreamPriority::Default).unwrap();
    streams.compute.synchronize().unwrap();
    let before = fake.count("cuCtxPushCurrent_v2");
    let second = GpuStreams::new(driver.device(1).unwrap(), StreamPriority::Default).unwrap();
    second.compute.synchronize().unwrap();
    assert_eq!(fake.count("cuCtxPushCurrent_v2"), before);
    assert_eq!(fake.count("cuCtxPopCurrent_v2"), before);
}
