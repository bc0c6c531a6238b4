//! Unit tests of `retry.rs`.

use super::*;

#[test]
fn pauses_double_up_to_a_limit() {
    let ms = Duration::from_millis;
    let (much, few) = (Duration::from_secs(60), ms(100));
    let table = [
        (1, much, None, 0, Some(ms(200))),
        (1, much, None, 1023, Some(ms(249))),
        (2, much, None, 0, Some(ms(400))),
        (5, much, None, 0, Some(ms(3200))),
        (6, much, None, 0, None),
        (u32::MAX, much, None, 0, None),
        (1, few, None, 0, None),
        (1, much, Some(ms(7000)), 0, Some(ms(7000))),
        (1, much, Some(ms(1)), 0, Some(ms(200))),
        (1, much, Some(Duration::from_secs(3600)), 0, None),
        (1, Duration::ZERO, None, 0, None),
    ];
    for (attempts, left, after, random, expected) in table {
        let pause = pause_before_retry(attempts, left, after, random);
        let rounded = pause.map(|pause| ms(pause.as_millis() as u64));
        assert_eq!(rounded, expected, "{attempts} {left:?} {after:?}");
    }
}
