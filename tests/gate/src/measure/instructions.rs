//! Instructions: the server under callgrind, once with a few requests of each row, then for each row with more of
//! that one. The difference is what those needed; the start and the end are in both.

use super::{DELAY_MS, WARM_UP, file, read, server};
use crate::client::Client;
use std::ffi::OsString;
use trtserver_tests::dist;

const TIMES: u32 = 200;
/// Instructions that repeat themselves for each byte are taken or left by the C library depending on the processor, and
/// callgrind counts each byte: left.
const NO_REPETITION: &str =
    "glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000";

/// For one request of each row.
pub fn measure(rows: &[&str]) -> Vec<f64> {
    let few = total(rows, None);
    rows.iter().map(|row| (total(rows, Some(row)) - few) / f64::from(TIMES)).collect()
}

fn total(rows: &[&str], more: Option<&str>) -> f64 {
    let name = more.map_or("few".to_owned(), |row| row.replace(' ', "-"));
    let out = file(&format!("callgrind.{name}"));
    let mut out_flag = OsString::from("--callgrind-out-file=");
    out_flag.push(&out);
    let words = ["valgrind", "--tool=callgrind", "--quiet"].map(OsString::from);
    let words = words.into_iter().chain([out_flag, dist().join("bin/trtserver").into()]);
    let server = server(DELAY_MS).env("GLIBC_TUNABLES", NO_REPETITION).program(words).start();
    for row in rows {
        let mut client = Client::connect(&server, row);
        client.ask(WARM_UP);
        if more == Some(row) {
            client.ask(TIMES);
        }
    }
    let status = server.stop();
    assert!(status.success(), "the server under callgrind ended with {status}");
    let text = read(&out);
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|number| number.trim().parse().ok());
    total.unwrap_or_else(|| panic!("{} has no totals", out.display()))
}
