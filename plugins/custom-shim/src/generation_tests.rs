//! Unit tests of `generation.rs`.

use super::*;

#[test]
fn generation_is_chosen_from_version_parameter_and_setting() {
    use RequestedGeneration::{A, B, B11, C};
    for (requested, default, version, want) in [
        (None, None, None, Generation::B),
        (Some(A), None, None, Generation::A),
        (Some(B11), Some(B), None, Generation::B11),
        (Some(C), Some(A), None, Generation::C),
        (None, Some(A), None, Generation::A),
        (None, None, Some(1), Generation::C),
        // The server's setting applies to libraries that export no version.
        (None, Some(B), Some(2), Generation::C2),
        (Some(C), None, Some(2), Generation::C2),
    ] {
        assert_eq!(choose(requested, default, version).unwrap(), want);
    }
    for requested in [A, B11, B] {
        let error = choose(Some(requested), None, Some(1)).unwrap_err();
        assert!(error.text().contains("exports CustomVersion"), "{error}");
    }
    for (requested, n) in [(None, 0), (None, 3), (Some(A), u32::MAX)] {
        let error = choose(requested, None, Some(n)).unwrap_err();
        let want = format!("unable to load custom library: invalid custom version {n} is provided");
        assert_eq!(error, Error::invalid(want));
    }
}

#[test]
fn unknown_generations_are_errors() {
    for value in ["", "a", "D", "B12", "C2", "1"] {
        let error = RequestedGeneration::read(value, format_args!("setting 'api'")).unwrap_err();
        assert!(error.text().starts_with("setting 'api' is '"), "{error}");
    }
}
