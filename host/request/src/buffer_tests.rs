//! Unit tests of `buffer.rs`.

use super::*;
use trtserver_base::ledger::{Holder, Owner};

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

#[test]
fn small_blocks_are_entered_in_the_ledger() {
    let owner = Owner::version("small tensors", 1);
    let block = AlignedBuf::zeroed(100, owner.tag(Holder::Output)).unwrap();
    let copy = AlignedBuf::copy_of(&[&[1; 30]], owner.tag(Holder::State)).into_bytes();
    // Inputs are added up from the requests.
    let input = AlignedBuf::unwritten(50, owner.tag(Holder::Input)).unwrap();
    let held = || [Holder::Output, Holder::State, Holder::Input].map(|h| owner.small_bytes(h));
    assert_eq!(held(), [100, 30, 0]);
    let kept = block.into_bytes().slice(10..20);
    std::thread::spawn(|| drop(copy)).join().unwrap();
    assert_eq!(held(), [100, 0, 0]);
    drop((kept, input));
    assert_eq!((held(), owner.total()), ([0, 0, 0], 0));
}
