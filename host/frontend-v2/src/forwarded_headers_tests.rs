//! Unit tests of `forwarded_headers.rs`.

use super::*;

fn headers(list: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let name: http::HeaderName = name.parse().unwrap();
        headers.append(name, value.parse().unwrap());
    }
    headers
}

fn forwarded(pattern: &str, list: &[(&str, &str)]) -> Result<Option<Box<ForwardedHeaders>>> {
    let pattern = HeaderPattern::parse("http-header-forward-pattern", pattern).unwrap();
    ForwardedHeaders::from_headers(pattern.as_ref(), &headers(list))
}

#[test]
fn matching_headers_replace_parameters_of_their_name() {
    let sent = [("my-a", "1"), ("your-b", "2"), ("te", "trailers"), ("grpc-timeout", "1S")];
    assert_eq!(forwarded("", &sent), Ok(None));
    assert_eq!(forwarded("^none", &sent), Ok(None));
    let mut parameters = RequestParameters::default();
    parameters.custom.push(("my-a".into(), ParameterValue::Int(7)));
    parameters.custom.push(("other".into(), ParameterValue::Int(8)));
    forwarded(".*", &sent).unwrap().unwrap().add_to(&mut parameters);
    let want = [
        ("other".to_owned(), ParameterValue::Int(8)),
        ("my-a".to_owned(), ParameterValue::String("1".into())),
        ("your-b".to_owned(), ParameterValue::String("2".into())),
    ];
    assert_eq!(parameters.custom, want);
}

#[test]
fn reserved_names_are_refused() {
    for name in RESERVED.into_iter().chain(["triton_x"]) {
        let error = forwarded(".*", &[(name, "1")]).unwrap_err();
        let want = format!("Header '{name}' is reserved for Triton usage and cannot be forwarded.");
        assert_eq!(error, Error::invalid(want));
        assert_eq!(forwarded("^my", &[(name, "1")]), Ok(None));
    }
}
