//! Unit tests of `access_log.rs`.

use super::*;
use http::{Method, Uri};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::io::Read;
use std::time::SystemTime;

const LONG: Duration = Duration::from_secs(20);

fn record(number: u64) -> AccessRecord {
    AccessRecord {
        time: SystemTime::now(),
        wire: "http",
        method: Method::GET,
        uri: Uri::from_static("/v2"),
        peer: "unix".into(),
        caller: None,
        request_id: None,
        trace_id: None,
        inference: None,
        status: Some(200),
        disconnected: false,
        bytes: None,
        total_us: number,
        error: None,
    }
}

fn numbers(text: &str) -> Vec<u64> {
    let number = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["total_us"].as_u64().unwrap()
    };
    text.lines().map(number).collect()
}

#[test]
fn lines_are_appended_in_order_and_written_at_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("access.jsonl");
    for first in [0, 1000] {
        let log = AccessLog::open(&path).unwrap();
        (first..first + 1000).for_each(|number| log.record(record(number)));
        log.shut_down(LONG);
        assert_eq!(log.stats().written(), 1000);
        log.record(record(0));
        assert_eq!(log.stats().dropped(LineDrop::QueueFull), 1, "after its end");
    }
    let expected: Vec<u64> = (0..2000).collect();
    assert_eq!(numbers(&fs::read_to_string(&path).unwrap()), expected);
}

#[test]
fn a_renamed_file_is_left_on_demand() {
    let dir = tempfile::tempdir().unwrap();
    let (path, old) = (dir.path().join("log"), dir.path().join("log.1"));
    let log = AccessLog::open(&path).unwrap();
    log.record(record(1));
    let begun = Instant::now();
    while log.stats().written() < 1 {
        assert!(begun.elapsed() < LONG, "nothing is written");
        std::thread::yield_now();
    }
    fs::rename(&path, &old).unwrap();
    log.reopen();
    log.record(record(2));
    log.shut_down(LONG);
    assert_eq!(numbers(&fs::read_to_string(&old).unwrap()), [1]);
    assert_eq!(numbers(&fs::read_to_string(&path).unwrap()), [2]);
}

#[test]
fn a_reader_that_stalls_costs_lines_and_no_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pipe");
    mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    // Open for both, so that nobody waits for the other end.
    let mut reader = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    let log = AccessLog::open(&path).unwrap();
    let begun = Instant::now();
    let total = 20_000;
    (0..total).for_each(|number| log.record(record(number)));
    assert!(begun.elapsed() < LONG, "a request waited for the reader");
    let dropped = log.stats().dropped(LineDrop::QueueFull);
    assert!(dropped >= total - MAX_QUEUED as u64 - 1000, "{dropped} dropped");
    let begun = Instant::now();
    log.shut_down(Duration::from_millis(20));
    assert!(begun.elapsed() < LONG, "the end waited for the reader");
    // What was not dropped comes when the reader goes on.
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    while text.iter().filter(|byte| **byte == b'\n').count() < (total - dropped) as usize {
        let count = reader.read(&mut part).unwrap();
        text.extend_from_slice(&part[..count]);
    }
}

#[test]
fn files_that_cannot_be_opened_or_written() {
    let error = AccessLog::open(Path::new("/no/such/dir/log")).unwrap_err();
    assert!(error.contains("--access-log") && error.contains("/no/such/dir/log"), "{error}");
    let full = AccessLog::open(Path::new("/dev/full")).unwrap();
    full.record(record(1));
    full.shut_down(LONG);
    assert_eq!(full.stats().dropped(LineDrop::WriteFailed), 1);
}
