//! Unit tests of `message_buf.rs`.

use super::*;
use trtserver_base::ledger::LedgerHolder;

#[test]
fn version_is_read_behind_the_name() {
    let long_number = [&b"\x0a\x01m\x10"[..], &[0xff; 9], &[1]].concat();
    for (message, version) in [
        (&b"\x0a\x01m\x12\x0212"[..], Some(12)),
        (b"\x0a\x01m\x12\x00", None),
        (b"\x0a\x01m\x12\x01x", None),
        (b"\x0a\x01m\x12\x0512", None),
        (b"\x0a\x01m\x10\x83\x01\x22", Some(131)),
        (&long_number, Some(-1)),
        (b"\x0a\x01m\x10\x83", None),
        (b"\x0a\x01m\x22\x01x", None),
        (b"\x0a\x01m", None),
    ] {
        let mut frames = MessageBuf::default();
        frames.push(Bytes::copy_from_slice(message));
        let want = RequestedModel { name: "m", version };
        assert_eq!(frames.model(), Some(want), "{message:?}");
    }
}

#[test]
fn first_text_names_the_model_and_large_tensors_go_to_the_arena() {
    let mut frames = MessageBuf::default();
    assert_eq!(frames.first_text(), None);
    let block =
        AlignedBuf::copy_parts(&[b"\x0a\x03abc...", &[7; 2000]], LedgerHolder::Input).into_bytes();
    frames.push(block.clone());
    frames.seal();
    assert_eq!(frames.first_text(), Some("abc"));
    frames.advance(8);
    let arena = Arena::new("test", 1 << 20).unwrap();
    let mut shared = frames.clone();
    shared.copy_into(Arc::clone(&arena));
    let (here, there) = (frames.copy_to_bytes(1000), shared.copy_to_bytes(1000));
    assert_eq!(here.as_ptr(), block[8..].as_ptr());
    assert!(arena.find_offset(&there).is_some());
    assert_eq!(here, there);
    // Small ones are found where they are.
    assert!(arena.find_offset(&shared.copy_to_bytes(8)).is_none());
    for damaged in [&b"\x0a"[..], b"\x0a\x05abc", b"\x0a\x85abc", b"\x12\x01a", b"\x0a\x01\xff"] {
        let mut frames = MessageBuf::default();
        frames.push(Bytes::from_static(damaged));
        assert_eq!(frames.first_text(), None, "{damaged:?}");
    }
}
