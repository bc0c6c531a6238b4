//! Unit tests of `messages.rs`.

use super::*;

#[test]
fn places_in_source_code_are_left_out() {
    for (text, expected) in [
        (
            "Exception from src/inference/src/cpp/core.cpp:84:\nException from src/model_reader.cpp:148:\n\
             Unable to read the model: \"a.xml\"\n\n\n",
            "Unable to read the model: \"a.xml\"",
        ),
        (
            "Exception from src/core.cpp:84:\nCheck 'a == b' failed at src/x.cpp:12:\nwhile it was done\n  twice",
            "while it was done twice",
        ),
        ("the same\nthe same\n", "the same"),
        ("Exception from src/core.cpp:84:\n", ""),
        ("Check 'a'", "Check 'a'"),
        ("", ""),
    ] {
        assert_eq!(clean_message(text), expected);
    }
}

#[test]
fn versions() {
    for (build, major, short) in [
        ("2026.4.1-22982-85af7d2e43e", Some(2026), "2026.4.1"),
        ("2024.6.0", Some(2024), "2024.6.0"),
        ("custom", None, "custom"),
    ] {
        assert_eq!((major_version(build), short_version(build)), (major, short));
    }
}
