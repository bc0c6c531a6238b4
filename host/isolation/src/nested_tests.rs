//! Unit tests of `nested.rs`.

use super::super::messages::{EmptyMessage, NamedTensor};
use super::super::wire::{MAX_MESSAGE, socket_pair};
use super::*;
use std::process::Command;
use trtserver_request::unread::UnreadAccount;

/// The host's way to a child, and the child's end.
fn link() -> (Arc<ChildLink>, Receiver) {
    let mut child = Command::new("true").spawn().unwrap();
    let (process, _) = Process::fake(&child);
    child.wait().unwrap();
    let (ours, theirs) = socket_pair().unwrap();
    ours.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
    (Arc::new(ChildLink { process, sender: split_socket(ours).0 }), split_socket(theirs).1)
}

fn data(bytes: usize) -> NestedData {
    let tensor = NamedTensor { data: vec![1; bytes].into(), ..Default::default() };
    NestedData { outputs: vec![tensor], params: Vec::new() }
}

fn received(child: &mut Receiver) -> ReceiveOutcome<NestedReply> {
    child.receive().unwrap()
}

#[test]
fn response_too_long_for_a_message_fails_its_request() {
    let (link, mut child) = link();
    let reply = NestedReply { number: 3, version: 1, ..Default::default() };
    link.send(Ok((Some(data(MAX_MESSAGE)), None)), reply);
    let ReceiveOutcome::Message(reply) = received(&mut child) else { panic!("no reply") };
    assert_eq!((reply.number, reply.last, reply.data), (3, true, None));
    let failure = facts::failure_error(&reply.failure.unwrap());
    assert_eq!(failure.code, Code::InvalidArg);
    assert!(failure.message.contains("too long"), "{failure}");
}

/// What follows a part of a message would be read as its rest.
#[test]
fn reply_that_was_sent_in_part_ends_the_connection() {
    let (link, mut child) = link();
    // Nobody reads, so the write times out.
    link.send(Ok((Some(data(8 << 20)), None)), NestedReply::default());
    link.reply(2, Ok((None, None)));
    assert_eq!(received(&mut child), ReceiveOutcome::Closed);
}

/// Counts what was released.
#[derive(Default)]
struct Account(AtomicUsize);

impl UnreadAccount for Account {
    fn release(&self, bytes: usize, _: bool) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[test]
fn responses_count_until_their_handler_has_received_them() {
    let (link, mut child) = link();
    let calls = NestedCalls::new(&link);
    calls.open.lock().insert(1, OpenRequest::default());
    let open = Arc::clone(&calls.open);
    let forward = ResponseForwarder { link: Arc::clone(&link), open, number: 1 };
    let account = Arc::new(Account::default());
    let mut deliver = |bytes: usize, last: bool| {
        let unread = UnreadResponse::new(Arc::clone(&account) as _, bytes);
        let response = InferResponse { unread: Some(Box::new(unread)), ..Default::default() };
        forward.deliver(5, Ok(Some(response)), last);
        let ReceiveOutcome::Message(reply) = received(&mut child) else { panic!("no reply") };
        assert_eq!((reply.version, reply.last), (5, last));
        reply.counted
    };
    let receive = || {
        let kind = Some(nested_call::CallKind::Received(EmptyMessage {}));
        calls.call(NestedCall { number: 1, kind });
        account.0.load(Ordering::Relaxed)
    };
    assert!(deliver(10, false));
    assert!(deliver(200, false));
    assert_eq!(account.0.load(Ordering::Relaxed), 0);
    assert_eq!(receive(), 10);
    // The last response releases all: nothing follows that it could delay.
    assert!(!deliver(3000, true));
    assert_eq!(account.0.load(Ordering::Relaxed), 3210);
    assert_eq!(receive(), 3210);
}

#[test]
fn load_and_unload_requests_of_a_child_are_limited() {
    let (link, mut child) = link();
    let calls = NestedCalls::new(&link);
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = Arc::new(Mutex::new(wait));
    for number in 0..=MAX_CHANGES as u64 {
        let wait = Arc::clone(&wait);
        calls.change(number, move || {
            wait.lock().recv().unwrap();
            Ok(())
        });
    }
    let refused = |received: ReceiveOutcome<NestedReply>| match received {
        ReceiveOutcome::Message(NestedReply { number, failure, .. }) => (number, failure.is_some()),
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(received(&mut child)), (MAX_CHANGES as u64, true));
    (0..MAX_CHANGES).for_each(|_| release.send(()).unwrap());
    for _ in 0..MAX_CHANGES {
        assert!(!refused(received(&mut child)).1);
    }
    assert_eq!(calls.changes.load(Ordering::Relaxed), 0);
}
