//! Unit tests of `wire.rs`.

use super::*;
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
