//! Unit tests of `lightgbm.rs`.

use super::*;

#[test]
fn sizes_of_trees_are_left_out() {
    for (text, expected) in [
        ("tree\na=1\ntree_sizes=1 2\n\nTree=0\n", "tree\na=1\n\nTree=0\n"),
        ("tree\ntree_sizes=1 2\nb=1\n\nTree=0\n", "tree\nb=1\n\nTree=0\n"),
        ("tree\na=1\n\ntree_sizes=1\n", "tree\na=1\n\ntree_sizes=1\n"),
        ("tree", "tree"),
    ] {
        assert_eq!(without_sizes(text.into()), expected.as_bytes());
    }
}
