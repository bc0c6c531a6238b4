//! Unit tests of `tensor_data.rs`.

use super::*;
use crate::memory::PlacedMemory;
use crate::testing::placed;
use crate::{DType, InputTensor, OutputTensor, RequestedOutput, Shape};
use std::mem::size_of;
use std::sync::Arc;

#[test]
fn placed_data_does_not_enlarge_tensors() {
    assert_eq!(size_of::<TensorData>(), size_of::<Bytes>());
    let parts = size_of::<(usize, DType, Shape, Bytes)>();
    assert_eq!(size_of::<InputTensor>(), parts);
    assert_eq!(size_of::<OutputTensor>(), size_of::<(Arc<str>, DType, Shape, Bytes)>());
    assert_eq!(size_of::<Option<OutputTensor>>(), size_of::<OutputTensor>());
    assert_eq!(size_of::<RequestedOutput>(), 16);
}

fn whole(memory: &Arc<PlacedMemory>) -> TensorData {
    PlacedSlice::new(memory, 0, memory.len()).unwrap().into()
}

#[test]
fn data_is_found_where_it_lies() {
    let cpu = TensorData::from(b"abc".to_vec());
    let shared = whole(&placed(b"abc", MemoryLocation::CPU, true));
    let gpu = whole(&placed(b"abc", MemoryLocation::gpu(2), false));
    assert_eq!(cpu.cpu().unwrap(), "abc");
    assert_eq!((shared.cpu(), gpu.cpu()), (None, None));
    let readable = [&cpu, &shared, &gpu].map(|data| data.readable().map(<[u8]>::to_vec));
    assert_eq!(readable, [Some(b"abc".to_vec()), Some(b"abc".to_vec()), None]);
    for data in [&cpu, &shared, &gpu] {
        assert_eq!((data.len(), data.is_empty()), (3, false));
        assert_eq!(data.to_cpu().unwrap(), "abc");
        assert_eq!(data.slice(1..3).to_cpu().unwrap(), "bc");
        assert_eq!(data.slice(1..3).as_ptr().addr(), data.as_ptr().addr() + 1);
    }
    assert_eq!(gpu.location(), MemoryLocation::gpu(2));
    // A response has nothing to send for tensors in placed memory.
    assert_eq!([&cpu, &shared, &gpu].map(|data| data.payload().len()), [3, 0, 0]);
}

#[test]
fn placed_data_equals_data_of_the_same_range_only() {
    let memory = placed(b"abab", MemoryLocation::CPU, true);
    let range = |range| whole(&memory).slice(range);
    assert_eq!(range(0..2), range(0..2));
    assert_ne!(range(0..2), range(2..4));
    assert_ne!(range(0..2), TensorData::from(b"ab".to_vec()));
    assert_eq!(TensorData::from(b"ab".to_vec()), TensorData::from(b"ab".to_vec()));
}
