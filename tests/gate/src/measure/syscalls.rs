//! System calls: the server under strace, which logs the start time of each; those between the
//! first and the last request are counted.

use super::{DELAY_MS, WARM_UP, file, read, server};
use crate::client::Client;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use trtserver_tests::{TIMEOUT, dist};

const TIMES: u32 = 200;

/// Figures per request.
pub struct Syscalls {
    pub all: f64,
    /// Name and number, most frequent first.
    pub by_name: Vec<(String, f64)>,
}

pub fn measure(rows: &[&str]) -> Vec<Syscalls> {
    let trace = file("strace");
    let _ = std::fs::remove_file(&trace);
    let args = ["strace", "-D", "-f", "-qq", "-ttt", "-s0", "-o"];
    let args = args.into_iter().map(OsString::from);
    let server = server(DELAY_MS)
        .program(args.chain([trace.clone().into(), dist().join("bin/trtserver").into()]))
        .start();
    let windows: Vec<[f64; 2]> = rows
        .iter()
        .map(|row| {
            let mut client = Client::connect(&server, row);
            client.send(WARM_UP);
            let begin = now();
            client.send(TIMES);
            [begin, now()]
        })
        .collect();
    let status = server.stop();
    assert!(status.success(), "the server under strace ended with {status}");
    let calls = whole(&trace);
    windows.into_iter().map(|window| within(&calls, window)).collect()
}

/// Time as strace logs it: seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64())
}

/// The complete trace, which may end a moment after the server.
fn whole(trace: &Path) -> String {
    let begin = Instant::now();
    loop {
        let text = read(trace);
        if text.lines().rev().any(|line| line.contains(" exit_group(")) {
            return text;
        }
        assert!(begin.elapsed() < TIMEOUT, "{} has no end", trace.display());
        std::thread::yield_now();
    }
}

fn within(trace: &str, [begin, end]: [f64; 2]) -> Syscalls {
    let mut by_name: BTreeMap<&str, u32> = BTreeMap::new();
    for line in trace.lines() {
        // Thread, time, call. A call resumed after another thread's line begins with `<...`, a
        // signal with `---`.
        let mut fields = line.split_whitespace().skip(1);
        let time = fields.next().and_then(|field| field.parse::<f64>().ok());
        let call = fields.next().and_then(|field| field.split_once('('));
        if let (Some(time), Some((name, _))) = (time, call)
            && (begin..end).contains(&time)
        {
            *by_name.entry(name).or_default() += 1;
        }
    }
    let mut by_name: Vec<_> = by_name
        .into_iter()
        .map(|(name, n)| (name.to_owned(), f64::from(n) / f64::from(TIMES)))
        .collect();
    by_name.sort_by(|a, b| b.1.total_cmp(&a.1));
    Syscalls { all: by_name.iter().map(|(_, n)| n).sum(), by_name }
}
