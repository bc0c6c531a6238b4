//! Unit tests of `buffer.rs`.

use super::*;
use crate::ledger::Holder;

#[test]
fn buffers_are_aligned_and_zeroed() {
    for len in [0, 1, 64, 100_000] {
        let mut buf = AlignedBuf::try_new(len, Holder::WarmUp).unwrap();
        assert_eq!(buf.as_mut_ptr() as usize % ALIGN, 0);
        assert_eq!(buf.into_bytes(), vec![0; len]);
    }
    for len in [pool::MIN_SIZE, 3 << 20] {
        let mut used = AlignedBuf::copy_of(&[&vec![7; len]], Holder::Control);
        drop(used);
        used = AlignedBuf::zeroed(len, Holder::Output).unwrap();
        assert!(used.as_ref().iter().all(|byte| *byte == 0), "exposes data of another request");
    }
    assert!(AlignedBuf::try_new(usize::MAX, Holder::WarmUp).is_none());
    assert!(AlignedBuf::try_new(isize::MAX as usize - 100, Holder::WarmUp).is_none());
    assert_eq!(
        AlignedBuf::copy_of(&[b"ab", b"", b"c"], Holder::Control).into_bytes(),
        "abc".as_bytes()
    );
}

#[test]
fn large_buffers_are_drawn_from_the_budget() {
    let mut large = AlignedBuf::zeroed(pool::MIN_SIZE, Holder::Input).unwrap();
    assert_eq!(large.reservation().map(|r| r.bytes()), Some(pool::MIN_SIZE));
    let mut small = AlignedBuf::zeroed(pool::MIN_SIZE - 1, Holder::Input).unwrap();
    assert!(small.reservation().is_none());
    let mut input = AlignedBuf::try_for_input(None, pool::MIN_SIZE, Holder::Input).unwrap();
    assert_eq!(input.reservation().map(|r| r.bytes()), Some(0));
    let too_large = AlignedBuf::unwritten(usize::MAX, Holder::Input);
    assert!(too_large.is_err());
}
