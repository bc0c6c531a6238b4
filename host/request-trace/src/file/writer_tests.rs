//! Unit tests of `writer.rs`.

use super::*;

fn text(text: &str) -> FileText {
    FileText::Append(text.to_owned())
}

#[test]
fn the_file_is_a_whole_array_after_each_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t");
    let file = TraceFile::new(&path);
    assert!(!path.exists(), "it is created with the first trace");
    file.write(text("{\"a\":1}"));
    file.write(text("2,3"));
    file.write(FileText::Numbered("4".to_owned()));
    file.write(FileText::Numbered("5".to_owned()));
    file.stop(Instant::now() + Duration::from_secs(20));
    let read = |path: &Path| {
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap().to_string()
    };
    assert_eq!(read(&path), "[{\"a\":1},2,3]");
    assert_eq!(read(&folder.path().join("t.0")), "[4]");
    assert_eq!(read(&folder.path().join("t.1")), "[5]");
    assert_eq!(file.dropped(), 0);
}

#[test]
fn a_disk_that_fails_is_counted_and_holds_up_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = TraceFile::new(&folder.path().join("absent/t"));
    for _ in 0..3 {
        file.write(text("1"));
    }
    file.stop(Instant::now() + Duration::from_secs(20));
    assert_eq!(file.dropped(), 3);
}
