//! Unit tests of `generation.rs`.

use super::*;

#[test]
fn generation_is_chosen_from_version_parameter_and_setting() {
    use RequestedGeneration::{V0_10, V0_11, V0_12, V1_0};
    for (requested, default, version, want) in [
        (None, None, None, Generation::V0_12),
        (Some(V0_10), None, None, Generation::V0_10),
        (Some(V0_11), Some(V0_12), None, Generation::V0_11),
        (Some(V1_0), Some(V0_10), None, Generation::V1_0),
        (None, Some(V0_10), None, Generation::V0_10),
        (None, None, Some(1), Generation::V1_0),
        // The server's setting applies to libraries that export no version.
        (None, Some(V0_12), Some(2), Generation::V1_6),
        (Some(V1_0), None, Some(2), Generation::V1_6),
    ] {
        assert_eq!(choose_generation(requested, default, version).unwrap(), want);
    }
    for requested in [V0_10, V0_11, V0_12] {
        let error = choose_generation(Some(requested), None, Some(1)).unwrap_err();
        assert!(error.text().contains("exports CustomVersion"), "{error}");
    }
    for (requested, n) in [(None, 0), (None, 3), (Some(V0_10), u32::MAX)] {
        let error = choose_generation(requested, None, Some(n)).unwrap_err();
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
