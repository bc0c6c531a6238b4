//! Unit tests of `log_settings.rs`.

use super::*;
use trtserver_base::error::Code;
use trtserver_config::LogFormat;

#[test]
fn bodies_are_changes_or_errors() {
    let body =
        br#"{"log_info":false,"log_error":null,"log_verbose_level":2,"log_format":"ISO8601"}"#;
    let want = [
        ("log_info".to_owned(), SettingValue::Switch(false)),
        ("log_verbose_level".to_owned(), SettingValue::Level(2)),
        ("log_format".to_owned(), SettingValue::Format(LogFormat::Iso8601)),
    ];
    assert_eq!(read_log_settings(body).unwrap(), want);
    assert!(read_log_settings(b" ").unwrap().is_empty());
    let refused = [
        (
            &br#"{"log_info":1}"#[..],
            Code::Internal,
            "attempt to access JSON non-boolean as boolean",
        ),
        (br#"{"log_verbose_level":-1}"#, Code::Internal, "non-unsigned-integer"),
        (br#"{"log_verbose_level":4294967296}"#, Code::InvalidArg, "4294967295"),
        (br#"{"log_format":"x"}"#, Code::Unavailable, "invalid argument for --log_format, got: x"),
        (br#"{"log_format":3}"#, Code::Internal, "attempt to access JSON non-string as string"),
        (br#"{"log_file":"/x"}"#, Code::Unsupported, "can not be updated through network protocol"),
        (br#"{"log_warnings":true}"#, Code::InvalidArg, "unknown log setting 'log_warnings'"),
        (b"[]", Code::Internal, "attempt to access JSON non-object as object"),
    ];
    for (body, code, text) in refused {
        let error = read_log_settings(body).unwrap_err();
        assert!(error.code == code && error.message.contains(text), "{error:?}");
    }
}
