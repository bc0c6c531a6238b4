//! Servers that answer wrongly, say nothing, or leave midway.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;

/// A web server's page.
pub const HTML: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 13\r\n\r\n<html></html>";
pub const GARBAGE: &[u8] = b"\x00\x01garbage\r\n\r\n";
pub const CUT_OFF: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{\"name\":";
pub const NOTHING: &[u8] = b"";

/// A free port and its address. Without further ado it is a silent server: the system accepts
/// connections.
pub fn listener() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap_or_else(|e| panic!("no port: {e}"));
    let address = listener.local_addr().map(|address| address.to_string());
    (listener, address.unwrap_or_else(|e| panic!("{e}")))
}

/// Sends each connection these bytes once it has received some, and closes it.
pub fn scripted(response: &'static [u8]) -> String {
    let (listener, address) = listener();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut buffer = [0; 4096];
                if stream.read(&mut buffer).is_ok_and(|n| n > 0) {
                    let _ = stream.write_all(response);
                }
            });
        }
    });
    address
}

/// Passes on to `target`, and ends each connection when it has carried this many bytes of
/// responses.
pub fn cutting(target: &str, most: usize) -> String {
    let (listener, address) = listener();
    let target = target.to_owned();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&target) else { return };
            let copies = (client.try_clone(), server.try_clone());
            let (Ok(client_copy), Ok(server_copy)) = copies else { return };
            thread::spawn(move || pass_on(client_copy, server_copy, usize::MAX));
            thread::spawn(move || pass_on(server, client, most));
        }
    });
    address
}

fn pass_on(mut from: TcpStream, mut to: TcpStream, mut left: usize) {
    let mut buffer = [0; 4096];
    while left > 0 {
        let Ok(read @ 1..) = from.read(&mut buffer) else { break };
        let passed = read.min(left);
        left -= passed;
        if to.write_all(&buffer[..passed]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}
