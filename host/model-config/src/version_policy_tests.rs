//! Unit tests of `version_policy.rs`.

use super::*;

#[test]
fn policy_selects_existing_versions_and_names_missing_ones() {
    // Policy, existing versions, selected versions, missing versions.
    type Row = (&'static str, &'static [i64], &'static [i64], &'static [i64]);
    let rows: &[Row] = &[
        ("", &[1, 3, 2], &[3], &[]),
        ("latest {}", &[1, 3, 2], &[], &[]),
        ("latest { num_versions: 2 }", &[1, 3, 10, 2], &[3, 10], &[]),
        ("latest { num_versions: 4000000000 }", &[7, 5, 7], &[5, 7], &[]),
        ("all {}", &[3, 1, 2], &[1, 2, 3], &[]),
        ("specific { versions: [ 9, 2, 1, 9 ] }", &[1, 2, 3], &[1, 2], &[9]),
        ("specific {}", &[1], &[], &[]),
        ("all {}", &[], &[], &[]),
    ];
    for (policy, existing, versions, missing) in rows {
        let policy: ModelVersionPolicy = trtserver_proto::text::parse(policy).unwrap();
        let selected = select_versions(&policy, existing);
        assert_eq!((&selected.versions[..], &selected.missing[..]), (*versions, *missing));
    }
}

#[test]
fn selection_without_versions_is_refused() {
    let none = SelectedVersions { versions: vec![], missing: vec![4] };
    assert_eq!(
        none.or_refuse("m").unwrap_err().message,
        "at least one version must be available under the version policy of model 'm'"
    );
    let one = SelectedVersions { versions: vec![4], missing: vec![] };
    assert_eq!(one.clone().or_refuse("m"), Ok(one));
}
