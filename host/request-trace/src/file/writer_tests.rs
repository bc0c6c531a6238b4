//! Unit tests of `writer.rs`.

use super::*;

fn records(text: &str) -> TraceText {
    TraceText { text: text.to_owned(), traces: 2 }
}

fn text(text: &str) -> FileText {
    FileText::Append(records(text))
}

#[test]
fn the_file_is_a_whole_array_after_each_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let stats = Arc::default();
    let file = TraceFile::new(&path, Arc::clone(&stats));
    assert!(!path.exists(), "it is created with the first trace");
    file.write(text("{\"a\":1}"));
    file.write(text("2,3"));
    file.write(FileText::Numbered(records("4")));
    file.write(FileText::Numbered(records("5")));
    file.stop(Instant::now() + Duration::from_secs(20));
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string()
    };
    assert_eq!(read(&path), "[{\"a\":1},2,3]");
    assert_eq!(read(&folder.path().join("t.0")), "[4]");
    assert_eq!(read(&folder.path().join("t.1")), "[5]");
    assert_eq!(stats.all_dropped(), 0);
    assert_eq!(file.shared.queued_bytes.load(Relaxed), 0);
}

#[test]
fn a_disk_that_fails_is_counted_and_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let stats = Arc::default();
    let file = TraceFile::new(&folder.path().join("absent/t"), Arc::clone(&stats));
    for _ in 0..3 {
        file.write(text("1"));
    }
    file.stop(Instant::now() + Duration::from_secs(20));
    assert_eq!(stats.dropped(TraceDrop::WriteFailed), 6);
    assert_eq!(file.shared.queued_bytes.load(Relaxed), 0);
}

#[test]
fn texts_that_wait_are_joined() {
    let (sender, queue) = sync_channel(10);
    for waiting in [text("2"), text("3"), FileText::Numbered(records("4")), text("5")] {
        sender.send(waiting).unwrap();
    }
    let mut waiting = 1;
    let (joined, next) = join_appended(text("1"), &queue, &mut waiting);
    let FileText::Append(joined) = joined else { panic!("{joined:?}") };
    assert_eq!((&*joined.text, joined.traces, waiting), ("1,2,3", 6, 3));
    assert!(matches!(next, Some(FileText::Numbered(_))));
    let (first, next) = join_appended(text("5"), &queue, &mut waiting);
    let FileText::Append(joined) = first else { panic!("{first:?}") };
    assert_eq!((&*joined.text, next.is_none()), ("5,5", true));
}
