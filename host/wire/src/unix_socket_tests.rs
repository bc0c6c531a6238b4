//! Unit tests of `net/unix_socket`: files at the path of a socket.

use super::*;
use std::os::unix::net::UnixStream;

#[test]
fn socket_file_is_replaced_only_if_no_process_listens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    // As a killed server leaves it.
    drop(UnixListener::bind(&path).unwrap());
    let (live, file) = listen_unix(&path, 1).unwrap();
    for _ in 0..2 {
        // The second call finds the backlog full.
        let error = listen_unix(&path, 1).err().expect("the socket is in use");
        assert_eq!(error.to_string(), "a running process listens on this socket");
    }
    drop(live);
    drop(file);
    assert!(!path.exists());

    fs::write(&path, "text").unwrap();
    let error = listen_unix(&path, 1).err().expect("a file is there");
    assert_eq!(error.to_string(), "the file exists and is not a socket");
    let error = listen_unix(&folder.path().join("none/s"), 1).err().expect("the folder is missing");
    assert!(error.to_string().contains("none"), "{error}");
}

#[test]
fn file_that_replaced_the_socket_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let (old, old_file) = listen_unix(&path, 1).unwrap();
    fs::rename(&path, folder.path().join("old")).unwrap();
    let (_new, _file) = listen_unix(&path, 1).unwrap();
    drop(old);
    drop(old_file);
    UnixStream::connect(&path).unwrap();
}
