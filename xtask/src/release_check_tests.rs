//! Unit tests of `release_check.rs`.

use super::*;

fn complete() -> ReleaseSources {
    ReleaseSources {
        version: "0.3.0",
        repository: "https://git.example.org/trtserver",
        changelog: "# Changelog\n\n## Unreleased\n\n## 0.3.0\n\n- new\n\n## 0.2.0\n\n- old\n"
            .into(),
        interface: "1.0".into(),
        interface_is_kept: true,
        pages: vec![("README.md".into(), "pip install trtserver-0.3.0-py3".into())],
        commit: Some("abc".into()),
        tagged: None,
    }
}

#[test]
fn each_missing_thing_is_named() {
    assert_eq!(missing_for_release(&complete()), [""; 0]);
    assert_eq!(
        missing_for_release(&ReleaseSources { tagged: Some("abc".into()), ..complete() }),
        [""; 0]
    );
    type Change = fn(&mut ReleaseSources);
    let cases: [(Change, &str); 9] = [
        (|s| s.repository = "", "`repository` of [workspace.package] in Cargo.toml is ''"),
        (
            |s| s.changelog = s.changelog.replace("Unreleased\n", "Unreleased\n\n- more\n"),
            "move them",
        ),
        (|s| s.changelog = s.changelog.replace("## Unreleased", ""), "no section *Unreleased*"),
        (|s| s.changelog = s.changelog.replace("- new", ""), "says nothing of 0.3.0"),
        (|s| s.interface_is_kept = false, "tests/plugins/released/1.0 is missing"),
        (
            |s| s.pages[0].1 = "a\ntrtserver-0.2.0-py3".into(),
            "README.md:2 names 0.2.0, expected 0.3.0",
        ),
        (|s| s.commit = None, "not a checkout of git"),
        (|s| s.commit = Some("abc and changes".into()), "see `git status`"),
        (|s| s.tagged = Some("def".into()), "the tag v0.3.0 names commit def already"),
    ];
    for (change, expected) in cases {
        let mut sources = complete();
        change(&mut sources);
        let missing = missing_for_release(&sources);
        assert!(missing.len() == 1 && missing[0].contains(expected), "{expected}: {missing:?}");
    }
}

#[test]
fn versions_of_the_packages_are_found_in_pages() {
    for (line, expected) in [
        ("trtserver:0.2.0-onnxruntime", Some("0.2.0")),
        ("image:0.2.0-onnxruntime docker-daemon:trtserver:0.3.0", Some("0.2.0")),
        ("newTag: 0.2.0", Some("0.2.0")),
        ("trtserver_client-0.2.0-py3-none", Some("0.2.0")),
        ("unpack trtserver-0.2.0.", Some("0.2.0")),
        ("trtserver-0.3.0, tritonserver 2.51.0, trtserver-plugin-api-1.0.0", None),
        ("since trtserver-1.0", None),
    ] {
        let found = other_versions(line, "0.3.0");
        assert_eq!(found.first().map(|(_, version)| &**version), expected, "{line}");
    }
}

#[test]
fn interface_version_is_read_from_its_constants() {
    let source = "pub const ABI_MAJOR: u32 = 1;\n/// Minor.\npub const ABI_MINOR: u32 = 4;\n";
    assert_eq!(interface_version(source).as_deref(), Some("1.4"));
    assert_eq!(interface_version("pub const ABI_MAJOR: u32 = 1;"), None);
}
