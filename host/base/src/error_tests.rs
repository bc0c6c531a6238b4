//! Unit tests of `error.rs`.

use super::*;

#[test]
fn waits_are_rounded_up() {
    for (us, ms, seconds) in [
        (0, 1, 1),
        (1, 1, 1),
        (1_000, 1, 1),
        (1_001, 2, 1),
        (1_000_000, 1000, 1),
        (1_000_001, 1001, 2),
        (u64::MAX, u32::MAX, 4_294_968),
    ] {
        let error = Error::retry_later("busy", Duration::from_micros(us));
        let found = (error.retry_after_ms.map(NonZeroU32::get), error.retry_after_secs());
        assert_eq!(found, (Some(ms), Some(seconds)), "{us} us");
    }
    assert_eq!(Error::new(Code::ResourceExhausted, "").retry_after_secs(), Some(1));
    assert_eq!(Error::unavailable("").retry_after_secs(), None);
}
