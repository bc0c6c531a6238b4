//! Unit tests of `sbom.rs`.

use super::*;

#[test]
fn linked_crates_are_those_of_normal_dependencies() {
    let registry = json!("registry+index");
    let package = |name: &str, source: &Value| {
        json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
            "source": source, "manifest_path": format!("/crates/{name}/Cargo.toml") })
    };
    let dependency =
        |name: &str, kind: Value| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] });
    let metadata = json!({
        "packages": [
            package("server", &Value::Null), package("tests", &Value::Null),
            package("linked", &registry), package("deeper", &registry),
            package("for-builds", &registry), package("for-tests", &registry),
        ],
        "resolve": { "nodes": [
            { "id": "server", "deps": [dependency("linked", Value::Null), dependency("for-builds", json!("build"))] },
            { "id": "tests", "deps": [dependency("for-tests", Value::Null)] },
            { "id": "linked", "deps": [dependency("deeper", Value::Null)] },
            { "id": "deeper", "deps": [] },
        ]},
    });
    let found = select_linked(&metadata, &["server"]);
    let names: Vec<_> = found.iter().map(|linked| linked.name.as_str()).collect();
    assert_eq!(names, ["deeper", "linked"]);
    assert_eq!(found[0].license, "MIT OR Apache-2.0");
    assert_eq!(component(&found[1])["purl"], "pkg:cargo/linked@1.0.0");
}
