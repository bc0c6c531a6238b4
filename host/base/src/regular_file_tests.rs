//! Unit tests of `regular_file.rs`.

use super::*;

#[test]
fn file_above_the_limit_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f");
    std::fs::write(&path, b"12345").unwrap();
    assert_eq!(read_regular_file(&path, 5).unwrap(), Ok(b"12345".to_vec()));
    assert_eq!(read_regular_file(&path, 4).unwrap(), Err(5));
    assert_eq!(
        read_regular_file(&dir.path().join("none"), 4).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn only_regular_files_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0)
        .unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for (path, found) in [
        (fifo.as_path(), "FIFO (named pipe)"),
        (&link, "character device"),
        (dir.path(), "directory"),
        (&socket, "socket"),
    ] {
        let error = read_regular_file(path, 100).unwrap_err().to_string();
        assert_eq!(error, format!("not a regular file but a {found}"));
    }
    let (file, link) = (dir.path().join("file"), dir.path().join("to_file"));
    std::fs::write(&file, b"x").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    assert_eq!(read_regular_file(&link, 1).unwrap(), Ok(b"x".to_vec()));
}
