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

/// Names of a manifest's dependencies.
fn dependencies(manifest: &Path) -> Vec<String> {
    let text = fs::read_to_string(manifest).unwrap();
    let lines = text.lines().skip_while(|line| *line != "[dependencies]").skip(1);
    let lines = lines.take_while(|line| !line.starts_with('['));
    let name = |line: &str| Some(line.split_once(['.', ' '])?.0.to_owned());
    lines.filter(|line| line.contains('=')).filter_map(name).collect()
}

/// The manifests of `fuzz/` build the plugins as Rust libraries.
#[test]
fn plugins_have_the_same_dependencies_in_both_manifests() {
    let root = Paths::find().root;
    for plugin in ["caffe2", "custom-shim", "tensorflow"] {
        let [ours, fuzzed] = ["plugins", "fuzz"]
            .map(|folder| dependencies(&root.join(folder).join(plugin).join("Cargo.toml")));
        assert!(ours.len() > 3, "{ours:?}");
        for dependency in ours {
            assert!(fuzzed.contains(&dependency), "fuzz/{plugin}/Cargo.toml lacks {dependency}");
        }
    }
}
