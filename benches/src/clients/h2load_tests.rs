//! Unit tests of `h2load.rs`.

use super::*;

const PRINTED: &str = "finished in 512.35ms, 742.00 req/s, 102.41KB/s\n\
    requests: 4 total, 5 started, 4 done, 4 succeeded, 0 failed, 0 errored, 0 timeout\n\
    status codes: 4 2xx, 0 3xx, 0 4xx, 0 5xx\n\
    traffic: 51.21KB (52436) total, 3.13KB (3200) headers (space savings 90.20%), 416B (416) data\n";
const LOG: &str = "17\t200\t100\n18\t200\t100\n19\t200\t100\n20\t200\t9000\n";

fn outcome(printed: &str) -> Result<Outcome> {
    let connections = Connections { concurrency: 1, threads: 1, length: Duration::from_secs(1) };
    read(printed, LOG, &connections, 104)
}

#[test]
fn output_is_parsed() {
    let outcome = outcome(PRINTED).unwrap();
    assert_eq!((outcome.requests, outcome.per_second), (4, 742.0));
    assert!((outcome.p50_us - 100.0).abs() < 2.0 && outcome.p99_us > 8000.0);
}

#[test]
fn failures_and_wrong_lengths_are_detected() {
    let with = |from: &str, to: &str| outcome(&PRINTED.replace(from, to)).map(|_| ());
    assert!(with("0 failed", "1 failed").unwrap_err().contains("1 failed"));
    assert!(with("4 2xx", "3 2xx").unwrap_err().contains("3 had status 200"));
    assert!(with("(416)", "(400)").unwrap_err().contains("400 bytes"));
    assert!(with("finished", "broken").unwrap_err().contains("did not print"));
}
