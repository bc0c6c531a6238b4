//! Unit tests of `fuzz.rs`.

use super::*;

#[test]
fn executions_are_read_from_the_log() {
    for (log, expected) in [
        ("", 0),
        ("INFO: Seed: 1\nERROR: no target\n", 0),
        ("#2\tINITED cov: 5\n#512\tpulse  cov: 9\n==1== ERROR: AddressSanitizer\n", 512),
        ("#1024\tDONE cov: 9\nstat::number_of_executed_units: 1031\nstat::peak_rss_mb: 44\n", 1031),
    ] {
        assert_eq!(executions(log), expected, "{log}");
    }
}

#[test]
fn every_target_has_seeds_and_an_entry_in_the_manifest() {
    let root = Paths::find().root;
    let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
    let names = target_names(&root).unwrap();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
        assert!(root.join("fuzz/seeds").join(&name).is_dir(), "{name}");
    }
}
