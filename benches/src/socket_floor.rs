//! An HTTP echo server on blocking sockets, which does nothing but receive a body and send it: what
//! the system calls of a large tensor take, whatever server makes them.

use std::io::{ErrorKind, IoSlice, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

const HEAD_END: &[u8] = b"\r\n\r\n";
/// Bytes of one read, as large as hyper's largest buffer.
const READ: usize = 512 << 10;

/// Serves on a free port of this machine until the process is ended.
pub fn serve() -> Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("listening http {}\nready", listener.local_addr()?);
    std::io::stdout().flush()?;
    for stream in listener.incoming() {
        let stream = stream?;
        // The client has closed the connection, or the bench reports the failed request.
        thread::spawn(move || drop(echo_all(stream)));
    }
    Ok(())
}

fn echo_all(mut stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    // Used again for each request.
    let mut buffer = vec![0; READ];
    while let Some((body_at, length, mut filled)) = receive_head(&mut stream, &mut buffer)? {
        let end = body_at + length;
        if buffer.len() < end {
            buffer.resize(end, 0);
        }
        while filled < end {
            let most = end.min(filled + READ);
            match stream.read(&mut buffer[filled..most])? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
        let mut parts = [IoSlice::new(head.as_bytes()), IoSlice::new(&buffer[body_at..end])];
        let mut parts = &mut parts[..];
        while !parts.is_empty() {
            let sent = stream.write_vectored(parts)?;
            IoSlice::advance_slices(&mut parts, sent);
        }
    }
    Ok(())
}

/// Receives until the head of a request is complete. Returns where its body begins, the length of
/// the body, and how many bytes have arrived; `None` when the client has closed the connection.
fn receive_head(
    stream: &mut TcpStream,
    buffer: &mut [u8],
) -> Result<Option<(usize, usize, usize)>> {
    let mut filled = 0;
    loop {
        let received = &buffer[..filled];
        if let Some(at) = received.windows(HEAD_END.len()).position(|four| four == HEAD_END) {
            let head = String::from_utf8_lossy(&received[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length = length.and_then(|text| text.trim().parse().ok());
            let length = length.ok_or(ErrorKind::InvalidData)?;
            return Ok(Some((at + HEAD_END.len(), length, filled)));
        }
        match stream.read(&mut buffer[filled..READ])? {
            0 => return Ok(None),
            read => filled += read,
        }
    }
}
