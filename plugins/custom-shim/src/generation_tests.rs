//! Unit tests of `generation.rs`.

use super::*;

#[test]
fn what_a_library_says_and_what_is_asked() {
    use Wish::{A, B, C};
    for (asked, usual, version, want) in [
        (None, None, None, Generation::B),
        (Some(A), None, None, Generation::A),
        (Some(C), Some(A), None, Generation::C),
        (None, Some(A), None, Generation::A),
        (None, None, Some(1), Generation::C),
        // The server's setting is for those that say nothing.
        (None, Some(B), Some(2), Generation::C2),
        (Some(C), None, Some(2), Generation::C2),
    ] {
        assert_eq!(choose(asked, usual, version).unwrap(), want);
    }
    for wish in [A, B] {
        let error = choose(Some(wish), None, Some(1)).unwrap_err();
        assert!(error.text().contains("exports CustomVersion"), "{error}");
    }
    for (asked, n) in [(None, 0), (None, 3), (Some(A), u32::MAX)] {
        let error = choose(asked, None, Some(n)).unwrap_err();
        let want = format!("unable to load custom library: invalid custom version {n} is provided");
        assert_eq!(error, Error::invalid(want));
    }
}

#[test]
fn other_words_are_errors() {
    for word in ["", "a", "D", "C2", "1"] {
        let error = Wish::read(word, format_args!("setting 'api'")).unwrap_err();
        assert!(error.text().starts_with("setting 'api' is '"), "{error}");
    }
}
