//! Unit tests of `priority_list.rs`.

use super::*;

fn served(levels: &PriorityList<char>) -> String {
    let mut all = String::new();
    let (mut prev, mut place) = (NONE, levels.head());
    while place != NONE {
        assert_eq!(levels.node(place).prev, prev);
        all.extend(levels.item(place));
        (prev, place) = (place, levels.node(place).next);
    }
    all
}

#[test]
fn serves_by_level_then_arrival_then_delayed() {
    let mut levels = PriorityList::new(true, false);
    let mut push = |item, level| levels.push(item, level, 0, |_| unreachable!()).unwrap();
    let (b, x, a, _y) = (push('b', 2), push('x', u64::MAX), push('a', 1), push('y', u64::MAX));
    push('c', 2);
    assert_eq!(served(&levels), "abcxy");
    levels.move_behind(b);
    levels.move_behind(x);
    assert_eq!(served(&levels), "acbyx");
    for (item, level) in [('d', 2), ('z', u64::MAX)] {
        levels.push(item, level, 0, |_| unreachable!()).unwrap();
    }
    assert_eq!(served(&levels), "acdbyzx");
    assert_eq!(levels.item(levels.oldest()), Some(&'a'));
    assert_eq!((levels.level_len(2), levels.level_len(3)), (3, 0));
    let ahead = [0, 1, 2, 3, u64::MAX].map(|level| levels.ahead(level, 0));
    assert_eq!(ahead, [0, 1, 4, 4, 7]);
    assert_eq!(levels.remove(a), Some('a'));
    assert_eq!(levels.item(levels.oldest()), Some(&'y'), "b and x lost their places");
    assert_eq!(levels.remove(x), Some('x'));
    assert_eq!((served(&levels).as_str(), levels.len()), ("cdbyz", 5));
    while levels.head() != NONE {
        levels.remove(levels.head());
    }
    assert!(levels.used.is_empty(), "an empty level is dropped");
    assert_eq!((levels.oldest, levels.newest), (NONE, NONE));
}
