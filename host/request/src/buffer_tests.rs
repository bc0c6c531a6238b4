//! Unit tests of `buffer.rs`.

use super::*;
use trtserver_base::ledger::LedgerOwner;

#[test]
fn buffers_are_aligned_and_zeroed() {
    for len in [0, 1, 64, 100_000] {
        let mut buf = AlignedBuf::try_new(len, LedgerHolder::WarmUp).unwrap();
        assert_eq!(buf.as_mut_ptr() as usize % ALIGN, 0);
        assert_eq!(buf.into_bytes(), vec![0; len]);
    }
    for len in [pool::MIN_SIZE, 3 << 20] {
        let mut used = AlignedBuf::copy_parts(&[&vec![7; len]], LedgerHolder::Control);
        drop(used);
        used = AlignedBuf::zeroed(len, LedgerHolder::Output).unwrap();
        assert!(used.as_ref().iter().all(|byte| *byte == 0), "exposes data of another request");
    }
    assert!(AlignedBuf::try_new(usize::MAX, LedgerHolder::WarmUp).is_none());
    assert!(AlignedBuf::try_new(isize::MAX as usize - 100, LedgerHolder::WarmUp).is_none());
    assert_eq!(
        AlignedBuf::copy_parts(&[b"ab", b"", b"c"], LedgerHolder::Control).into_bytes(),
        "abc".as_bytes()
    );
}

#[test]
fn small_tensors_of_requests_are_pieces_of_a_block() {
    let small = |byte: u8| {
        let mut small = AlignedBuf::zeroed(100, LedgerHolder::Output).unwrap();
        assert_eq!((small.len(), small.as_mut_ptr() as usize % ALIGN), (100, 0));
        assert_eq!(small.as_ref(), [0; 100], "exposes data of another request");
        small.as_mut().fill(byte);
        small
    };
    let (first, second) = (small(1), small(2));
    assert_eq!(second.as_ref().as_ptr().addr() - first.as_ref().as_ptr().addr(), 2 * ALIGN);
    let first = first.into_bytes();
    let copy = AlignedBuf::try_copy(None, &[b"ab", b"", b"c"], LedgerHolder::Input).unwrap();
    assert_eq!((first, second.into_bytes()), ([1; 100][..].into(), [2; 100][..].into()));
    assert_eq!(copy.into_bytes(), "abc".as_bytes());
}

#[test]
fn large_buffers_are_drawn_from_the_budget() {
    let mut large = AlignedBuf::zeroed(pool::MIN_SIZE, LedgerHolder::Input).unwrap();
    assert_eq!(large.reservation().map(|r| r.bytes()), Some(pool::MIN_SIZE));
    let mut small = AlignedBuf::zeroed(pool::MIN_SIZE - 1, LedgerHolder::Input).unwrap();
    assert!(small.reservation().is_none());
    let mut input = AlignedBuf::try_for_input(None, pool::MIN_SIZE, LedgerHolder::Input).unwrap();
    assert_eq!(input.reservation().map(|r| r.bytes()), Some(0));
    let too_large = AlignedBuf::unwritten(usize::MAX, LedgerHolder::Input);
    assert!(too_large.is_err());
}

#[test]
fn small_blocks_are_entered_in_the_ledger() {
    let owner = LedgerOwner::version("small tensors", 1);
    let block = AlignedBuf::zeroed(2000, owner.tag(LedgerHolder::Output)).unwrap();
    // A piece of the thread's block, which many tensors share.
    let piece = AlignedBuf::zeroed(100, owner.tag(LedgerHolder::Output)).unwrap();
    let copy = AlignedBuf::copy_parts(&[&[1; 30]], owner.tag(LedgerHolder::State)).into_bytes();
    // Inputs are added up from the requests.
    let input = AlignedBuf::unwritten(50, owner.tag(LedgerHolder::Input)).unwrap();
    let held = || {
        [LedgerHolder::Output, LedgerHolder::State, LedgerHolder::Input]
            .map(|h| owner.small_bytes(h))
    };
    assert_eq!(held(), [2000, 30, 0]);
    let kept = block.into_bytes().slice(10..20);
    std::thread::spawn(|| drop(copy)).join().unwrap();
    assert_eq!(held(), [2000, 0, 0]);
    drop((kept, input, piece));
    assert_eq!((held(), owner.total()), ([0, 0, 0], 0));
}
