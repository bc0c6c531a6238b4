//! Unit tests of `value.rs`.

use super::*;

#[test]
fn integer_accepts_numbers_and_numeric_text() {
    for (value, want) in [
        (Value::Int(-3), Ok(Some(-3))),
        (Value::Text(" 7 "), Ok(Some(7))),
        (Value::Text("soon"), Err("parameter 'k' is 'soon', which is not an integer")),
        (Value::Double(1.5), Err("parameter 'k' is 1.5, which is not an integer")),
        (
            Value::Uint(u64::MAX),
            Err("parameter 'k' is 18446744073709551615, which is not an integer"),
        ),
    ] {
        value.with_param("k", |param| {
            // SAFETY: the parameter is alive during the call.
            let params = unsafe { Params::new(std::slice::from_ref(param)) };
            let got = params.integer("k").map_err(|e| e.text().to_owned());
            assert_eq!(got, want.map_err(str::to_owned), "{value}");
            assert_eq!(params.integer("other"), Ok(None));
        });
    }
}
