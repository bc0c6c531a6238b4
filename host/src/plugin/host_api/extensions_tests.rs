//! Unit tests of `extensions.rs`.

use super::*;
use crate::plugin::text::{c_text, view};

fn find(name: &str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    unsafe { get_extension(view(&c_text(name)), version) }
}

#[test]
fn every_offered_extension_has_a_table_of_its_version() {
    for extension in OFFERED {
        // SAFETY: literals.
        let name = unsafe { read(extension.name) };
        assert!(!find(&name, extension.version).is_null(), "{name}");
        assert!(!find(&name, 0).is_null(), "{name}: an older version");
        assert!(find(&name, extension.version + 1).is_null(), "{name}: a newer version");
    }
    // SAFETY: literals.
    let names = OFFERED.iter().map(|e| unsafe { read(e.name) });
    let names: Vec<String> = names.collect();
    assert_eq!(names, [MEMORY, METRICS]);
}

#[test]
fn unknown_names_have_no_table() {
    for name in ["", "trts.unknown", "trts.metric", "trts.metrics2", "TRTS.METRICS"] {
        assert!(find(name, 1).is_null(), "{name}");
    }
}
