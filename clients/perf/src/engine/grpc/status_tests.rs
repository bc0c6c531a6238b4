//! Unit tests of `status.rs`.

use super::HeaderInfo;
use trtserver_client::http2::headers::HeaderBlock;

#[test]
fn status_and_message_are_read() {
    let read = |fields: &[(&str, &str)]| {
        let mut info = HeaderInfo::default();
        fields.iter().for_each(|(name, value)| info.take(name.as_bytes(), value.as_bytes()));
        (info.http_status, info.grpc_status, info.message)
    };
    let head = [(":status", "200"), ("content-type", "application/grpc")];
    assert_eq!(read(&head), (Some(200), None, String::new()));
    assert_eq!(read(&[("grpc-status", "0")]), (None, Some(0), String::new()));
    let failed = [("grpc-status", "5"), ("grpc-message", "no model%3A 100%, %c3%a4")];
    assert_eq!(read(&failed), (None, Some(5), "no model: 100%, ä".to_owned()));
}
