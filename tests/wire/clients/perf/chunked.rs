//! Responses in chunks, which no server of the tests sends by itself: a proxy cuts them.

use super::{SERVER, perf};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::thread;

/// One message with `Content-Length`: its head and its body.
fn read_message(from: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let begin = head.len();
        (from.read_line(&mut head).ok()? > 0).then_some(())?;
        if let Some(value) = head[begin..].to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// Passes on requests, and responses in chunks of three bytes.
fn forward_in_chunks(client: TcpStream, server: &str) -> Option<()> {
    let connection = TcpStream::connect(server).ok()?;
    let mut requests = BufReader::new(client.try_clone().ok()?);
    let (mut responses, mut server) = (BufReader::new(connection.try_clone().ok()?), connection);
    let mut client = client;
    loop {
        let (head, body) = read_message(&mut requests)?;
        server.write_all(&[head.as_bytes(), &body].concat()).ok()?;
        let (head, body) = read_message(&mut responses)?;
        let lines = head.split_inclusive("\r\n").filter(|line| *line != "\r\n");
        let kept = lines.filter(|line| !line.to_ascii_lowercase().starts_with("content-length"));
        let mut response = kept.collect::<String>().into_bytes();
        response.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(3) {
            response.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
            response.extend_from_slice(&[chunk, b"\r\n"].concat());
        }
        client.write_all(&[&response[..], b"0\r\n\r\n"].concat()).ok()?;
    }
}

#[test]
fn chunked_responses_are_measured() {
    let (listener, address) = crate::clients::scripted::listener();
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            thread::spawn(move || forward_in_chunks(client, SERVER.http()));
        }
    });
    for generation in ["--generation=v1", "--generation=v2"] {
        let ended = perf(&[generation, "-mfixed", "-u", &address, "--concurrency-range=2"]);
        assert!(ended.status.success(), "{ended:?}");
    }
    let ended = perf(&["-mfailing", "--shape=INPUT0:1", "-u", &address]);
    assert!(ended.code() == 2 && ended.stderr.contains("out of paper"), "{ended:?}");
}
