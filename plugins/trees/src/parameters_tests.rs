//! Unit tests of `parameters.rs`.

use super::*;

fn read(given: &[(&str, &'static str)]) -> Result<Parameters, String> {
    let get = |name: &str| {
        let found = given.iter().find(|(own, _)| *own == name);
        found.map(|(_, value)| Value::Text(value))
    };
    Parameters::read(get).map_err(|fault| fault.text)
}

#[test]
fn parameters_of_fil_are_read() {
    let read_ok = |given| read(given).unwrap();
    assert_eq!(read_ok(&[]), Parameters::default());
    let all = read_ok(&[
        ("model_type", "xgboost_json"),
        ("output_class", "True"),
        ("predict_proba", "false"),
        ("threshold", "0.3"),
        ("algo", "ALGO_AUTO"),
        ("storage_type", "AUTO"),
        ("isolation", "process"),
    ]);
    assert_eq!(all.model_type.map(|own| own.name), Some("xgboost_json"));
    assert!(all.classes && !all.probabilities);
    assert_eq!(all.threshold, Some(0.3));
    assert_eq!(all.unused, ["algo", "storage_type"]);
}

#[test]
fn wrong_values_are_named() {
    for (name, value, expected) in [
        ("output_class", "maybe", "parameter 'output_class' is 'maybe', expected true or false"),
        ("predict_proba", "", "parameter 'predict_proba' is '', expected true or false"),
        ("threshold", "half", "parameter 'threshold' is 'half', expected a number"),
        ("threshold", "NaN", "parameter 'threshold' is 'NaN', expected a number"),
        ("model_type", "catboost", "expected one of lightgbm, xgboost_json, xgboost_ubj, xgboost"),
        ("model_type", "treelite_checkpoint", "which only Treelite reads"),
    ] {
        let text = read(&[(name, value)]).unwrap_err();
        assert!(text.contains(expected), "{text}");
    }
}
