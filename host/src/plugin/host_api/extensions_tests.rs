//! Unit tests of `extensions.rs`.

use super::*;
use crate::plugin::text::{c_text, view};

fn find(name: &str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    unsafe { get_extension(view(&c_text(name)), version) }
}

#[test]
fn every_offered_extension_has_a_table_of_its_version() {
    let offered = if devices::table().is_some() { WITH_DEVICE } else { WITHOUT_DEVICE };
    for extension in offered {
        // SAFETY: literals.
        let name = unsafe { read(extension.name) };
        assert!(!find(&name, extension.version).is_null(), "{name}");
        assert!(!find(&name, 0).is_null(), "{name}: an older version");
        assert!(find(&name, extension.version + 1).is_null(), "{name}: a newer version");
    }
    // SAFETY: literals.
    let names = WITH_DEVICE.iter().map(|e| unsafe { read(e.name) });
    let names: Vec<String> = names.collect();
    assert_eq!(names, [DEVICE, MEMORY, METRICS]);
    assert_eq!(WITHOUT_DEVICE.len() + 1, WITH_DEVICE.len());
    assert_eq!(find(DEVICE, 1).is_null(), devices::table().is_none());
}

#[test]
fn unknown_names_have_no_table() {
    for name in ["", "trts.unknown", "trts.metric", "trts.metrics2", "TRTS.METRICS"] {
        assert!(find(name, 1).is_null(), "{name}");
    }
}
