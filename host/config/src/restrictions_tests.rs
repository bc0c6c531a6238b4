//! Unit tests of `restrictions.rs`.

use super::*;

fn parse(values: &[&str]) -> Result<Option<ApiRestrictions>, String> {
    let values: Vec<String> = values.iter().map(|text| (*text).to_owned()).collect();
    ApiRestrictions::parse("grpc-restricted-protocol", "protocol", "p-", &values)
}

#[test]
fn groups_get_their_headers() {
    assert_eq!(parse(&[]), Ok(None));
    let all = GROUPS.map(|(name, _)| name).join(",");
    let all = parse(&[&format!("{all}:key=a=b:c")]).unwrap().unwrap();
    for (_, group) in GROUPS {
        let restriction = all.for_group(group).unwrap();
        assert_eq!((restriction.header.as_str(), restriction.value()), ("p-key", &b"a=b:c"[..]));
    }
    let two = parse(&["health:k=1", "model-repository,logging:l=2"]).unwrap().unwrap();
    assert_eq!(two.for_group(ApiGroup::Logging).unwrap().value(), b"2");
    assert_eq!(two.for_group(ApiGroup::Inference), None);
    assert!(!format!("{two:?}").contains("value"));
}

#[test]
fn malformed_restrictions_are_refused_without_their_value() {
    for (values, text) in [
        (&["health"][..], "Invalid format"),
        (&["health:key"], "Invalid format"),
        (&["health:=secret"], "Invalid format"),
        (&["health=secret"], "found: health"),
        (&["health:key="], "the value of key 'key' is empty"),
        (&["health:a b=secret"], "'p-a b' cannot be the name of a header"),
        (&["model-reposit,health:k=secret"], "unknown restricted protocol 'model-reposit'"),
        (&[":k=secret"], "unknown restricted protocol ''"),
        (
            &["health:k=secret", "trace,health:l=secret"],
            "restricted protocol 'health' can not be specified in multiple config groups",
        ),
    ] {
        let error = parse(values).unwrap_err();
        assert!(error.contains(text) && !error.contains("secret"), "{values:?}: {error}");
    }
}
