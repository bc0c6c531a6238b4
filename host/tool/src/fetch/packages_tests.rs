//! Unit tests of `packages.rs`.

use super::*;

#[test]
fn failures_of_pip_are_explained() {
    let refused = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError: [Errno 111] \
                   Connection refused': /simple/a/\nERROR: Could not find a version that satisfies the requirement \
                   a==1.0\nERROR: No matching distribution found for a==1.0";
    let absent = "Looking in links: /folder\nERROR: No matching distribution found for a==1.0";
    let changed = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.\n  Expected sha256 00\n  Got 11";
    for (said, meaning, shown) in [
        (refused, "the package index cannot be reached", "pip: ERROR: No matching"),
        (absent, "does not have a package for this machine", "pip: ERROR: No matching"),
        (changed, "another SHA-256", "pip: Got 11"),
        ("OSError: [Errno 28] No space left on device", "the disk is full", "[Errno 28]"),
        ("ERROR: [Errno 13] Permission denied: '/x'", "cannot be written to", "'/x'"),
        ("Traceback", "pip failed", "pip: Traceback"),
    ] {
        let text = explain(said);
        assert!(text.contains(meaning), "{text}");
        assert!(text.contains(shown), "{text}");
    }
    assert_eq!(explain(&"line\n".repeat(50)).lines().count(), 1 + LAST_LINES);
}
