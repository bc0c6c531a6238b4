//! Unit tests of `memory.rs`.

use super::Memory;

#[test]
fn the_slope_of_a_line_with_a_step_at_its_beginning() {
    let mut memory = Memory::default();
    for i in 0..100u64 {
        let kib = if i < 40 { 10 } else { 1000 + i * 3 };
        memory.sample(i * 1000, kib);
    }
    assert!((memory.slope() - 300.0).abs() < 1e-6, "{}", memory.slope());
    assert_eq!(Memory::default().slope(), 0.0);
}
