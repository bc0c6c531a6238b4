//! Unit tests of `log_rate.rs`.

use super::*;

#[test]
fn lines_and_bytes_are_limited_per_second_after_a_burst() {
    let begin = Instant::now();
    for (bytes, burst, per_second) in [
        (100, BURST_LINES, LINES_PER_SECOND),
        (16 << 10, BURST_BYTES >> 14, BYTES_PER_SECOND >> 14),
    ] {
        let mut rate = LogRate::new(begin);
        let mut admitted = |count: u64, at: Duration| {
            let lines = (0..count).filter_map(|_| rate.admit(bytes, begin + at));
            lines.collect::<Vec<_>>()
        };
        let none = OmittedLines::default();
        assert_eq!(admitted(burst + 7, Duration::ZERO), vec![none; burst as usize]);
        let next = admitted(per_second + 5, Duration::from_millis(1500));
        assert_eq!(next.len(), per_second as usize);
        assert_eq!(next[0], OmittedLines { lines: 7, bytes: 7 * bytes as u64 });
        assert_eq!(next[1], none);
        assert_eq!(rate.take_omitted(), OmittedLines { lines: 5, bytes: 5 * bytes as u64 });
        assert!(rate.take_omitted().is_empty());
    }
}
