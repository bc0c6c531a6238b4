//! Times of ended children are found behind a name with spaces and parentheses.

use super::*;

#[test]
fn times_of_children_stand_behind_those_of_the_process() {
    let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 340 56 20 0 1 0 99";
    let expected =
        ChildCpu { user: Duration::from_millis(3400), system: Duration::from_millis(560) };
    assert_eq!(read(stat), Some(expected));
    assert_eq!(read("7 (a) S 1 2"), None);
}
