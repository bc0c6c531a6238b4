//! Unit tests of `trace_settings.rs`.

use super::*;
use trtserver_base::error::Code::{InvalidArg, Unsupported};

#[test]
fn values_are_parsed_or_refused() {
    let timestamps = TraceLevels { timestamps: true, tensors: false };
    let both = TraceLevels { timestamps: true, tensors: true };
    let set = |levels| SettingUpdate {
        levels: Some(SettingChange::Set(levels)),
        ..SettingUpdate::default()
    };
    let rate = |rate| SettingUpdate { rate: Some(rate), ..SettingUpdate::default() };
    let count = |count| SettingUpdate { count: Some(count), ..SettingUpdate::default() };
    for (key, values, expected) in [
        ("trace_level", &["TIMESTAMPS"][..], set(timestamps)),
        ("trace_level", &["MIN"], set(timestamps)),
        ("trace_level", &["TIMESTAMPS", "TENSORS"], set(both)),
        ("trace_level", &["OFF"], set(TraceLevels::default())),
        ("trace_level", &["UNKNOWN"], set(TraceLevels::default())),
        (
            "trace_level",
            &[],
            SettingUpdate { levels: Some(SettingChange::Clear), ..SettingUpdate::default() },
        ),
        ("trace_rate", &["7"], rate(SettingChange::Set(7))),
        ("trace_rate", &[], rate(SettingChange::Clear)),
        ("trace_count", &["-1"], count(SettingChange::Set(-1))),
        ("trace_file", &[], SettingUpdate::default()),
        ("trace_mode", &["opentelemetry"], SettingUpdate::default()),
        ("other", &["x"], SettingUpdate::default()),
    ] {
        let values: Vec<Cow<'_, str>> = values.iter().map(|value| (*value).into()).collect();
        let mut change = TraceChange::default();
        change.add(key, &values).unwrap();
        assert_eq!(change.0, expected, "{key} {values:?}");
    }
    for (key, values, code, message) in [
        (
            "trace_level",
            &["OFF", "TIMESTAMPS"][..],
            InvalidArg,
            "Expect only one trace level 'OFF' is specified",
        ),
        ("trace_rate", &["x"], InvalidArg, "Unable to parse 'trace_rate', got: x"),
        ("trace_rate", &["1", "2"], InvalidArg, "expect only 1 value for 'trace_rate'"),
        ("log_frequency", &["-1"], InvalidArg, "Unable to parse 'log_frequency', got: -1"),
        (
            "trace_count",
            &["-2"],
            InvalidArg,
            "Unable to parse 'trace_count'. Expecting value >= -1, got:-2",
        ),
        (
            "trace_file",
            &["x"],
            Unsupported,
            "trace file location can not be updated through network protocol",
        ),
    ] {
        let values: Vec<Cow<'_, str>> = values.iter().map(|value| (*value).into()).collect();
        let error = TraceChange::default().add(key, &values).unwrap_err();
        assert_eq!((error.code, &*error.message), (code, message), "{key} {values:?}");
    }
}
