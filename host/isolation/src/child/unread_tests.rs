//! Unit tests of `unread.rs`.

use super::*;
use trtserver_base::ledger::LedgerHolder;
use trtserver_request::buffer::AlignedBuf;

fn output(slot: u32) -> OutputMessage {
    OutputMessage { slot, bytes: 1000, ..OutputMessage::default() }
}

#[test]
fn blocks_count_until_the_host_releases_them() {
    let arena = Arena::new("test", 1 << 20).unwrap();
    let streams = Streams::new(false);
    let message = RequestStream { number: 7, limit: 2000, waits: true, timeout_ms: 20 };
    let stream = streams.enter(&message, &arena);
    assert!(Arc::ptr_eq(&stream.stream, &streams.enter(&message, &arena).stream));
    let token = CancelToken::default();
    let admit = |wait| Arc::clone(&stream).admit(1000 + RESPONSE_OVERHEAD, wait, &token);
    let block =
        AlignedBuf::try_for_input(Some(&arena), 1000, LedgerHolder::Input).unwrap().into_bytes();
    let other =
        AlignedBuf::try_for_input(Some(&arena), 1000, LedgerHolder::Input).unwrap().into_bytes();
    let slots = [&block, &other].map(|block| arena.share(block).unwrap().slot);
    for slot in slots {
        let admitted = admit(false).unwrap();
        stream.share(&[output(slot)]);
        drop(admitted);
    }
    let unread = 2 * (1000 + RESPONSE_OVERHEAD) as u64;
    assert_eq!(stream.backlog(), UnreadBacklog { bytes: unread, responses: 2, limit: 2000 });
    assert_eq!(admit(false).unwrap_err().code, Code::ResourceExhausted);
    assert!(admit(true).unwrap_err().message.contains("read nothing for 20ms"));
    arena.unshare(slots[0]);
    assert!(admit(true).is_ok());
    assert_eq!(stream.backlog().responses, 1);
    token.cancel();
    assert_eq!(admit(true).unwrap_err().code, Code::Cancelled);
}

#[test]
fn earlier_request_does_not_wait_for_responses_that_are_held_back() {
    let arena = Arena::new("test", 1 << 20).unwrap();
    let streams = Streams::new(true);
    let message = RequestStream { number: 7, limit: 1000, waits: true, timeout_ms: 20 };
    let [first, second] = [(); 2].map(|()| streams.enter(&message, &arena));
    let token = CancelToken::default();
    let block =
        || AlignedBuf::try_for_input(Some(&arena), 1000, LedgerHolder::Input).unwrap().into_bytes();
    let blocks = [block(), block()];
    let slots = blocks.each_ref().map(|block| arena.share(block).unwrap().slot);
    let send = |request: &Arc<StreamRequest>, slot| {
        let admitted = Arc::clone(request).admit(1000, true, &token).unwrap();
        request.share(&[output(slot)]);
        drop(admitted);
    };
    send(&second, slots[1]);
    // The limit is reached, by responses that the client gets after those of the first request.
    send(&first, slots[0]);
    let waits = |request: &Arc<StreamRequest>| Arc::clone(request).admit(1000, true, &token);
    for request in [&first, &second] {
        let why = waits(request).unwrap_err().message;
        assert!(why.contains("read nothing for 20ms, or waits for an earlier request"), "{why}");
    }
    arena.unshare(slots[0]);
    assert!(waits(&first).is_ok());
}
