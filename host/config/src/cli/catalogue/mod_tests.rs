//! Unit tests of `mod.rs`: flags are on the compatibility page.

use super::*;
use std::collections::BTreeMap;
use trtserver_base::compatibility_testing::{State, protocol, rows};

/// Of clap, not of the catalogue.
const BUILT_IN: [&str; 2] = ["help", "version"];

#[test]
fn compatibility_page_has_every_flag_in_its_state() {
    let mut listed = BTreeMap::new();
    for row in rows("flags.md") {
        for flag in row.names("flag") {
            let name = flag.strip_prefix("--").unwrap_or_default().to_owned();
            let known = listed.insert(name, (row.state, row.place.clone()));
            assert!(known.is_none(), "{}: {flag} has two rows", row.place);
        }
    }
    for flag in all_flags() {
        for name in flag.aliases.iter().chain([&flag.name]) {
            let Some((state, place)) = listed.remove(*name) else {
                panic!("docs/compatibility/flags.md has no row for --{name}");
            };
            let fits = match flag.status {
                FlagStatus::Effective => matches!(state, State::Works | State::Differs),
                FlagStatus::NoEffect(_) | FlagStatus::Warns { .. } => state == State::NoEffect,
                FlagStatus::Unsupported { .. } => state == State::NotDone,
            };
            assert!(fits, "{place}: --{name} is {:?}", flag.status);
        }
    }
    let unknown: Vec<_> = listed.keys().filter(|name| !BUILT_IN.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "flags without an entry in the catalogue: {unknown:?}");
}

#[test]
fn catalogue_has_every_flag_of_both_protocols() {
    let sections =
        [protocol("v1.md", "\n### 1.2 ", "\n### 1.5 "), protocol("v2.md", "\n# 6. ", "\n# 7. ")];
    let mut found = 0;
    for quoted in sections.iter().flat_map(|text| text.split('`').skip(1).step_by(2)) {
        let Some(name) = quoted.strip_prefix("--") else { continue };
        let word = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let name = &name[..name.find(|c| !word(c)).unwrap_or(name.len())];
        // A placeholder of the section about syntax.
        if name == "name" || BUILT_IN.contains(&name) {
            continue;
        }
        assert!(find_flag(name).is_some(), "no flag --{name}");
        found += 1;
    }
    assert!(found > 100, "{found}");
}
