//! Unit tests of `priority.rs`.

use super::*;

#[test]
fn niceness_follows_the_configuration() {
    for (text, alone, beside_max) in [
        ("", 0, 5),
        ("optimization {}", 0, 5),
        ("optimization { priority: PRIORITY_MAX }", 0, 0),
        ("optimization { priority: PRIORITY_MIN }", 19, 19),
        ("optimization { priority: 77 }", 0, 5),
    ] {
        let Ok(config) = trtserver_proto::text::parse::<ModelConfig>(text) else {
            assert!(text.contains("77"), "{text}");
            continue;
        };
        let priority = InstancePriority::from_config(&config);
        assert_eq!([false, true].map(|m| priority.nice(m)), [alone, beside_max], "{text}");
    }
}

#[test]
fn niceness_is_set_for_one_thread() {
    let before = rustix::process::getpriority_process(None).unwrap();
    let there = std::thread::spawn(|| set_niceness(19)).join().unwrap();
    assert_eq!(there, 19);
    assert_eq!(rustix::process::getpriority_process(None).unwrap(), before);
}
