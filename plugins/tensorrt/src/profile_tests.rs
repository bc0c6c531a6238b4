//! Unit tests of `profile.rs`.

use super::*;

fn shape(dims: &[i64]) -> TensorShape {
    TensorShape::new(dims).expect("at most eight dimensions")
}

fn range(min: &[i64], opt: &[i64], max: &[i64]) -> Range {
    Range { min: shape(min), opt: shape(opt), max: shape(max), values: None }
}

#[test]
fn nearest_optimum_wins_among_fitting_profiles() {
    let small = [range(&[1, 3], &[1, 3], &[8, 3])];
    let large = [range(&[1, 3], &[8, 3], &[64, 3])];
    let of = |rows| nearest_profile([&small[..], &large[..]].into_iter(), &[shape(&[rows, 3])]);
    assert_eq!(of(1), Some(0));
    assert_eq!(of(7), Some(1));
    assert_eq!(of(20), Some(1));
    assert_eq!(of(65), None);
}

#[test]
fn all_inputs_must_fit_one_profile() {
    let first = [range(&[1], &[1], &[4]), range(&[1], &[1], &[4])];
    let second = [range(&[5], &[5], &[8]), range(&[5], &[5], &[8])];
    let of =
        |a, b| nearest_profile([&first[..], &second[..]].into_iter(), &[shape(&[a]), shape(&[b])]);
    assert_eq!(of(4, 4), Some(0));
    assert_eq!(of(5, 5), Some(1));
    assert_eq!(of(4, 5), None);
}

#[test]
fn shape_of_another_rank_fits_no_range() {
    let range = range(&[1, 3], &[1, 3], &[8, 3]);
    assert!(!range.allows(&[1]));
    assert!(range.allows(&[8, 3]));
    assert!(!range.allows(&[9, 3]));
    assert_eq!(range.text(), "[1,3] to [8,3]");
}

#[test]
fn values_of_a_shape_tensor_are_limited() {
    let mut range = range(&[2], &[2], &[2]);
    assert!(range.allows_values(&[100, 100]));
    range.values = Some([vec![1, 1], vec![4, 8]]);
    assert!(range.allows_values(&[4, 8]));
    assert!(!range.allows_values(&[5, 8]));
    assert!(!range.allows_values(&[1]));
}

#[test]
fn max_batch_is_that_of_the_tightest_input() {
    let profile = Profile {
        ranges: vec![
            ("a".to_owned(), range(&[1, 2], &[4, 2], &[16, 2])),
            ("b".to_owned(), range(&[1], &[4], &[8])),
            ("shape".to_owned(), range(&[2], &[2], &[2])),
        ],
    };
    assert_eq!(profile.max_batch(|name| name != "shape"), Some(8));
    assert!(profile.range("b").is_some() && profile.range("c").is_none());
}

#[test]
fn profile_names_are_numbers_of_profiles() {
    assert_eq!(selected_profiles([].into_iter(), 3), Ok(vec![0]));
    assert_eq!(selected_profiles(["2", "0", "2"].into_iter(), 3), Ok(vec![2, 0]));
    let refused = selected_profiles(["3"].into_iter(), 3).expect_err("no such profile");
    assert!(refused.contains("'3'") && refused.contains("has 3"), "{refused}");
    assert!(selected_profiles(["fast"].into_iter(), 3).is_err());
}
