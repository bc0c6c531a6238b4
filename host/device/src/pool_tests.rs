//! Tests of device and pinned memory and of memory of other processes, with a fake driver.

use super::PoolBytes;
use crate::testing::FakeCuda;
use crate::{DeviceSettings, GpuDevice, GpuStreams, RegisteredMemory, StreamPriority};
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;
use trtserver_base::error::{Code, Error};
use trtserver_base::ledger::LedgerHolder;

#[test]
fn memory_is_freed_in_the_order_of_its_stream() {
    for fake in [FakeCuda::new(&[]), FakeCuda::without_pools(&[]), FakeCuda::new(&[("POOLS", "0")])]
    {
        let streams = fake.streams();
        let mut host = vec![3u8; 1 << 16];
        for _ in 0..50 {
            let memory =
                streams.device.alloc(host.len(), &streams.copy_in, LedgerHolder::Backend).unwrap();
            // SAFETY: the host buffer lives until the stream was waited for.
            unsafe {
                streams
                    .copy_in
                    .copy(memory.address(), host.as_mut_ptr() as u64, host.len())
                    .unwrap();
            }
            // Dropped before the copy has run.
        }
        streams.copy_in.synchronize().unwrap();
        assert!(streams.device.lost().is_none());
        assert_eq!(streams.device.pool().bytes().used, 0);
        streams.device.pool().trim();
        let report = fake.report();
        assert_eq!((report["device_bytes"], report["double_frees"]), (0, 0));
    }
}

#[test]
fn free_lists_reuse_blocks_across_streams_after_an_event() {
    let fake = FakeCuda::without_pools(&[]);
    let streams = fake.streams();
    for i in 0..100 {
        let stream = if i % 2 == 0 { &streams.copy_in } else { &streams.copy_out };
        drop(streams.device.alloc(100_000, stream, LedgerHolder::Backend).unwrap());
    }
    assert_eq!(fake.count("cuMemAlloc_v2"), 1);
    assert_eq!(fake.count("cuStreamWaitEvent"), 99);
    let bytes = streams.device.pool().bytes();
    assert_eq!(bytes, PoolBytes { used: 0, peak_used: 100_000, held: 114_688 });
}

#[test]
fn free_lists_keep_at_most_what_the_settings_say() {
    let fake = FakeCuda::without_pools(&[]);
    let settings = DeviceSettings { pools: [(0, 8192)].into(), ..DeviceSettings::default() };
    let device = fake.open_with(&settings).unwrap().device(0).unwrap();
    let streams = GpuStreams::new(device, StreamPriority::Default).unwrap();
    let blocks: Vec<_> = (0..4)
        .map(|_| device.alloc(4096, &streams.compute, LedgerHolder::Backend).unwrap())
        .collect();
    assert_eq!(device.pool().bytes().held, 16384);
    drop(blocks);
    assert_eq!(device.pool().bytes().held, 8192);
    assert_eq!(fake.report()["device_bytes"], 8192);
}

#[test]
fn exhausted_device_is_an_error_and_later_allocations_succeed() {
    for fake in [
        FakeCuda::new(&[("DEVICES", "Small/7.5/4")]),
        FakeCuda::without_pools(&[("DEVICES", "Small/7.5/4")]),
    ] {
        let streams = fake.streams();
        let device = streams.device;
        let held = device.alloc(3 << 20, &streams.compute, LedgerHolder::Backend).unwrap();
        let error = device.alloc(2 << 20, &streams.compute, LedgerHolder::Backend).err().unwrap();
        assert_eq!(error.code, Code::ResourceExhausted);
        assert!(error.message.starts_with("GPU 0 is out of memory: cuMem"), "{error}");
        assert!(error.message.ends_with("2097152 bytes requested, the server's pool uses 3145728"));
        assert!(device.lost().is_none());
        drop(held);
        streams.compute.synchronize().unwrap();
        // Another size: the free lists give back what they keep.
        drop(device.alloc(2 << 20, &streams.compute, LedgerHolder::Backend).unwrap());
        assert_eq!(device.pool().bytes().used, 0);
        assert_eq!(device.pool().bytes().peak_used, 3 << 20);
    }
}

#[test]
fn empty_memory_has_an_address() {
    let fake = FakeCuda::new(&[]);
    let streams = fake.streams();
    let memory = streams.device.alloc(0, &streams.compute, LedgerHolder::Backend).unwrap();
    assert!(memory.is_empty() && memory.address() != 0);
}

#[test]
fn pinned_blocks_are_reused_up_to_the_limit() {
    let fake = FakeCuda::new(&[]);
    let settings = DeviceSettings { pinned_pool: 64 << 10, ..DeviceSettings::default() };
    let driver = fake.open_with(&settings).unwrap();
    let device = driver.device(0).unwrap();
    for _ in 0..100 {
        let block = device.alloc_pinned(30_000, LedgerHolder::Backend).unwrap();
        assert_eq!(block.len(), 30_000);
        assert!(!block.as_ptr().is_null());
    }
    assert_eq!(fake.count("cuMemHostAlloc"), 1);
    assert_eq!(driver.pinned().bytes(), PoolBytes { used: 0, peak_used: 32768, held: 32768 });
    let blocks = [
        device.alloc_pinned(32768, LedgerHolder::Backend).unwrap(),
        device.alloc_pinned(32768, LedgerHolder::Backend).unwrap(),
    ];
    let error = device.alloc_pinned(1, LedgerHolder::Backend).err().unwrap();
    assert_eq!(error.code, Code::ResourceExhausted);
    assert_eq!(
        error.message,
        "pinned memory pool exhausted: 1 bytes requested, 65536 of 65536 are in use (--pinned-memory-pool-byte-size)"
    );
    assert!(device.alloc_pinned(1 << 30, LedgerHolder::Backend).is_err());
    drop(blocks);
    // A block of another size takes the place of free ones.
    drop(device.alloc_pinned(4096, LedgerHolder::Backend).unwrap());
    assert_eq!(driver.pinned().bytes().held, 32768 + 4096);
    assert_eq!(fake.report()["pinned_bytes"], 32768 + 4096);
}

#[test]
fn wanted_block_is_pinned_later_unless_the_limit_forbids_it() {
    let fake = FakeCuda::new(&[("FAIL", "cuMemHostAlloc:1:2")]);
    let settings = DeviceSettings { pinned_pool: 64 << 10, ..DeviceSettings::default() };
    let driver = fake.open_with(&settings).unwrap();
    let (pool, context) = (driver.pinned(), driver.device(0).unwrap().context());
    let take = || pool.take_pinned(30_000, LedgerHolder::Input.into());
    pool.pin_wanted(context);
    assert_eq!(fake.count("cuMemHostAlloc"), 0, "nothing was wanted");
    assert!(take().is_none());
    pool.pin_wanted(context);
    assert!((take().is_none(), pool.bytes().held) == (true, 0), "the driver has refused");
    pool.pin_wanted(context);
    pool.pin_wanted(context);
    let first = take().unwrap();
    assert!(take().is_none());
    // A block that comes back in between is not the one that was missing.
    drop(first);
    pool.pin_wanted(context);
    let both = [take().unwrap(), take().unwrap()];
    assert!(take().is_none());
    pool.pin_wanted(context);
    assert!(take().is_none(), "beyond the limit");
    assert!(pool.take_pinned(1 << 30, LedgerHolder::Input.into()).is_none());
    drop(both);
    assert_eq!(fake.count("cuMemHostAlloc"), 3);
    assert_eq!(pool.bytes().held, 65536);
}

/// Whole pages that the pool does not own.
struct OtherPages(NonNull<u8>, Layout);

impl OtherPages {
    fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).unwrap();
        // SAFETY: the layout is not empty.
        Self(NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap(), layout)
    }

    fn pin(&self, device: &'static GpuDevice) -> Result<RegisteredMemory, Error> {
        // SAFETY: the tests drop the result before the pages.
        unsafe { device.register_memory(self.0, self.1.size()) }
    }
}

impl Drop for OtherPages {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and in no use any more.
        unsafe { dealloc(self.0.as_ptr(), self.1) }
    }
}

#[test]
fn memory_of_others_is_pinned_up_to_half_of_the_limit() {
    let fake = FakeCuda::new(&[("FAIL", "cuMemHostRegister_v2:2:712")]);
    let settings = DeviceSettings { pinned_pool: 64 << 10, ..DeviceSettings::default() };
    let driver = fake.open_with(&settings).unwrap();
    let (device, pool) = (driver.device(0).unwrap(), driver.pinned());
    let [large, small, more] = [24 << 10, 8192, 4096].map(OtherPages::new);
    // A free block makes room.
    let blocks = [0, 0].map(|_| device.alloc_pinned(32768, LedgerHolder::Backend).unwrap());
    let [one, _other] = blocks;
    drop(one);
    let pinned = large.pin(device).unwrap();
    assert_eq!(fake.count("cuMemFreeHost"), 1);
    let refused = small.pin(device).err().unwrap();
    assert!(refused.message.contains("cuMemHostRegister_v2 failed"), "{refused}");
    let held = (32 << 10) + (24 << 10);
    assert_eq!(pool.bytes(), PoolBytes { used: held, peak_used: 65536, held });
    let second = small.pin(device).unwrap();
    let refused = more.pin(device).err().unwrap();
    assert_eq!(
        refused.message,
        "4096 bytes beside 32768 of other regions are more than 32768, half of --pinned-memory-pool-byte-size"
    );
    assert_eq!(fake.report()["registered_bytes"], 32768);
    drop((pinned, second));
    assert_eq!((fake.report()["registered_bytes"], pool.bytes().held), (0, 32768));
    assert!(more.pin(device).is_ok());
    assert_eq!(fake.report()["double_frees"], 0);
}

#[test]
fn failure_to_pin_leaves_the_pool_usable() {
    let fake = FakeCuda::new(&[("FAIL", "cuMemHostAlloc:1:2")]);
    let device = fake.device();
    assert_eq!(
        device.alloc_pinned(4096, LedgerHolder::Backend).err().unwrap().code,
        Code::ResourceExhausted
    );
    assert_eq!(device.pinned().bytes().held, 0);
    assert!(device.alloc_pinned(4096, LedgerHolder::Backend).is_ok());
}

#[test]
fn device_that_refuses_a_call_before_pinning_leaves_the_pool_usable() {
    let fake = FakeCuda::new(&[]);
    let settings = DeviceSettings { pinned_pool: 8192, ..DeviceSettings::default() };
    let device = fake.open_with(&settings).unwrap().device(0).unwrap();
    drop(device.alloc_pinned(4096, LedgerHolder::Backend).unwrap());
    let next = fake.count("cuCtxGetCurrent") + 1;
    fake.set("FAIL", &format!("cuCtxGetCurrent:{next}:1"));
    // Would take the place of the free block.
    assert!(device.alloc_pinned(8192, LedgerHolder::Backend).is_err());
    assert_eq!(device.pinned().bytes(), PoolBytes { used: 0, peak_used: 4096, held: 4096 });
    assert_eq!(fake.report()["pinned_bytes"], 4096);
    drop(device.alloc_pinned(8192, LedgerHolder::Backend).unwrap());
    assert_eq!(device.pinned().bytes().held, 8192);
}

#[test]
fn memory_of_another_process_is_opened_by_its_handle() {
    // Two copies of the library know nothing of each other, as two processes.
    let (exporter, importer) = (FakeCuda::without_pools(&[]), FakeCuda::new(&[]));
    let (theirs, ours) = (exporter.streams(), importer.streams());
    let memory = theirs.device.alloc(4096, &theirs.copy_in, LedgerHolder::Backend).unwrap();
    let mut host = [9u8; 4096];
    // SAFETY: the buffer lives until the stream was waited for.
    unsafe { theirs.copy_in.copy(memory.address(), host.as_mut_ptr() as u64, 4096).unwrap() };
    theirs.copy_in.synchronize().unwrap();
    theirs.device.context().bind_to_thread().unwrap();
    let handle = exporter.ipc_handle(memory.address());
    let opened = ours.device.open_ipc(handle).unwrap();
    assert_eq!(opened.len(), 4096);
    let mut read = [0u8; 4096];
    // SAFETY: the buffer and the opened memory live until the stream was waited for.
    unsafe { ours.copy_out.copy(read.as_mut_ptr() as u64, opened.address(), 4096).unwrap() };
    ours.copy_out.synchronize().unwrap();
    assert_eq!(read, [9; 4096]);
    assert_eq!(importer.report()["ipc_open"], 1);
    drop(opened);
    assert_eq!(importer.report()["ipc_open"], 0);
    let error = ours.device.open_ipc([0; 64]).err().unwrap();
    assert!(error.message.starts_with("GPU 0: cuIpcOpenMemHandle_v2 failed: "), "{error}");
    assert!(ours.device.lost().is_none());
}
