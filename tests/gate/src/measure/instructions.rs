//! Instructions, and the atomic ones among them: the server under callgrind, once with a few requests of each row, then once per
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

/// Figures per request.
pub struct Executed {
    pub instructions: f64,
    /// Instructions that write memory atomically.
    pub atomics: f64,
}

/// Figures of each row.
pub fn measure(rows: &[&str]) -> Vec<Executed> {
    let few = totals(rows, None);
    let executed = |row: &&str| {
        let more = totals(rows, Some(row));
        let [instructions, atomics] = [0, 1].map(|at| (more[at] - few[at]) / f64::from(TIMES));
        Executed { instructions, atomics }
    };
    rows.iter().map(executed).collect()
}

/// Instructions and atomic ones.
fn totals(rows: &[&str], more: Option<&str>) -> [f64; 2] {
    let name = more.map_or("few".to_owned(), |row| row.replace(' ', "-"));
    let out = file(&format!("callgrind.{name}"));
    let mut out_flag = OsString::from("--callgrind-out-file=");
    out_flag.push(&out);
    let args = ["valgrind", "--tool=callgrind", "--quiet", "--collect-bus=yes"].map(OsString::from);
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
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).unwrap_or_default();
    let mut totals = totals.split_whitespace().map_while(|number| number.parse().ok());
    [(); 2].map(|()| totals.next().unwrap_or_else(|| panic!("not two totals: {}", out.display())))
}
