//! Unit tests of `wire.rs`.

use super::*;
use crate::messages::CancelMessage;
use std::io::{Read, Seek, Write};
use std::os::fd::AsFd;

#[test]
fn messages_and_files_arrive_in_order() {
    let (a, b) = socket_pair().unwrap();
    let (sender, mut receiver) = (split_socket(a).0, split_socket(b).1);
    let large = "x".repeat(300_000);
    let thread = std::thread::spawn(move || {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        file.rewind().unwrap();
        sender.send(&"one".to_owned()).unwrap();
        sender.send_with(&large, &[file.as_fd()]).unwrap();
        sender.send(&String::new()).unwrap();
    });
    let mut next = || match receiver.receive::<String>().unwrap() {
        ReceiveOutcome::Message(text) => text,
        other => panic!("{other:?}"),
    };
    assert_eq!(next(), "one");
    assert_eq!(next().len(), 300_000);
    assert_eq!(next(), "");
    let mut text = String::new();
    std::fs::File::from(receiver.file().unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), receiver.file().is_none()), ("content", true));
    thread.join().unwrap();
    assert_eq!(receiver.receive::<String>().unwrap(), ReceiveOutcome::Closed);
}

#[test]
fn reports_timeouts_and_oversized_messages() {
    let (mut a, b) = socket_pair().unwrap();
    let mut receiver = split_socket(b).1;
    receiver.set_timeout(Some(Duration::from_millis(1))).unwrap();
    assert_eq!(receiver.receive::<String>().unwrap(), ReceiveOutcome::TimedOut);
    a.write_all(&u32::MAX.to_ne_bytes()).unwrap();
    assert!(receiver.receive::<String>().unwrap_err().message.contains("4294967295"));
    let (a, b) = socket_pair().unwrap();
    drop(b);
    assert!(split_socket(a).0.send(&"late".to_owned()).is_err());
}

/// A scrape asks for metrics while a cancellation is sent: neither may be lost.
#[test]
fn short_messages_of_several_threads_are_all_sent() {
    const THREADS: u64 = 4;
    const MESSAGES: u64 = 50;
    let (host, child) = socket_pair().unwrap();
    let ((sender, _), (_, mut receiver)) = (split_socket(host), split_socket(child));
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let sender = &sender;
                scope.spawn(move || {
                    for key in 0..MESSAGES {
                        let message = CancelMessage { ordinal: thread as u32, key };
                        assert!(sender.try_send(&message), "{message:?} was not sent");
                    }
                });
            }
        });
        for _ in 0..THREADS * MESSAGES {
            let received = receiver.receive::<CancelMessage>().unwrap();
            assert!(matches!(received, ReceiveOutcome::Message(_)), "{received:?}");
        }
    }
}

#[test]
fn short_message_is_not_sent_beside_one_that_waits_for_the_peer() {
    let (host, child) = socket_pair().unwrap();
    let ((sender, _), (_, mut receiver)) = (split_socket(host), split_socket(child));
    let short = CancelMessage { ordinal: 1, key: 2 };
    std::thread::scope(|scope| {
        let long = scope.spawn(|| sender.send(&vec![7_u8; 8 << 20]));
        while !sender.blocked.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        assert!(!sender.try_send(&short));
        let received = receiver.receive::<Vec<u8>>().unwrap();
        assert!(matches!(received, ReceiveOutcome::Message(bytes) if bytes.len() == 8 << 20));
        long.join().unwrap().unwrap();
    });
    assert!(sender.try_send(&short));
}
