//! Unit tests of `settings.rs`.

use super::*;

const TIMESTAMPS: TraceLevels = TraceLevels { timestamps: true, tensors: false };

fn table(without_file: bool) -> SettingTable {
    SettingTable::new(TraceValues::default(), TraceTarget { file: None, without_file })
}

fn rate(rate: u32) -> SettingUpdate {
    SettingUpdate { rate: Some(SettingChange::Set(rate)), ..Default::default() }
}

#[test]
fn models_follow_the_server_in_what_they_do_not_have() {
    let clear = SettingUpdate { rate: Some(SettingChange::Clear), ..Default::default() };
    let level =
        SettingUpdate { levels: Some(SettingChange::Set(TIMESTAMPS)), ..Default::default() };
    let mut table = table(true);
    let shown = |table: &SettingTable| {
        ["", "a", "b"].map(|model| {
            let values = table.find(model).values();
            (values.rate, values.levels.any())
        })
    };
    for (model, update, expected) in [
        ("a", &rate(5), [(1000, false), (5, false), (1000, false)]),
        ("", &level, [(1000, true), (5, true), (1000, true)]),
        ("", &rate(7), [(7, true), (5, true), (7, true)]),
        ("a", &clear, [(7, true), (7, true), (7, true)]),
        ("", &clear, [(1000, true), (1000, true), (1000, true)]),
    ] {
        table = table.changed(model, update).unwrap();
        assert_eq!(shown(&table), expected, "{model} {update:?}");
    }
}

#[test]
fn settings_that_trace_and_cannot_are_refused() {
    let level =
        SettingUpdate { levels: Some(SettingChange::Set(TIMESTAMPS)), ..Default::default() };
    let both = SettingUpdate { rate: Some(SettingChange::Set(0)), ..level.clone() };
    for (without_file, update, problem) in [
        (false, &level, "trace file name is not given"),
        (true, &both, "sample rate must be non-zero"),
    ] {
        let error = table(without_file).changed("a", update).unwrap_err();
        assert_eq!(error.message, format!("Attempting to set invalid trace setting :{problem}"));
    }
    // Without a level it traces nothing, which is no fault.
    table(false).changed("", &rate(0)).unwrap();
}
