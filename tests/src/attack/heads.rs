//! Attackers of the HTTP/1 parser and of the small ports: heads that are left half-sent on the
//! ports of health and metrics, and heads that two readers could read differently.

use super::attackers::{Attack, WAIT, harmless};
use crate::http1::Connection;
use crate::server::Running;
use std::collections::VecDeque;
use std::io::Write;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::{Duration, Instant};

/// Half-sent heads a second, on the two ports in turn.
const RATE: u32 = 1000;
/// Connections that stay open: more than these ports accept.
const HELD: usize = 400;

/// Heads that must be refused, and with which status.
const MALFORMED: &[(&str, u16)] = &[
    ("GET /v2/health/live HTTP/1.1\r\n\r\n", 400),
    ("GET /v2/health/live HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("GET /v2/health/live HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", 400),
    (
        "POST /v2/repository/index HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        501,
    ),
];

pub fn attacks<'a>(server: &'a Running) -> Vec<Attack<'a>> {
    vec![
        harmless("half-heads", 1, || half_heads(server)),
        Attack::new("malformed-heads", 1, || malformed_heads(server)),
    ]
}

/// One second of half-sent heads. The observers measure how long probes of the same ports take.
fn half_heads(server: &Running) {
    let ports = [server.listening("health"), server.metrics_address().to_owned()];
    let mut held = VecDeque::new();
    let begin = Instant::now();
    for number in 1..=RATE {
        let opened = TcpStream::connect(&ports[number as usize % ports.len()])
            .and_then(|mut stream| stream.write_all(b"GET /v2/hea").map(|()| stream));
        held.extend(opened);
        if held.len() > HELD {
            held.pop_front();
        }
        let due = Duration::from_secs(1) / RATE * number;
        thread::sleep(due.saturating_sub(begin.elapsed()));
    }
}

fn malformed_heads(server: &Running) -> Result<(), String> {
    for (head, expected) in MALFORMED {
        // No response at all is a refusal, too.
        let status = catch_unwind(AssertUnwindSafe(|| {
            Connection::open(server.http()).send(head).try_response().map(|r| r.status)
        }));
        if let Ok(Some(status)) = status
            && status != *expected
            && status != 503
        {
            return Err(format!("{status} instead of {expected} for {head:?}"));
        }
    }
    thread::sleep(WAIT / 20);
    Ok(())
}
