//! Allocations and copies: the server in a program that counts both (`tests/counted`).

use super::{WARM_UP, server};
use crate::client::Client;
use crate::requests::tensor_bytes;
use std::io::Read;
use std::net::TcpStream;
use trtserver_tests::{Running, dist};

/// Requests to average; fewer for large tensors.
const SMALL: u32 = 500;
const LARGE: u32 = 25;
/// A row is measured so often, and each figure is the lowest found. hyper adapts its read buffer to
/// the sizes of the last reads, so some series of large bodies allocate a buffer more than others;
/// what the code itself allocates or copies is in all of them.
const SMALL_SERIES: u32 = 3;
const LARGE_SERIES: u32 = 9;

/// Figures per request.
pub struct Counts {
    pub allocations: f64,
    pub allocated: f64,
    /// Copied bytes.
    pub copied: f64,
}

pub fn measure(rows: &[&str]) -> Vec<Counts> {
    let server = server(0).program([dist().join("bin/trtserver-counted")]).start();
    rows.iter().map(|row| one(&server, row)).collect()
}

fn one(server: &Running, row: &str) -> Counts {
    let (_, size) = row.split_once(' ').unwrap_or_default();
    let bytes = tensor_bytes(size);
    let (times, series) =
        if bytes < 1 << 20 { (SMALL, SMALL_SERIES) } else { (LARGE, LARGE_SERIES) };
    let mut client = Client::connect(server, row);
    client.send(WARM_UP);
    let mut lowest = [f64::INFINITY; 3];
    for _ in 0..series {
        let before = so_far(server);
        client.send(times);
        let after = so_far(server);
        for (lowest, (after, before)) in lowest.iter_mut().zip(after.into_iter().zip(before)) {
            *lowest = lowest.min((after - before) as f64 / f64::from(times));
        }
    }
    let [allocations, allocated, copied] = lowest;
    Counts { allocations, allocated, copied }
}

/// Allocations, allocated and copied bytes so far, and the bytes that are allocated now.
pub fn so_far(server: &Running) -> [u64; 4] {
    let address = server.listening("counts");
    let mut line = String::new();
    let read = TcpStream::connect(&address).and_then(|mut s| s.read_to_string(&mut line));
    read.unwrap_or_else(|e| panic!("no counts from {address}: {e}"));
    let mut numbers = line.split_whitespace().map_while(|word| word.parse().ok());
    [(); 4].map(|()| numbers.next().unwrap_or_else(|| panic!("not four counts: {line:?}")))
}
