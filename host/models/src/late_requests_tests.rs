//! Unit tests of `late_requests.rs`.

use super::*;
use trtserver_proto::v2::ModelParameter;

#[test]
fn parameter_of_the_model_comes_before_the_flag() {
    let target = Duration::from_millis(7);
    for (refused, parameter, expected) in [
        (false, None, Ok(None)),
        (true, None, Ok(Some(target))),
        (false, Some("true"), Ok(Some(target))),
        (true, Some("false"), Ok(None)),
        (
            true,
            Some("yes"),
            Err(
                "model 'm': parameter 'refuse_late_requests' expected 'true' or 'false', found 'yes'",
            ),
        ),
    ] {
        let mut config = ModelConfig { name: "m".into(), ..ModelConfig::default() };
        let value = parameter.map(|text| ModelParameter { string_value: text.into() });
        config.parameters.extend(value.map(|value| (KEY.to_owned(), value)));
        let found = LateRequests { refused, target }.wait_target(&config);
        let found = found.map_err(|error| error.message);
        assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e));
    }
}
