//! Tests of damaged copies.

use super::*;

#[test]
fn copies_differ_and_are_the_same_in_each_run() {
    let whole = b"size 12 34";
    for textual in [false, true] {
        let copies = |seed| {
            let mut numbers = SeededNumbers::new(seed);
            (0..50).map(|_| damage_bytes(whole, textual, &mut numbers)).collect::<Vec<_>>()
        };
        assert_eq!(copies(5), copies(5));
        assert_ne!(copies(5), copies(6));
        assert!(copies(5).iter().filter(|copy| *copy == whole).count() < 10);
        damage_bytes(b"", textual, &mut SeededNumbers::new(1));
    }
}
