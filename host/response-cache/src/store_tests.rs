//! Unit tests of `store.rs` and of its entries: bytes, lifetimes, closed versions.

use super::*;
use crate::cached_response::{ENTRY_BYTES, OUTPUT_BYTES, ResponseParts};
use bytes::Bytes;
use trtserver_base::ledger::{LedgerHolder, LedgerOwner};
use trtserver_request::{DType, OutputTensor};

fn parts(bytes: &[u8]) -> ResponseParts {
    let output = |name: &str, bytes: &[u8]| OutputTensor {
        name: name.into(),
        dtype: DType::Uint8,
        shape: [bytes.len() as i64].into_iter().collect(),
        data: Bytes::copy_from_slice(bytes).into(),
    };
    let outputs = [output("empty", &[]), output("A", bytes), output("B", &bytes[1..])];
    ResponseParts { outputs: outputs.into_iter().collect(), parameters: Vec::new() }
}

fn entry(bytes: &[u8], version: u64, expires_ns: u64) -> CachedResponse {
    let tag = LedgerOwner::SERVER.tag(LedgerHolder::ResponseCache);
    CachedResponse::copy(&parts(bytes), version, expires_ns, tag).unwrap()
}

#[test]
fn entries_are_aligned_copies() {
    let entry = entry(&[1, 2, 3], 1, u64::MAX);
    let response = entry.response();
    let data: Vec<&[u8]> = response.outputs.iter().map(|o| &o.data.payload()[..]).collect();
    assert_eq!(data, [&[][..], &[1, 2, 3], &[2, 3]]);
    for output in &response.outputs[1..] {
        assert!(output.data.as_ptr().addr().is_multiple_of(64));
    }
    assert_eq!(entry.weight, ENTRY_BYTES + 3 * (OUTPUT_BYTES + 8) + 2 * 64);
}

#[test]
fn entries_expire() {
    let second = 1_000_000_000;
    for (ttl, made, asked, want) in [
        (None, 5, u64::MAX - 1, true),
        (Some(2.0), 5, 5, true),
        (Some(2.0), 5, 4 + 2 * second, true),
        (Some(2.0), 5, 5 + 2 * second, false),
        (Some(0.001), 5, 1_000_005, false),
    ] {
        let store = ResponseStore::new(10_000, ttl.map(Duration::from_secs_f64)).unwrap();
        let key = RequestKey(3);
        store.insert(key, entry(b"ab", 1, store.expiry(made)));
        assert_eq!(store.get(key, asked).is_some(), want, "{ttl:?} {asked}");
        assert_eq!(store.usage().entries, u64::from(want), "an expired entry stays");
    }
}

#[test]
fn bytes_are_bounded() {
    let store = ResponseStore::new(20_000, None).unwrap();
    let weight = parts(&[0; 1000]).weight();
    for i in 0..200u128 {
        store.insert(RequestKey(i), entry(&[i as u8; 1000], 1, u64::MAX));
        let usage = store.usage();
        assert!(usage.bytes <= 20_000, "{usage:?}");
        assert_eq!(usage.bytes, usage.entries * weight);
    }
    let usage = store.usage();
    assert!(usage.entries >= 20_000 / weight - 1, "{usage:?}");
    assert_eq!(usage.evictions, 200 - usage.entries);
    // What is there is what was put under that key.
    for i in 0..200u128 {
        if let Some(entry) = store.get(RequestKey(i), 0) {
            assert_eq!(entry.response().outputs[1].data.payload()[..], [i as u8; 1000]);
        }
    }
}

#[test]
fn large_responses_are_not_admitted() {
    let store = ResponseStore::new(1000, None).unwrap();
    assert_eq!(store.admits(970), Ok(()));
    assert_eq!(store.admits(971), Err(TooLarge { bytes: 971, largest: 970 }));
}

#[test]
fn closed_version_leaves_nothing() {
    let store = ResponseStore::new(100_000, None).unwrap();
    for i in 0..10u128 {
        store.insert(RequestKey(i), entry(b"ab", 1 + i as u64 % 2, u64::MAX));
    }
    store.remove_version(1);
    assert_eq!(store.usage().entries, 5);
    assert!(store.get(RequestKey(0), 0).is_none() && store.get(RequestKey(1), 0).is_some());
}

#[test]
fn ledger_knows_the_entries() {
    let owner = LedgerOwner::version("cached", 1);
    let tag = owner.tag(LedgerHolder::ResponseCache);
    let large = vec![7; 100_000];
    let entry = CachedResponse::copy(&parts(&large), 1, u64::MAX, tag).unwrap();
    assert!(owner.bytes(LedgerHolder::ResponseCache) >= 200_000);
    drop(entry);
    assert_eq!(owner.bytes(LedgerHolder::ResponseCache), 0);
}
