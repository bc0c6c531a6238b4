//! Unit tests of `directories.rs`.

use super::*;
use std::collections::BTreeMap;

#[test]
fn finds_plugins_in_all_three_layouts() {
    let dir = tempfile::tempdir().unwrap();
    let so = std::env::consts::DLL_SUFFIX;
    for file in [
        format!("libtrtserver_a{so}"),
        format!("b/libtrtserver_b{so}"),
        format!("c/2/libtrtserver_c{so}"),
        format!("c/other{so}"),
        format!("b/libtrtserver_wrong{so}"),
        format!("c/.3.part/libtrtserver_c{so}"),
        format!(".libtrtserver_d{so}"),
        "readme".into(),
    ] {
        let path = dir.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "").unwrap();
    }
    std::fs::write(dir.path().join("b/plugin.toml"), "[settings]\nthreads = 2\nlib = \"x\"\n")
        .unwrap();
    let dirs = [dir.path().to_owned()];
    let found = scan_directories(&dirs, &[]).candidates;
    assert_eq!(found.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["b", "c", "a"]);
    let versions: Vec<_> = found.iter().map(|c| c.version.as_deref()).collect();
    assert_eq!(versions, [None, Some("2"), None]);
    assert_eq!(found[0].settings["threads"], "2");
    assert_eq!(found[0].settings["lib"], "x");
    std::fs::write(dir.path().join("b/plugin.toml"), "settings = 1\n").unwrap();
    let listing = scan_directories(&dirs, &[]);
    let [(candidate, e)] = listing.bad_manifests.as_slice() else { panic!() };
    assert_eq!((candidate.name.as_str(), listing.candidates.len()), ("b", 2));
    assert!(e.message.contains("plugin.toml") && e.message.contains("settings"), "{e}");
    std::fs::remove_file(dir.path().join("b/plugin.toml")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", dir.path().join("b/plugin.toml")).unwrap();
    let listing = scan_directories(&dirs, &[]);
    let [(_, e)] = listing.bad_manifests.as_slice() else { panic!() };
    assert!(e.message.contains("b/plugin.toml': not a regular file but a character device"), "{e}");
    let unreadable = scan_directories(&[dir.path().join("none")], &[]).unreadable;
    assert!(unreadable[0].1.message.contains("unable to read backend directory"));
}

#[test]
fn unknown_key_of_manifest_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join(format!("libtrtserver_a{}", std::env::consts::DLL_SUFFIX));
    std::fs::write(library, "").unwrap();
    let text = "isolaton = \"process\"\nthreads = 2\n[setings]\na = 1\n[settings]\nb = 1\n";
    std::fs::write(dir.path().join("plugin.toml"), text).unwrap();
    let listing = scan_directories(&[dir.path().to_owned()], &[]);
    let [candidate] = listing.candidates.as_slice() else { panic!("not one candidate") };
    assert_eq!(candidate.settings, BTreeMap::from([("b".to_owned(), "1".to_owned())]));
    let file = dir.path().join("plugin.toml");
    let warning = |rest: &str| format!("'{}': unknown key {rest}", file.display());
    assert_eq!(
        candidate.warnings,
        [
            warning("'isolaton' is ignored; did you mean 'isolation'?"),
            warning("'setings' is ignored; did you mean 'settings'?"),
            warning("'threads' is ignored; settings of the backend belong into [settings]"),
        ]
    );
}
