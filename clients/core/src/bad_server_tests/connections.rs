//! Connections that are refused, silent or closed between requests.

use super::grpc::Grpc;
use super::{
    LIMIT, SHORT, Then, every_error, http_response, kinds, read_request, request, scripted,
    settings,
};
use crate::v2::{InferRequest, Input};
use crate::{Kind, Protocol, Settings, blocking};
use std::io::Write;
use std::net::TcpListener;
use std::time::Duration;
use trtserver_proto::v1::RequestStatusCode;

#[test]
fn refused_connection_names_the_url() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let errors = every_error(&settings(&address, protocol, LIMIT));
        assert_eq!(kinds(&errors), [Kind::Connect; 8]);
        assert_eq!(errors[0].message(), "cannot connect: Connection refused");
        let prefix = match protocol {
            Protocol::Http => "HTTP client failed: cannot connect",
            Protocol::Grpc => "GRPC client failed: 14: cannot connect",
        };
        assert!(errors[3].message().starts_with(prefix), "{}", errors[3]);
        assert_eq!(errors[3].v1_code(), RequestStatusCode::Internal);
    }
}

#[test]
fn unknown_host_is_a_connection_error() {
    let settings = Settings::new("host.invalid:1");
    let error = blocking::v2::BlockingClient::new(&settings).unwrap().is_live().unwrap_err();
    assert_eq!(error.kind(), Kind::Connect, "{error}");
    assert!(error.asked().contains("host.invalid:1"), "{error}");
}

#[test]
fn silent_server_is_left_at_the_deadline() {
    for response in ["", "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf"] {
        for protocol in [Protocol::Http, Protocol::Grpc] {
            let settings = settings(&scripted(response, Then::Hang), protocol, SHORT);
            let error = blocking::v2::BlockingClient::new(&settings)
                .unwrap()
                .infer(&request())
                .unwrap_err();
            if protocol == Protocol::Http || response.is_empty() {
                assert_eq!(error.kind(), Kind::DeadlineExceeded, "{error}");
            }
            assert!(error.asked().contains(&settings.url), "{error}");
        }
    }
}

#[test]
fn closed_idle_connection_is_replaced() {
    let metadata = http_response("200 OK", br#"{"name":"s","version":"1","extensions":[]}"#);
    let address = scripted(metadata, Then::Close);
    let client =
        blocking::v2::BlockingClient::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    for _ in 0..4 {
        assert_eq!(client.server_metadata().unwrap().name, "s");
    }
}

/// Responds to the requests of one connection until `requests` are served, closes it, and sends the
/// number of the connection.
fn keeping_alive(response: Vec<u8>, requests: usize) -> (String, std::sync::mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, closed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            for _ in 0..requests {
                read_request(&mut stream);
                stream.write_all(&response).unwrap();
            }
            drop(stream);
            let _ = sender.send(number);
        }
    });
    (address, closed)
}

#[test]
fn connection_is_kept_and_replaced_once_it_is_closed() {
    let body = br#"{"model_name":"m","outputs":[]}"#;
    let (address, closed) = keeping_alive(http_response("200 OK", body), 3);
    let client =
        blocking::v2::BlockingClient::new(&settings(&address, Protocol::Http, LIMIT)).unwrap();
    for number in 0..2 {
        for _ in 0..3 {
            client.infer(&request()).unwrap();
        }
        assert_eq!(closed.recv().unwrap(), number);
        // Only a connection that was idle for a while is looked at before it is used.
        std::thread::sleep(Duration::from_millis(210));
    }
}

#[test]
fn grpc_connection_that_the_server_ends_is_replaced() {
    let live = trtserver_proto::v2::ServerLiveResponse { live: true };
    let (address, end, endings) = Grpc::serve_until(vec![Grpc::message(&live)]);
    let client =
        blocking::v2::BlockingClient::new(&settings(&address, Protocol::Grpc, LIMIT)).unwrap();
    for _ in 0..2 {
        assert!(client.is_live().unwrap());
        end.notify_one();
        endings.recv_timeout(LIMIT).unwrap();
        std::thread::sleep(Duration::from_millis(210));
    }
}

#[test]
fn refused_connection_is_tried_again_as_often_as_the_settings_say() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let mut settings = settings(&address, Protocol::Http, LIMIT);
    settings.connect_retries = 2;
    let start = std::time::Instant::now();
    let error = blocking::v2::BlockingClient::new(&settings).unwrap().is_live().unwrap_err();
    assert_eq!(error.kind(), Kind::Connect, "{error}");
    assert!(start.elapsed() >= Duration::from_millis(50 + 100));
}

/// The caller may free its memory when the call returns, also if the server never read the request.
#[test]
fn borrowed_memory_is_released_at_the_deadline() {
    let data = vec![0_u8; 32 << 20];
    for protocol in [Protocol::Http, Protocol::Grpc] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let client =
            blocking::v2::BlockingClient::new(&settings(&address, protocol, SHORT)).unwrap();
        let borrow = crate::Borrow::new();
        // SAFETY: `data` outlives the call, which returns after the borrow was released.
        let tensor = unsafe { borrow.bytes(data.as_ptr(), data.len()) };
        let input = Input::new("IN", "UINT8", [data.len() as i64], tensor);
        let error = client.infer_borrowed(InferRequest::new("m").input(input), &borrow);
        assert_eq!(error.unwrap_err().kind(), Kind::DeadlineExceeded);
        assert!(borrow.is_released());
    }
}
