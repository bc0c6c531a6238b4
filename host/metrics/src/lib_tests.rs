//! Unit tests of `mod.rs`: families are on the compatibility page.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use trtserver_base::compatibility_testing::{protocol, rows};
use trtserver_base::stats::HISTOGRAMS;

fn is_family(text: &str) -> bool {
    let prefixes = ["nv_", "trtserver_", "process_"];
    prefixes.iter().any(|prefix| text.starts_with(prefix) && text.len() > prefix.len())
        && !text.ends_with('_')
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

/// Names of families in the source of this part, and of the histograms that the statistics define.
fn families() -> BTreeSet<String> {
    let mut names: BTreeSet<String> =
        HISTOGRAMS.iter().map(|kind| kind.family.to_owned()).collect();
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    while let Some(folder) = open.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                open.push(path);
            } else if !path.to_string_lossy().ends_with("_tests.rs") {
                let text = fs::read_to_string(path).unwrap();
                let literals = text.split('"').filter(|text| is_family(text));
                names.extend(literals.map(str::to_owned));
            }
        }
    }
    assert!(names.contains("nv_inference_count"), "{names:?}");
    names
}

#[test]
fn compatibility_page_has_every_metric_in_its_state() {
    let mut listed = BTreeMap::new();
    for row in rows("metrics.md") {
        for name in row.names("metric") {
            let known = listed.insert(name.clone(), (row.is_there(), row.place.clone()));
            assert!(known.is_none(), "{}: {name} has two rows", row.place);
        }
    }
    let families = families();
    for (name, (is_there, place)) in &listed {
        assert_eq!(families.contains(name), *is_there, "{place}: {name}");
    }
    let sections =
        [protocol("v1.md", "\n## 10. ", "\n## 11. "), protocol("v2.md", "\n# 5. ", "\n# 6. ")];
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let documented = sections.iter().flat_map(|text| text.split(|c| !word(c)));
    let documented = documented.filter(|name| is_family(name)).map(str::to_owned);
    for name in families.iter().cloned().chain(documented) {
        assert!(listed.contains_key(&name), "docs/compatibility/metrics.md has no row for {name}");
    }
}
