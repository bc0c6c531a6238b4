//! Tests of block sizes.

use super::size_class;

#[test]
fn sizes_are_rounded_up_to_quarters_of_a_power_of_two() {
    let cases = [
        (0, 4096),
        (1, 4096),
        (4096, 4096),
        (4097, 5120),
        (5120, 5120),
        (5121, 6144),
        (8192, 8192),
        (8193, 10240),
        ((1 << 20) + 1, (1 << 20) + (1 << 18)),
        (1 << 40, 1 << 40),
    ];
    for (bytes, class) in cases {
        assert_eq!(size_class(bytes), Some(class), "{bytes}");
    }
    assert_eq!(size_class(usize::MAX), None);
}

#[test]
fn at_most_a_fifth_of_a_block_is_unused() {
    for bytes in (4096..1 << 16).step_by(7) {
        let class = size_class(bytes).unwrap();
        assert!(class >= bytes && (class - bytes) * 5 <= class, "{bytes} in {class}");
        assert_eq!(size_class(class), Some(class));
    }
}
