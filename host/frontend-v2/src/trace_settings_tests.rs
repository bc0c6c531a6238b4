//! Unit tests of `trace_settings.rs`.

use super::*;
use trtserver_base::error::Code;

#[test]
fn only_values_that_change_nothing_are_accepted() {
    use Code::{InvalidArg, Unsupported};
    let offered = "this server does not offer changing trace settings yet";
    for (key, values, expected) in [
        ("trace_level", &["OFF"][..], None),
        ("trace_level", &[], None),
        ("trace_level", &["TIMESTAMPS"], Some((Unsupported, offered))),
        ("trace_level", &["MIN"], Some((Unsupported, offered))),
        (
            "trace_level",
            &["TENSORS", "OFF"],
            Some((InvalidArg, "Expect only one trace level 'OFF' is specified")),
        ),
        ("trace_rate", &["1000"], None),
        ("trace_rate", &["5"], Some((Unsupported, offered))),
        ("trace_rate", &["x"], Some((InvalidArg, "Unable to parse 'trace_rate', got: x"))),
        ("log_frequency", &["0"], None),
        ("log_frequency", &["-1"], Some((InvalidArg, "Unable to parse 'log_frequency', got: -1"))),
        ("trace_count", &["-1"], None),
        ("trace_count", &["7"], Some((Unsupported, offered))),
        (
            "trace_count",
            &["-2"],
            Some((InvalidArg, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2")),
        ),
        (
            "trace_file",
            &["/x"],
            Some((Unsupported, "trace file location can not be updated through network protocol")),
        ),
        ("trace_mode", &["opentelemetry"], None),
        ("another", &["x"], None),
    ] {
        let values: Vec<Cow<'_, str>> = values.iter().map(|value| Cow::Borrowed(*value)).collect();
        let got = expect_unchanged(key, &values);
        match (got, expected) {
            (Ok(()), None) => {}
            (Err(e), Some((code, text))) => {
                assert_eq!(e.code, code, "{key}");
                assert!(e.message.starts_with(text), "{key}: {}", e.message);
            }
            (got, _) => panic!("{key} {values:?}: {got:?}"),
        }
    }
}
