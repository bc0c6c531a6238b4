//! Unit tests of `version_dirs.rs`.

use super::*;

#[test]
fn leading_digits_make_a_directory_a_version() {
    use DirEntryKind::{Other, Version};
    for (name, entry) in [
        ("1", Version(1)),
        ("0", Version(0)),
        ("3abc", Version(3)),
        ("20260101", Version(20260101)),
        ("9223372036854775807", Version(i64::MAX)),
        ("warmup", Other),
        ("initial_state", Other),
        ("configs", Other),
        (".git", Other),
        ("", Other),
    ] {
        assert_eq!(classify_entry(name, true), entry, "{name:?}");
        assert_eq!(classify_entry(name, false), Other, "{name:?} as a file");
    }
    for (name, why) in [
        ("01", "ignore version directory '01' which contains leading zeros in its directory name"),
        ("abc3", "ignore version directory 'abc3' which fails to convert to integral number"),
        ("-1", "ignore version directory '-1' which fails to convert to integral number"),
        ("0x", "ignore version directory '0x' which contains leading zeros in its directory name"),
        (
            "9223372036854775808",
            "ignore version directory '9223372036854775808' whose number is out of range",
        ),
    ] {
        assert_eq!(classify_entry(name, true), DirEntryKind::Ignored(why.to_owned()));
    }
}

#[test]
fn bare_number_takes_precedence_among_directories_of_one_version() {
    let found = VersionDirs::among([
        ("3abc", true),
        ("10", true),
        ("3", true),
        ("2", false),
        ("02", true),
        ("config.pbtxt", false),
    ]);
    let versions: Vec<_> = found.versions.iter().map(|(v, n)| (*v, n.as_str())).collect();
    assert_eq!(versions, [(3, "3"), (10, "10")]);
    assert_eq!(
        found.warnings,
        [
            "ignore version directory '02' which contains leading zeros in its directory name",
            "ignore version directory '3abc' beside '10', whose name is a bare number; rename it to '3' if it is \
             a version",
        ]
    );
}

#[test]
fn copies_beside_versions_are_not_versions() {
    for (entries, expected, warnings) in [
        (&["1", "2_old"][..], &[(1, "1")][..], 1),
        (&["1", "1.bak", "2.0", "03"], &[(1, "1")], 3),
        (&["3abc"], &[(3, "3abc")], 0),
        (&["3abc", "3abd", "4_x"], &[(3, "3abc"), (4, "4_x")], 1),
        (&["3abc", "labels"], &[(3, "3abc")], 1),
    ] {
        let found = VersionDirs::among(entries.iter().map(|name| (*name, true)));
        let versions: Vec<_> = found.versions.iter().map(|(v, n)| (*v, n.as_str())).collect();
        assert_eq!(versions, expected, "{entries:?}");
        assert_eq!(found.warnings.len(), warnings, "{entries:?}: {:?}", found.warnings);
    }
    // A file is none, so it puts nothing aside.
    let found = VersionDirs::among([("1", false), ("2_old", true)]);
    assert_eq!(found.versions[&2], "2_old");
}
