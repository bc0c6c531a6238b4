//! Unit tests of `batch_sizes.rs`.

use super::*;

#[test]
fn sizes_ascend_and_fit_the_instance() {
    let check = |rows: &[u32]| {
        let size = |&rows: &u32| BatchSize { rows, pad: 0, run_ns: 0 };
        check_sizes(&rows.iter().map(size).collect::<Vec<_>>(), 8)
    };
    for right in [&[][..], &[1], &[8], &[1, 2, 4, 8]] {
        assert_eq!(check(right), Ok(()), "{right:?}");
    }
    for wrong in [&[0][..], &[9], &[2, 1], &[4, 4], &[1, 16]] {
        let text = check(wrong).unwrap_err();
        let part = format!("{wrong:?}; expected are at most 256 ascending numbers from 1 to 8");
        assert!(text.contains(&part), "{text}");
    }
}
