//! Unit tests of `memory.rs`.

use super::*;
use crate::testing::{TestMemory, placed};

#[test]
fn slice_outside_memory_is_refused() {
    let memory = placed(&[0; 10], MemoryLocation::CPU, true);
    for (offset, len, inside) in [
        (0, 10, true),
        (10, 0, true),
        (3, 7, true),
        (3, 8, false),
        (11, 0, false),
        (usize::MAX, 1, false),
        (1, usize::MAX, false),
    ] {
        assert_eq!(PlacedSlice::new(&memory, offset, len).is_some(), inside, "{offset} {len}");
    }
}

#[test]
fn to_cpu_copies_shared_and_device_memory_only() {
    for (location, shared, copied) in [
        (MemoryLocation::CPU, false, false),
        (MemoryLocation::PINNED, false, false),
        (MemoryLocation::CPU, true, true),
        (MemoryLocation::gpu(1), false, true),
    ] {
        let memory = placed(b"0123456789", location, shared);
        let slice = PlacedSlice::new(&memory, 2, 5).unwrap().slice(1..4);
        let bytes = slice.to_cpu().unwrap();
        assert_eq!(bytes, "345", "{location}");
        assert_eq!(bytes.as_ptr() != slice.as_ptr(), copied, "{location}");
        assert_eq!(slice.readable().is_some(), location.is_cpu_accessible());
        // Bytes that are not a copy keep the memory.
        let held = if copied { 2 } else { 3 };
        assert_eq!(Arc::strong_count(&memory), held, "{location}");
    }
}

#[test]
fn write_fills_slice_from_parts() {
    for location in [MemoryLocation::CPU, MemoryLocation::gpu(0)] {
        let memory = placed(&[0; 8], location, true);
        let slice = PlacedSlice::new(&memory, 1, 6).unwrap();
        slice.write(&[b"ab", b"", b"cde"]).unwrap();
        let all = PlacedSlice::new(&memory, 0, 8).unwrap().to_cpu().unwrap();
        assert_eq!(all, &b"\0abcde\0\0"[..], "{location}");
    }
}

#[test]
fn copy_of_faulty_memory_is_an_error() {
    let owner = TestMemory::new(b"abcd");
    let memory = owner.place(MemoryLocation::CPU, true);
    let slice = PlacedSlice::new(&memory, 0, 4).unwrap();
    assert_eq!(slice.to_cpu().unwrap(), "abcd");
    owner.fail("region 'r' was truncated");
    assert_eq!(slice.to_cpu().unwrap_err().message, "region 'r' was truncated");
}

#[test]
fn destination_gives_its_beginning_or_names_both_sizes() {
    let memory = placed(&[0; 10], MemoryLocation::CPU, true);
    let destination = OutputMemory::new(PlacedSlice::new(&memory, 4, 6).unwrap());
    for len in [0, 5, 6] {
        let slice = destination.take("O", len).unwrap();
        assert_eq!((slice.offset(), slice.len()), (4, len));
    }
    let error = destination.take("O", 7).unwrap_err();
    assert_eq!(error.code, trtserver_base::error::Code::Internal);
    assert_eq!(
        error.message,
        "shared memory size specified with the request for output 'O' (6 bytes) should be at least 7 bytes to hold the results"
    );
}
