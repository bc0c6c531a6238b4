//! Unit tests of `peer.rs`.

use super::*;

#[test]
fn addresses_name_both_ports() {
    let (http, grpc) = parse("127.0.0.1:8000,8001").unwrap();
    assert_eq!((http.port(), grpc.unwrap().port()), (8000, 8001));
    assert!(parse("127.0.0.1:8000").unwrap().1.is_none());
    assert!(parse("127.0.0.1").unwrap_err().contains("expected HOST:PORT[,GRPCPORT]"));
    assert!(parse("127.0.0.1:8000,x").is_err());
}

#[test]
fn a_listener_is_found_by_its_port() {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = socket.local_addr().unwrap().port();
    assert_eq!(listener(port), Some(std::process::id()));
    drop(socket);
    assert_eq!(listener(port), None);
}
