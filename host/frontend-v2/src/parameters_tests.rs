//! Unit tests of `parameters.rs`.

use super::*;
use ParameterChoice::*;

fn read(key: &str, value: Option<ParameterChoice>) -> Result<RequestParameters, String> {
    let value = v2::InferParameter { parameter_choice: value };
    RequestParameters::from_grpc([(key.to_owned(), value)].into()).map_err(|e| e.message)
}

#[test]
fn invalid_parameters_are_refused() {
    let wrong = |key: &str, expected: &str| {
        format!("invalid value type for '{key}' parameter, expected {expected}.")
    };
    let custom = "int64_param, bool_param, or string_param";
    for (key, value, want) in [
        ("sequence_id", Some(BoolParam(true)), wrong("sequence_id", "int64_param or string_param")),
        ("sequence_start", Some(Int64Param(1)), wrong("sequence_start", "bool_param")),
        ("sequence_end", None, wrong("sequence_end", "bool_param")),
        (
            "priority",
            Some(Int64Param(-1)),
            "invalid value for 'priority', expected value >= 0.".into(),
        ),
        ("timeout", Some(Uint64Param(1)), wrong("timeout", "int64_param")),
        ("mine", Some(Uint64Param(1)), wrong("mine", custom)),
        ("mine", None, wrong("mine", custom)),
    ] {
        assert_eq!(read(key, value), Err(want), "{key}");
    }
    assert!(read("triton_x", Some(BoolParam(true))).is_err_and(|e| e.contains("reserved")));
    assert!(read("sequence_id", Some(StringParam("x".repeat(129)))).is_err());
}

#[test]
fn parameters_are_read_by_type() {
    let sequence = |id| RequestSequence { id, ..Default::default() };
    let with = |f: fn(&mut RequestParameters)| {
        let mut p = RequestParameters::default();
        f(&mut p);
        Ok(p)
    };
    for (key, value, want) in [
        (
            "sequence_id",
            Int64Param(-1),
            Ok(RequestParameters {
                sequence: sequence(CorrelationId::Number(u64::MAX)),
                ..Default::default()
            }),
        ),
        ("sequence_id", StringParam(String::new()), with(|_| ())),
        ("priority", Uint64Param(3), with(|p| p.priority = 3)),
        ("timeout", Int64Param(7), with(|p| p.timeout_us = 7)),
        (
            "triton_enable_empty_final_response",
            BoolParam(true),
            with(|p| p.empty_final_response = true),
        ),
        (
            "mine",
            DoubleParam(0.5),
            with(|p| p.custom = vec![("mine".into(), ParameterValue::Double(0.5))]),
        ),
    ] {
        assert_eq!(read(key, Some(value)), want, "{key}");
    }
}
