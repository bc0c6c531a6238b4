//! Unit tests of `fairness_settings.rs`.

use super::super::testing::{error_of, run};
use super::*;

#[test]
fn clients_are_told_apart_by_one_of_two() {
    let fairness = |line: &str| run(&format!("--model-store=/m {line}")).unwrap().settings.fairness;
    assert_eq!(fairness(""), None);
    assert_eq!(fairness("--fairness-header="), None);
    let names = fairness("--fairness-names --auth-file=/a --fairness-weight=a:b:2").unwrap();
    assert_eq!(names.source, ClientSource::AuthNames);
    assert_eq!(names.weights, BTreeMap::from([("a:b".to_owned(), 2)]));
}

#[test]
fn wrong_settings_are_refused() {
    for (line, reason) in [
        ("--fairness-header=a --fairness-names", "contradict each other"),
        ("--fairness-names", "requires --auth-file"),
        ("--fairness-weight=a:2", "requires --fairness-header or --fairness-names"),
        ("--fairness-header=x/y", "expected the name of a header"),
        ("--fairness-header=x-bin", "are not text"),
        ("--fairness-header=x --fairness-weight=a", "expected CLIENT:WEIGHT"),
        ("--fairness-header=x --fairness-weight=:1", "expected CLIENT:WEIGHT"),
        ("--fairness-header=x --fairness-weight=a:0", "a weight of 1 to 1000"),
        ("--fairness-header=x --fairness-weight=a:1001", "a weight of 1 to 1000"),
        ("--fairness-header=x --fairness-weight=a:1 --fairness-weight=a:2", "has a weight already"),
    ] {
        let error = error_of(&format!("--model-store=/m {line}"));
        assert!(error.contains(reason), "{line}: {error}");
    }
}
