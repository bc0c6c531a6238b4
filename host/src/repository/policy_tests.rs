//! Unit tests of `policy.rs`.

use super::*;

#[test]
fn names_of_versions() {
    use VersionEntry::{Other, Version};
    for (name, entry) in [
        ("1", Version(1)),
        ("0", Version(0)),
        ("3abc", Version(3)),
        ("20260101", Version(20260101)),
        ("9223372036854775807", Version(i64::MAX)),
        ("warmup", Other),
        ("initial_state", Other),
        ("configs", Other),
        ("abc3", Other),
        ("-1", Other),
        ("+1", Other),
        (" 1", Other),
        (".git", Other),
        ("", Other),
        ("\u{661}", Other),
    ] {
        assert_eq!(version_of_entry(name, true), entry, "{name:?}");
        assert_eq!(version_of_entry(name, false), Other, "{name:?} as a file");
    }
    for (name, why) in [
        ("01", "ignoring version directory '01' which contains leading zeros"),
        ("0x", "ignoring version directory '0x' which contains leading zeros"),
        (
            "9223372036854775808",
            "ignoring version directory '9223372036854775808' whose number is out of range",
        ),
    ] {
        assert_eq!(version_of_entry(name, true), VersionEntry::Skipped(why.to_owned()));
    }
}

#[test]
fn one_directory_per_number() {
    let found = versions_of_entries([
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
            "ignoring version directory '02' which contains leading zeros",
            "ignoring version directory '3abc': version 3 is '3'",
        ]
    );
}

#[test]
fn selections() {
    // Policy, versions there are, versions wanted, versions missing.
    type Row = (&'static str, &'static [i64], &'static [i64], &'static [i64]);
    let rows: &[Row] = &[
        ("", &[1, 3, 2], &[3], &[]),
        ("latest {}", &[1, 3, 2], &[3], &[]),
        ("latest { num_versions: 2 }", &[1, 3, 10, 2], &[3, 10], &[]),
        ("latest { num_versions: 4000000000 }", &[7, 5, 7], &[5, 7], &[]),
        ("all {}", &[3, 1, 2], &[1, 2, 3], &[]),
        ("specific { versions: [ 9, 2, 1, 9 ] }", &[1, 2, 3], &[1, 2], &[9]),
        ("specific {}", &[1], &[], &[]),
        ("all {}", &[], &[], &[]),
    ];
    for (policy, existing, versions, missing) in rows {
        let policy: ModelVersionPolicy = trtserver_proto::text::parse(policy).unwrap();
        let wanted = wanted(&policy, existing);
        assert_eq!((&wanted.versions[..], &wanted.missing[..]), (*versions, *missing));
    }
}

#[test]
fn a_model_without_versions_is_refused() {
    let none = Wanted { versions: vec![], missing: vec![4] };
    assert_eq!(
        none.or_refuse("m").unwrap_err().message,
        "at least one version must be available under the version policy of model 'm'"
    );
    let one = Wanted { versions: vec![4], missing: vec![] };
    assert_eq!(one.clone().or_refuse("m"), Ok(one));
}
