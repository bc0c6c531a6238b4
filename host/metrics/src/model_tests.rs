//! Unit tests of `model.rs`.

use super::*;

#[test]
fn batch_sizes_are_counted_per_bucket() {
    let (counts, sum) = batch_buckets(&[(1, 2), (2, 1), (3, 1), (256, 1), (257, 4)].into());
    assert_eq!(counts, [2, 1, 1, 0, 0, 0, 0, 0, 1, 4]);
    assert_eq!(sum, 2.0 + 2.0 + 3.0 + 256.0 + 4.0 * 257.0);
}

#[test]
fn tags_become_valid_unique_label_names() {
    let pairs = [("ok", "1"), ("a-b", "2"), ("a b", "3"), ("9\u{e9}\n", "4"), ("", "5")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()));
    let want = [("_ok", "1"), ("_a_b", "2"), ("_9__", "4"), ("_", "5")]
        .map(|(k, v)| (k.to_owned(), v.to_owned()));
    assert_eq!(tag_text(pairs.iter().map(|(k, v)| (k, v))), want);
}
