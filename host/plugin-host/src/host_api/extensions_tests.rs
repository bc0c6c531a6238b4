//! Unit tests of `extensions.rs`.

use super::*;
use crate::text::{c_text, str_view};

fn find(name: &str, version: u32) -> *const u8 {
    // SAFETY: the name is valid during the call.
    unsafe { get_extension(str_view(&c_text(name)), version) }
}

#[test]
fn every_offered_extension_has_a_table_of_its_version() {
    for extension in extensions(devices::table().is_some()) {
        // SAFETY: literals.
        let name = unsafe { read_text(extension.name) };
        assert!(!find(&name, extension.version).is_null(), "{name}");
        assert!(!find(&name, 0).is_null(), "{name}: an older version");
        assert!(find(&name, extension.version + 1).is_null(), "{name}: a newer version");
    }
    let names = |device| -> Vec<String> {
        // SAFETY: literals.
        extensions(device).iter().map(|e| unsafe { read_text(e.name) }).collect()
    };
    assert_eq!(
        names(true),
        [BATCH_PARTS, DEVICE, HISTOGRAMS, INFERENCE, MEMORY, METRICS, PROCESS, TRACE]
    );
    assert_eq!(names(false), [BATCH_PARTS, HISTOGRAMS, INFERENCE, MEMORY, METRICS, PROCESS, TRACE]);
    assert_eq!(find(DEVICE, 1).is_null(), devices::table().is_none());
}

#[test]
fn unknown_names_have_no_table() {
    for name in ["", "trts.unknown", "trts.metric", "trts.metrics2", "TRTS.METRICS"] {
        assert!(find(name, 1).is_null(), "{name}");
    }
}
