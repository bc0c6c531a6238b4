//! Instructions: the server under callgrind, once with a few requests of each row, then once per
//! row with more of its requests. The difference is the cost of those; start and shutdown cancel
//! out.

use super::{DELAY_MS, WARM_UP, file, read, server};
use crate::client::Client;
use std::ffi::OsString;
use trtserver_tests::dist;

const TIMES: u32 = 200;
/// Disables `rep movsb` and `rep stosb` in the C library: it uses them on some processors only, and
/// callgrind counts each byte as an instruction.
const NO_REPETITION: &str =
    "glibc.cpu.x86_rep_movsb_threshold=0x40000000:glibc.cpu.x86_rep_stosb_threshold=0x40000000";

/// Instructions per request of each row.
pub fn measure(rows: &[&str]) -> Vec<f64> {
    let few = total(rows, None);
    rows.iter().map(|row| (total(rows, Some(row)) - few) / f64::from(TIMES)).collect()
}

fn total(rows: &[&str], more: Option<&str>) -> f64 {
    let name = more.map_or("few".to_owned(), |row| row.replace(' ', "-"));
    let out = file(&format!("callgrind.{name}"));
    let mut out_flag = OsString::from("--callgrind-out-file=");
    out_flag.push(&out);
    let args = ["valgrind", "--tool=callgrind", "--quiet"].map(OsString::from);
    let args = args.into_iter().chain([out_flag, dist().join("bin/trtserver").into()]);
    let server = server(DELAY_MS).env("GLIBC_TUNABLES", NO_REPETITION).program(args).start();
    for row in rows {
        let mut client = Client::connect(&server, row);
        client.send(WARM_UP);
        if more == Some(row) {
            client.send(TIMES);
        }
    }
    let status = server.stop();
    assert!(status.success(), "the server under callgrind ended with {status}");
    let text = read(&out);
    let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let total = total.and_then(|number| number.trim().parse().ok());
    total.unwrap_or_else(|| panic!("{} has no totals", out.display()))
}
