//! Unit tests of `xgboost.rs`.

use super::*;

#[test]
fn messages_are_shortened() {
    let text = "[07:57:38] /__w/xgboost/xgboost/src/c_api/c_api.cc:1625: Unknown model format: `x`.\n\
                Expecting JSON.\nStack trace:\n  [bt] (0) /lib/libxgboost.so(+0x2c1a8c)\n";
    assert_eq!(shorten_message(text), "Unknown model format: `x`. Expecting JSON.");
    assert_eq!(shorten_message("plain words"), "plain words");
}
