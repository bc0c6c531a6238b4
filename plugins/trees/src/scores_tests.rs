//! Unit tests of `scores.rs`.

use super::*;

#[test]
fn forms_of_scores() {
    let class = |threshold| ScoreForm::Class { threshold };
    for (form, scores, values, expected) in [
        (ScoreForm::Plain, 1, &[0.25, 0.75][..], &[0.25, 0.75][..]),
        (ScoreForm::Plain, 2, &[0.25, 0.75], &[0.25, 0.75]),
        (ScoreForm::Pair, 1, &[0.25, 0.75], &[0.75, 0.25, 0.25, 0.75]),
        (class(0.5), 1, &[0.25, 0.5, 0.75], &[0.0, 0.0, 1.0]),
        (class(0.2), 1, &[0.25, 0.5, 0.1], &[1.0, 1.0, 0.0]),
        (class(0.5), 3, &[0.1, 0.7, 0.2, 0.4, 0.2, 0.4, 0.1, 0.1, 0.8], &[1.0, 0.0, 2.0]),
    ] {
        let rows = values.len() / scores;
        let mut out = vec![-1.0f64; rows * form.width(scores)];
        write_rows(form, scores, values, &mut out);
        assert_eq!(out, expected, "{form:?}");
    }
}

#[test]
fn a_pair_is_subtracted_in_the_type_of_the_framework() {
    let (score, mut pair) = (0.1f32, [0.0f32; 2]);
    write_rows(ScoreForm::Pair, 1, &[score], &mut pair);
    assert_eq!(pair, [1.0 - score, score]);
    let mut classes = [0i32; 2];
    write_rows(ScoreForm::Plain, 1, &[3.0f32, 4.0], &mut classes);
    assert_eq!(classes, [3, 4]);
}

#[test]
fn nan_is_not_above_a_threshold() {
    let mut out = [5.0f32];
    write_rows(ScoreForm::Class { threshold: 0.5 }, 1, &[f64::NAN], &mut out);
    assert_eq!(out, [0.0]);
}
