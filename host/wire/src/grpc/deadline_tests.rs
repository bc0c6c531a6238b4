//! Unit tests of `deadline.rs`.

use super::*;
use std::pin::pin;
use tonic::Code;

#[test]
fn grpc_timeout_is_parsed() {
    let table: [(&[u8], Option<u64>); 10] = [
        (b"1H", Some(3_600_000_000_000)),
        (b"2M", Some(120_000_000_000)),
        (b"3S", Some(3_000_000_000)),
        (b"250m", Some(250_000_000)),
        (b"7u", Some(7_000)),
        (b"99999999n", Some(99_999_999)),
        (b"99999999H", Some(u64::MAX)),
        (b"100000000n", None),
        (b"S", None),
        (b"-1S", None),
    ];
    for (text, want) in table {
        assert_eq!(parse_grpc_timeout(text), want, "{}", String::from_utf8_lossy(text));
    }
}

async fn code(deadline_ns: u64, work: impl Future<Output = Result<(), Status>>) -> Code {
    run_until_deadline(deadline_ns, pin!(work))
        .await
        .map_or_else(|status| status.code(), |()| Code::Ok)
}

#[tokio::test]
async fn deadline_ends_work() {
    let soon = || now_ns() + 1_000_000;
    let refused = || std::future::ready(Err(Status::unavailable("")));
    let forever = || std::future::pending();
    assert_eq!(code(soon(), forever()).await, Code::DeadlineExceeded);
    assert_eq!(code(1, forever()).await, Code::DeadlineExceeded);
    assert_eq!(code(1, refused()).await, Code::DeadlineExceeded);
    assert_eq!(code(1, async { Ok(()) }).await, Code::Ok);
    assert_eq!(code(0, refused()).await, Code::Unavailable);
    // Beyond the range of the clock.
    let later = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok(())
    };
    assert_eq!(code(u64::MAX, later).await, Code::Ok);
}
