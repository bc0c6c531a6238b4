//! Unit tests of `service_socket.rs`.

use super::*;

/// A socket with an abstract name, and its name as the variable has it.
fn listener(name: &str) -> (UnixDatagram, String) {
    let name = format!("trtserver-service-{name}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    socket.set_nonblocking(true).unwrap();
    (socket, format!("@{name}"))
}

fn received(socket: &UnixDatagram) -> Vec<String> {
    let mut bytes = [0; 256];
    let next =
        |_| socket.recv(&mut bytes).ok().map(|n| String::from_utf8_lossy(&bytes[..n]).into());
    let mut messages: Vec<String> = Vec::new();
    messages.extend((0..100).map_while(next));
    messages
}

#[test]
fn reload_before_readiness_is_not_reported_as_ready() {
    let (socket, name) = listener("reload");
    let service = ServiceSocket::new(Some(OsStr::new(&name)));
    let mut reloads = 0;
    service.report_reload(|| reloads += 1);
    assert_eq!(received(&socket), Vec::<String>::new());
    service.send_ready();
    service.report_reload(|| reloads += 1);
    service.send_stopping();
    assert_eq!(reloads, 2);
    let messages = received(&socket);
    assert!(messages[1].starts_with("RELOADING=1\nMONOTONIC_USEC="), "{messages:?}");
    let others = [&messages[0], &messages[2], &messages[3]];
    assert_eq!(others, ["READY=1", "READY=1", "STOPPING=1"]);
}

#[test]
fn names_of_sockets() {
    for (name, valid) in
        [("@a", true), ("/run/notify", true), ("run/notify", false), ("vsock:2:1", false)]
    {
        assert_eq!(socket_address(OsStr::new(name)).is_ok(), valid, "{name}");
    }
    for name in [None, Some(OsStr::new("")), Some(OsStr::new("x"))] {
        assert!(ServiceSocket::new(name).address.is_none(), "{name:?}");
    }
}
